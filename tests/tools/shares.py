#!/usr/bin/env python3
"""Compares what reports say, for the tests of recording.

    culprit report --json | shares.py known COMM NAME=SELF/TOTAL...   rows of COMM, in percent, within 3 points
    shares.py agree CULPRIT FILE    culprit report and perf report on FILE: objects and names above 1 %, within
                                    1 point (names that only culprit finds may be what perf has no name for)

Exit 1 says what differs.
"""
import json
import re
import subprocess
import sys

KNOWN_POINTS, AGREE_POINTS, AGREE_FLOOR = 3.0, 1.0, 1.0


def known(comm, wanted):
    rows = {}
    for row in json.load(sys.stdin)["rows"]:
        if row["comm"] == comm:
            for key in ("self_share", "total_share"):
                rows.setdefault(row["symbol"], {}).setdefault(key, 0.0)
                rows[row["symbol"]][key] += 100 * row[key]
    bad = []
    for want in wanted:
        name, shares = want.rsplit("=", 1)
        for key, share in zip(("self_share", "total_share"), shares.split("/")):
            seen = rows.get(name, {}).get(key)
            if seen is None or abs(seen - float(share)) > KNOWN_POINTS:
                bad.append(f"{name}: {key} is {seen}, want {share}")
    return bad


def normal(symbol):
    """A name as both print it: perf leaves out versions and arguments. "" for what has no name."""
    symbol = re.sub(r"\([^()]*(\([^()]*\)[^()]*)*\)( const)?$", "", symbol.split("@")[0].strip())
    return "" if re.fullmatch(r"(0x)?[0-9a-f]+|.*\+0x[0-9a-f]+|\[unknown\]", symbol) else symbol


def rows_of_perf(path):
    text = subprocess.run(["perf", "report", "-i", path, "--stdio", "--no-children", "-g", "none", "--percent-limit", "0",
                           "-F", "period,comm,dso,sym", "-t", "|"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, check=True, text=True).stdout
    rows = [re.match(r"\s*(\d+)\s*\|([^|]*)\|([^|]*)\|\s*\[.\]\s(.*)$", line) for line in text.splitlines()]
    rows = [match.groups() for match in rows if match]
    total = sum(int(row[0]) for row in rows) or 1  # percents are rounded: their sum over many rows is not
    for period, comm, dso, symbol in rows:
        yield comm.strip(), dso.strip(), normal(symbol), 100 * int(period) / total


def rows_of_culprit(culprit, path):
    output = subprocess.run([culprit, "report", "-i", path, "--json"], check=True, stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL).stdout
    for row in json.loads(output)["rows"]:
        yield row["comm"], row["dso"] or "[unknown]", normal(row["symbol"]), 100 * row["self_share"]


def sums(rows):
    """Shares by (command, object), (command, name), and what has no name by command."""
    objects, names, unnamed = {}, {}, {}
    for comm, dso, name, share in rows:
        dso = dso.rsplit("/", 1)[-1]
        dso = "[JIT]" if re.match(r"\[JIT\]|perf-\d+\.map|//anon|anon", dso) else dso
        for table, key in ((objects, (comm, dso)), (names if name else unnamed, (comm, name))):
            table[key] = table.get(key, 0.0) + share
    return objects, names, unnamed


def agree(culprit, path):
    theirs, ours = sums(rows_of_perf(path)), sums(rows_of_culprit(culprit, path))
    if not theirs[0] or not ours[0]:
        return [f"no rows: {len(theirs[0])} of perf, {len(ours[0])} of culprit"]
    bad = []
    for a, b in zip(theirs[:2], ours[:2]):
        for key in sorted(set(a) | set(b)):
            perf, mine = a.get(key, 0.0), b.get(key, 0.0)
            better = a is theirs[1] and perf == 0 and theirs[2].get((key[0], ""), 0) >= mine - AGREE_POINTS
            if max(perf, mine) > AGREE_FLOOR and abs(perf - mine) > AGREE_POINTS and not better:
                bad.append(f"{key[0]} {key[1]}: perf {perf:.2f} %, culprit {mine:.2f} %")
    return bad


if __name__ == "__main__":
    failures = known(sys.argv[2], sys.argv[3:]) if sys.argv[1] == "known" else agree(sys.argv[2], sys.argv[3])
    if failures:
        sys.exit("\n".join(failures))
