#!/usr/bin/env python3
"""Stacks of tests/programs/stacks against what is known of them.

usage: rooted.py FOLDED [LEAST_SHARE]

Of the samples of the folded file, LEAST_SHARE (0.99) must reach a root: main, the start of a thread, or what the
runtime begins its threads with. Where a leaf says how often another function must lie above it, it must be
exactly so. Samples from before the program's own code (exec, the dynamic linker) count as rooted by the linker's.
"""
import collections
import re
import sys

ROOTS = re.compile(
    r"^(main|main\.main|stacks::main|std::rt::lang_start.*|start_thread|_start|_start_c|__libc_start_main.*|start|clone3?|__clone3?"
    r"|_dl_start.*|_dl_start_user|_dl_relocate_object|execve|__execve|__x64_sys_execve|exec.*|begin_new_exec"
    r"|runtime\.goexit.*|runtime\.mstart.*|runtime\.rt0_go.*|runtime\.main|_rt0_.*|ret_from_fork.*)$")
# Where Go goes over to its system stack or its signal stack: that is another stack, and the copy is of one.
SWITCHES = re.compile(r"^runtime\.(systemstack|mcall|morestack|asmcgocall|sigreturn__sigaction|sigtramp)\b")
# leaf -> function and how often it lies above that leaf
EXACT = {
    "burn_rec": (r"^(rec|rec\.\w+\.\d+)$", 41),
    "burn_level": (r"^level<\d>::run$", 7),
    "burn_virtual": (r"^node::visit$", 12),
    "stacks::burn_rec": (r"^stacks::rec$", 31),
    "main.burnRec": (r"^main\.rec$", 31),
}


def plain(name):
    return re.sub(r"\(.*\)$", "", name)


def main():
    least = float(sys.argv[2]) if len(sys.argv) > 2 else 0.99
    total = rooted = counted = wrong = 0
    one = float("inf")  # a sample's worth
    unrooted = collections.Counter()
    for line in open(sys.argv[1], encoding="utf-8"):
        stack, number = line.rstrip("\n").rsplit(" ", 1)
        number, frames = int(number), stack.split(";")
        total += number
        one = min(one, number)
        if any(ROOTS.match(frame) or SWITCHES.match(frame) for frame in frames):
            rooted += number
        else:
            unrooted[";".join(frames[:3] + ["..."] + frames[-3:])] += number
        for leaf in frames:
            if plain(leaf) in EXACT and not any(
                    frame.startswith("main.panics") or SWITCHES.match(frame) for frame in frames):
                function, wanted = EXACT[plain(leaf)]
                times = sum(1 for frame in frames if re.match(function, plain(frame)))
                counted += number
                if times != wanted:
                    wrong += number
                    print(f"# {times} times above {leaf}: {stack[:400]}")
    share = rooted / max(total, 1)
    print(f"# {total} samples, {100 * share:.2f} % reach their root; {counted} with a known depth, {wrong} wrong")
    for stack, number in unrooted.most_common(5):
        print(f"#   {number}: {stack[:300]}")
    # Two more: of few samples that is more than one in a hundred.
    sys.exit(total < 20 * one or total - rooted > (1 - least) * total + 2 * one or wrong > 0.01 * counted)


main()
