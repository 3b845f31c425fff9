#!/usr/bin/env python3
"""agree.py CULPRIT FILE: every row of perf report and culprit report on FILE that is above 1 % in either, self or total,
is within 1 point of the other's. Rows are command, object and symbol; what has no symbol, and stubs of the PLT, of which perf
names only some, are one row of their object. Prints how many rows were compared; exit 1 says which differ."""
import json
import re
import subprocess
import sys

FLOOR, POINTS = 1.0, 1.0


def run(*argv):
    return subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True,
                          text=True).stdout


def key(comm, dso, symbol):
    dso = dso.strip().rsplit("/", 1)[-1]
    dso = "JIT" if re.match(r"\[JIT\]|perf-\d+\.map$|//anon", dso) else dso
    symbol = re.sub(r"(?<=.)@@?[A-Z].*", "", symbol.strip())
    if re.fullmatch(r"(0x)?[0-9a-f]{6,}|.*\+0x[0-9a-f]+|\[unknown\]|.*@plt", symbol):
        symbol = "(no symbol)"
    if symbol == "_dl_start_user":
        symbol = "_start"  # its last instruction is a call; perf names what stands at the return address
    return comm.strip(), dso, symbol


def rows_of_perf(path):
    text = run("perf", "report", "-i", path, "--stdio", "--children", "--no-inline", "--no-demangle", "-g", "none",
               "--percent-limit", "0", "-F", "overhead_children,period,comm,dso,sym", "-t", "|")
    matches = [re.match(r"\s*([\d.]+)%\s*\|\s*(\d+)\s*\|([^|]*)\|([^|]*)\|\s*\[.\]\s(.*)$", line) for line in
               text.splitlines()]
    rows = [match.groups() for match in matches if match]
    total = sum(int(row[1]) for row in rows) or 1  # percents are rounded: their sum over many rows is not exact
    for children, period, comm, dso, symbol in rows:
        yield key(comm, dso, symbol), 100 * int(period) / total, float(children)


def rows_of_culprit(culprit, path, paths):
    for row in json.loads(run(culprit, "report", "-i", path, "--no-demangle", "--json"))["rows"]:
        name = key(row["comm"], row["dso"] or "[unknown]", row["symbol"])
        paths[name[1]] = row["dso"]
        yield name, 100 * row["self_share"], 100 * row["total_share"]


CACHE = {}


def aliases(path):
    """What else the function at the address of each name of an object is called: {name: names}."""
    if path in CACHE:
        return CACHE[path]
    by_address, result = {}, {}
    files = [[path], ["-D", path]]
    try:
        build_id = re.search(r"Build ID: (\w+)", run("readelf", "-n", path)).group(1)
        files.append([f"/usr/lib/debug/.build-id/{build_id[:2]}/{build_id[2:]}.debug"])
    except (AttributeError, OSError, subprocess.CalledProcessError):
        pass
    for file in files:
        try:
            for line in run("nm", *file).splitlines():
                fields = line.split()
                if len(fields) == 3:
                    by_address.setdefault(fields[0], set()).add(fields[2].split("@")[0])
        except (OSError, subprocess.CalledProcessError):
            continue
    for names in by_address.values():
        for name in names:
            result.setdefault(name, set()).update(names)
    CACHE[path] = result
    return result


def settle_aliases(theirs, ours, paths):
    """A function with several names may have another one in each report."""
    for row in [row for row in theirs if row not in ours]:
        comm, dso, symbol = row
        for other in aliases(paths.get(dso) or "").get(symbol, ()) if max(theirs[row]) > FLOOR else ():
            if (comm, dso, other) in ours and (comm, dso, other) not in theirs:
                theirs[comm, dso, other] = theirs.pop(row)
                break


def table(rows):
    result = {}
    for row, own, total in rows:
        seen = result.setdefault(row, [0.0, 0.0])
        seen[0] += own
        # Addresses without a symbol stand on the same stacks: the sum of their totals means nothing.
        seen[1] = 0.0 if row[2] == "(no symbol)" else seen[1] + total
    return result


def main():
    paths = {}
    theirs, ours = table(rows_of_perf(sys.argv[2])), table(rows_of_culprit(sys.argv[1], sys.argv[2], paths))
    bad, compared = [], 0
    settle_aliases(theirs, ours, paths)
    for row in sorted(set(theirs) | set(ours)):
        # Code of an emulator keeps what it likes in the frame pointer. Words that look like return addresses are then a
        # function's first byte, which is the caller's name for perf and the byte before it for us.
        if row[0].startswith("qemu-"):
            continue
        for name, a, b in zip(("self", "total"), theirs.get(row, (0.0, 0.0)), ours.get(row, (0.0, 0.0))):
            if max(a, b) <= FLOOR:
                continue
            compared += 1
            if abs(a - b) > POINTS:
                bad.append(f"{' '.join(row)}: {name}: perf {a:.2f} %, culprit {b:.2f} %")
    if bad or not compared:
        sys.exit("\n".join(bad) or f"nothing to compare: perf has {len(theirs)} rows, culprit {len(ours)}")
    print(f"{compared} shares above {FLOOR} % compared")


main()
