#!/usr/bin/env python3
"""Compares stacks sample by sample: ours (stack-dump) with those of perf script -F tid,time,ip --ns.

usage: stacks_against_perf.py OURS PERF [SHARE]

Prints how many samples are equal, and the differences by kind. Explained is where perf stops earlier (it has no
frame pointers to fall back on, no rule for some addresses, a depth limit) and where it walks on behind the
root or a lost caller into addresses that no mapping holds. Everything else counts: more than SHARE (0) of it fails.
"""
import collections
import sys

PERF_DEPTH = 127
BAD = ("different", "ours stops earlier")


def read(path):
    stacks, key = {}, None
    for line in open(path, encoding="utf-8", errors="replace"):
        words = line.split()
        if not words:
            key = None
        elif line[0] in "\t " and key is not None:
            if int(words[0], 16) < 1 << 63:  # the kernel's part is the kernel's own
                stacks[key].append(int(words[0], 16))
        else:
            key = (words[0], words[1].rstrip(":"))
            stacks[key] = []
    return stacks


def kind(ours, perf):
    if ours == perf:
        return "equal"
    # The stub that a signal handler returns to is not a caller: perf names the byte before it.
    if any(a == b + 1 for a, b in zip(ours, perf)):
        fixed = [a if a == b + 1 else b for a, b in zip(ours, perf)] + perf[len(ours):]
        return kind(ours, fixed) + " but for a signal's return"
    if perf == ours[:len(perf)]:
        return "perf stops at its limit" if len(perf) >= PERF_DEPTH else "perf stops earlier"
    if ours == perf[:len(ours)]:
        rest = perf[len(ours):]
        return "perf adds addresses in no mapping" if all(a < 0x10000 or a >> 47 for a in rest) else "ours stops earlier"
    return "different"


def main():
    ours, perf = read(sys.argv[1]), read(sys.argv[2])
    share = float(sys.argv[3]) if len(sys.argv) > 3 else 0
    kinds, shown = collections.Counter(), 0
    for key in ours.keys() & perf.keys():
        what = kind(ours[key], perf[key])
        kinds[what] += 1
        if what.startswith(BAD) and shown < 3:
            shown += 1
            print(f"# {what}: {key}\n#   ours {' '.join(f'{a:x}' for a in ours[key])}\n#   perf {' '.join(f'{a:x}' for a in perf[key])}")
    total = sum(kinds.values())
    bad = sum(number for what, number in kinds.items() if what.startswith(BAD))
    print("# " + ", ".join(f"{number} {what}" for what, number in kinds.most_common()))
    missing = len(ours.keys() ^ perf.keys())
    if missing:
        print(f"# {missing} samples are in one of them only")
    sys.exit(total < 20 or bad > share * total or missing > 0)


main()
