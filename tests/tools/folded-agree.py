#!/usr/bin/env python3
"""Compares folded stacks of ours with those a stackcollapse script made of the same text.

usage: folded-agree.py OURS EXPECTED

What the scripts do to names is done to both: arguments in brackets, offsets, quotes and the leading L of
Java's classes are dropped, "/" in Java's names becomes ".", annotations (_[k] _[j] _[i]) and spaces of
commands go. Prints the lines that only one side has; status 1 when there are any.
"""
import collections
import re
import sys


def clean(frame):
    frame = re.sub(r"_\[[kji]\]$", "", frame)
    if not re.search(r"[.]\([^)]*\)[.]", frame):
        frame = re.sub(r"^((?!anonymous namespace\)).*?)\((?!anonymous namespace\)).*", r"\1", frame)
    frame = re.sub(r"\+0x[0-9a-f]+$", "", frame)
    frame = re.sub(r"^L(?=[\w$]+/)", "", frame)
    frame = re.sub(r"^\[(\[.*\])\]$", r"\1", frame)
    return re.sub(r"[ ;:]", "_", re.sub(r"[\"']|\\\\", "", frame.replace("/", ".")))


def read(path):
    stacks = collections.Counter()
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            stack, count = line.rstrip("\n").rsplit(" ", 1)
            frames = [clean(f) for f in stack.split(";")]
            frames[0] = re.sub(r"-[?\d]+(/\d+)?$", "", frames[0])
            stacks[";".join(f for f in frames if f)] += int(count)
    return stacks


def main():
    ours, expected = read(sys.argv[1]), read(sys.argv[2])
    wrong = [(k, ours[k], expected[k]) for k in sorted(set(ours) | set(expected)) if ours[k] != expected[k]]
    for stack, have, want in wrong[:10]:
        print(f"ours {have}, expected {want}: {stack}")
    print(f"{len(expected)} stacks, {len(wrong)} differ")
    return 1 if wrong else 0


sys.exit(main())
