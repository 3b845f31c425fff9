#!/usr/bin/env python3
"""Names by symbol tables, of random addresses of a program, against perf's and llvm-symbolizer's.

usage: names.py FRAMES PROGRAM SYMBOLS COUNT [LLVM [PERF]]

FRAMES is tests/programs/frames. SYMBOLS has the program's symbols and no DWARF: the program itself, or what is left of its
debug file. perf is given a recording, made here, of one sample for each address.

An answer is checked by itself: of the symbols that begin where the chosen one does, it is the best by the order that
choose() has. Where the others say something else there must be one of these reasons:

alias     another symbol that begins at the same address, or the same one with its version behind an @
stub      names in procedure linkage tables: llvm-symbolizer has none, perf counts on from the first entry. What objdump
          finds by disassembling must be the same, or a resolver's address, which has the name of an IFUNC
beyond    a label without a size reaches over the end of its section (_init, over the first entry of .plt)
"""
import bisect
import collections
import random
import re
import struct
import subprocess
import sys
import tempfile

SEED = 7
FUNC, OBJECT, NOTYPE, IFUNC = 2, 1, 0, 10
SYMTAB, DYNSYM, EXECUTABLE = 2, 11, 4
BASE = 0x7F0000000000
PID = 4242

Symbol = collections.namedtuple("Symbol", "start end sized rank name")


