#!/usr/bin/env python3
"""What bpf-busy's program with lines must look like in a profile, in the Firefox profiler's format on standard input: two thirds
of the samples in busy_inner are of line 100 of busy.bpf.c and one third of line 200, busy_loop called it from line 10. Weights are
numbers of samples. Exit 1 and words otherwise, 2 when there are too few samples to tell."""
import json
import sys

inner, loop, strange = {}, set(), set()
for thread in json.load(sys.stdin)["threads"]:
    text, frames, funcs = thread["stringArray"], thread["frameTable"], thread["funcTable"]
    stacks, samples = thread["stackTable"], thread["samples"]

    def place(frame):
        func = frames["func"][frame]
        file = funcs["fileName"][func]
        return text[funcs["name"][func]], None if file is None else text[file], frames["line"][frame]

    for stack, weight in zip(samples["stack"], samples["weight"]):
        leaf = True
        while stack is not None:
            name, file, line = place(stacks["frame"][stack])
            if name.startswith("bpf_prog_") and "_busy_" in name and file != "busy.bpf.c":
                strange.add((name, file, line))
            if leaf and name.endswith("_busy_inner"):
                inner[line] = inner.get(line, 0) + weight
            if not leaf and name.endswith("_busy_loop"):
                loop.add(line)
            leaf, stack = False, stacks["prefix"][stack]
total = sum(inner.values())
share = inner.get(100, 0) / total if total else 0
print("busy_inner", inner, "busy_loop", loop, "elsewhere", strange)
if total < 50:
    sys.exit(2)
unsure = 0.03 + 4 * (2 / 9 / total) ** 0.5
sys.exit(not (set(inner) == {100, 200} and abs(share - 2 / 3) < unsure and loop == {10} and not strange))
