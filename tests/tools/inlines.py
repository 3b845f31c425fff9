#!/usr/bin/env python3
"""Inlined functions, files and lines of random addresses, against llvm-symbolizer's.

usage: inlines.py FRAMES PROGRAM COUNT LLVM

FRAMES is tests/programs/frames. Depth, functions, files and lines must be the same. The function that has the code may be
called what the symbol table calls it (clones, .cold parts); of code without debug information there is nothing.
"""
import os
import random
import re
import subprocess
import sys

SEED = 3


def output(command, text=None):
    return subprocess.run(command, input=text, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout


def code(program):
    """Of .text and the sections beside it, which cold parts have."""
    for match in re.finditer(r"\] \.text\S* +PROGBITS +([0-9a-f]+) [0-9a-f]+ ([0-9a-f]+)", output(["readelf", "-SW", program])):
        yield int(match[1], 16), int(match[2], 16)


def ours(frames, program, text):
    for line in output([frames, program], text).split("\n")[:-1]:
        parts = line.split("\t")
        yield parts[0], [tuple(frame.rsplit("|", 2)) for frame in parts[1:]]


def theirs(llvm, program, text):
    said = output([llvm, "--obj=" + program, "--inlines", "--functions=linkage", "--no-demangle"], text)
    for answer in said.split("\n\n"):
        lines = answer.strip("\n").split("\n")
        yield [(name,) + tuple(place.rsplit(":", 2)[:2]) for name, place in zip(lines[::2], lines[1::2])]


def path(name):
    return os.path.normpath(name) if name and name != "??" else ""


def differs(symbol, have, want):
    if not have and len(want) == 1 and want[0][2] == "0":
        return None  # no debug information: it shows the symbol, and a file by the symbol table
    if len(have) != len(want):
        return f"{len(have)} frames, it says {len(want)}: {have}, {want}"
    for i, ((name, file, line), (want_name, want_file, want_line)) in enumerate(zip(have, want)):
        names = {name or "??", symbol} if i == len(have) - 1 else {name}
        if not file and line == want_line == "0":
            want_file = ""  # by the symbol table
        if want_name not in names or path(file) != path(want_file) or line != want_line:
            return f"frame {i}: {name} {file} {line}, it says {want_name} {want_file} {want_line}"
    return None


def main():
    frames, program, count, llvm = sys.argv[1:]
    sections = list(code(program))
    rng = random.Random(SEED)
    places = []
    for _ in range(int(count)):
        start, size = rng.choices(sections, [s[1] for s in sections])[0]
        places.append(start + rng.randrange(size))
    text = "".join(f"{place:#x}\n" for place in places)
    wrong, depth, deepest, lines = [], 0, 0, 0
    for place, (symbol, have), want in zip(places, ours(frames, program, text), theirs(llvm, program, text)):
        why = differs(symbol, have, want)
        if why:
            wrong.append(f"{place:#x}: {why}")
        depth += len(have) > 1
        deepest = max(deepest, len(have))
        lines += bool(have and have[0][1])
    print(f"{len(places)} addresses, {lines} with lines, {depth} inlined, up to {deepest} deep; {len(wrong)} differ")
    print("\n".join(wrong[:10]))
    return bool(wrong) or depth < len(places) / 10


sys.exit(main())