def output(command, text=None):
    return subprocess.run(command, input=text, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout


class Elf:
    """A 64-bit little-endian file: sections, segments, and the symbols of code by where they begin."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.data = file.read()
        phoff, shoff = struct.unpack_from("<QQ", self.data, 32)
        phentsize, phnum, shentsize, shnum, shstrndx = struct.unpack_from("<HHHHH", self.data, 54)
        self.segments = [struct.unpack_from("<IIQQQQQQ", self.data, phoff + i * phentsize) for i in range(phnum)]
        self.sections = [struct.unpack_from("<IIQQQQIIQQ", self.data, shoff + i * shentsize) for i in range(shnum)]
        self.names = self.sections[shstrndx][4]

    def text(self, offset):
        return self.data[offset:self.data.index(b"\0", offset)].decode(errors="replace")

    def code(self):
        """(name, address, size) of the sections with code."""
        return [(self.text(self.names + s[0]), s[3], s[5]) for s in self.sections
                if s[2] & EXECUTABLE and s[1] == 1 and s[5]]

    def symbols(self, kind):
        for table in self.sections:
            if table[1] != kind:
                continue
            names = self.sections[table[6]][4]
            for i in range(1, table[5] // 24):
                name, info, _, index, value, size = struct.unpack_from("<IBBHQQ", self.data, table[4] + 24 * i)
                if 0 < index < len(self.sections) and info & 15 in (FUNC, IFUNC, NOTYPE, OBJECT) and name:
                    section = self.sections[index]
                    if not section[2] & EXECUTABLE:
                        continue
                    end = value + size if size else section[3] + section[5]
                    yield Symbol(value, end, size > 0, (2, 0, 1)[info >> 4] if info >> 4 < 3 else 0,
                                 self.text(names + name))


def choose(symbols):
    """With a size, global before weak before local, fewer underscores before it, the longer code, the shorter name."""
    return min(symbols, key=lambda s: (not s.sized, s.rank, len(s.name) - len(s.name.lstrip("_")), -s.end, len(s.name),
                                       s.name)).name


def addresses(sections, count):
    """Four in five by size, the others evenly from the small sections, such as .plt."""
    rng = random.Random(SEED)
    small = [s for s in sections if s[2] < 100000]
    for i in range(count):
        if i % 5 == 0 and small:
            section = rng.choice(small)
        else:
            section = rng.choices(sections, [s[2] for s in sections])[0]
        yield section[0], section[1] + rng.randrange(section[2])


def recording(path, program, places, out):
    record = lambda kind, misc, body: struct.pack("<IHH", kind, misc, 8 + len(body)) + body
    name = program.encode() + b"\0"
    name = name.ljust((len(name) + 7) // 8 * 8, b"\0")
    records = record(3, 0, struct.pack("<II8s", PID, PID, b"names"))
    for kind, flags, offset, address, _, size, _, _ in path.segments:
        if kind == 1 and flags & 1:
            start, end = address & ~4095, (address + size + 4095) & ~4095
            records += record(1, 2, struct.pack("<IIQQQ", PID, PID, BASE + start, end - start, offset & ~4095) + name)
    for time, place in enumerate(places):
        records += record(9, 2, struct.pack("<QIIQ", BASE + place, PID, PID, time + 1))
    attr = struct.pack("<IIQQQQQ", 1, 112, 0, 1000, 7, 0, 1 << 8 | 1 << 9).ljust(112, b"\0") + bytes(16)
    out.write(b"PERFILE2" + struct.pack("<12Q", 104, 128, 104, 128, 104 + 128, len(records), 0, 0, 0, 0, 0, 0) + attr + records)
    out.flush()


def by_perf(perf, elf, program, places):
    with tempfile.NamedTemporaryFile() as file:
        recording(elf, program, places, file)
        lines = output([perf, "script", "-i", file.name, "-F", "ip,sym", "--no-inline", "--no-demangle"]).splitlines()
    if len(lines) != len(places):
        print(f"perf says {len(lines)} lines, it is not compared")
        return None
    names = [(line.split(None, 1) + [""])[1].strip() for line in lines]
    return [("" if name == "[unknown]" else name) for name in names]


def by_llvm(llvm, symbols, places):
    said = output([llvm, "--obj=" + symbols, "--no-inlines", "--functions=linkage", "--no-demangle"],
                  "".join(f"{place:#x}\n" for place in places))
    return [answer.split("\n")[0].replace("??", "") for answer in said.split("\n\n")][:len(places)]


def stubs_of(program, sections):
    """What objdump finds: (address, name), sorted; an empty name where it gives an address only."""
    found = []
    for section in sections:
        if section[0].startswith(".plt"):
            for match in re.finditer(r"^([0-9a-f]+) <(.*)>:$", output(["objdump", "-d", "-j", section[0], program]), re.M):
                known = re.fullmatch(r"([^*@+]+)(@.*)?@plt", match[2])
                found.append((int(match[1], 16), known[1] if known else ""))
    return sorted(found)


def main():
    frames, program, symbols, count = sys.argv[1:5]
    elf = Elf(program)
    sections = elf.code()
    known = collections.defaultdict(list)
    for symbol in set(Elf(symbols).symbols(SYMTAB)) | set(elf.symbols(DYNSYM)):
        known[symbol.start].append(symbol)
    starts, stubs = sorted(known), stubs_of(program, sections)
    chosen = list(addresses(sections, int(count)))
    places = [place for _, place in chosen]
    ours = [line.split("\t")[0] for line in output([frames, program], "".join(f"{p:x}\n" for p in places)).splitlines()]
    others = {}
    if len(sys.argv) > 5:
        others["llvm"] = by_llvm(sys.argv[5], symbols, places)
    if len(sys.argv) > 6:
        others["perf"] = by_perf(sys.argv[6], elf, program, places)
    others = {who: names for who, names in others.items() if names}
    seen, wrong = collections.Counter(), []

    def aliases(place, name):
        """The symbols at the one place where a symbol of that name begins that covers the address."""
        at = bisect.bisect_right(starts, place) - 1
        while at >= 0:
            if any(s.name == name and s.end > place for s in known[starts[at]]):
                return [s for s in known[starts[at]] if s.end > place]
            at -= 1
        return []

    def stub_is_right(place, name):
        at = bisect.bisect_right(stubs, (place, "\x7f")) - 1
        want = stubs[at][1] if at >= 0 else ""
        return name.endswith("@plt") and (not want or name == want + "@plt")

    for i, (section, place) in enumerate(chosen):
        name, in_stub = ours[i], section.startswith(".plt")
        if in_stub and name and not stub_is_right(place, name):
            wrong.append(f"{place:#x} {section}: {name} is not what objdump says")
        same = [] if in_stub or not name else aliases(place, name)
        if same and name != choose(same):
            wrong.append(f"{place:#x} {section}: {name}, of its aliases {choose(same)} is better")
        if not in_stub and name and not same:
            wrong.append(f"{place:#x} {section}: {name} is no symbol there")
        for who, names in others.items():
            other = names[i]
            if other == name:
                why = "same"
            elif in_stub:
                why = "stub" if name else "beyond"
            elif name and (other in (s.name for s in same) or other.split("@")[0] == name):
                why = "alias"
            elif not name and any(not s.sized for s in aliases(place, other)):
                why = "beyond"
            else:
                why = "unexplained"
                wrong.append(f"{place:#x} {section}: '{name}', {who} says '{other}'")
            seen[f"{who} {why}"] += 1
    print(f"{program}: {len(places)} addresses, {sum(map(bool, ours))} named:",
          ", ".join(f"{value} {key}" for key, value in sorted(seen.items())))
    print("\n".join(wrong[:20]))
    return bool(wrong) or sum(map(bool, ours)) < 0.2 * len(places)


sys.exit(main())
