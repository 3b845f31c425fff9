#!/usr/bin/env python3
"""Sums JUnit files of meson: prints each failure, each skip's reason, and "N passed, N failed, N skipped"."""
import re
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter

SKIP = re.compile(r"^ok\b[^#]*# SKIP\s*(.*)$", re.IGNORECASE)


def add_suite(suite, totals, failures, reasons):
    name = suite.get("name", "")
    cases = suite.findall("testcase")
    failed = [c for c in cases if c.find("failure") is not None or c.find("error") is not None]
    skipped = [c for c in cases if c.find("skipped") is not None]
    totals["failed"] += len(failed)
    totals["skipped"] += len(skipped)
    totals["passed"] += len(cases) - len(failed) - len(skipped)
    failures += [f"{name}: {c.get('name')}" for c in failed]
    # A test program that crashed or timed out failed even when all that it printed was ok.
    broken = int(suite.get("errors", 0)) + int(suite.get("failures", 0))
    if broken and not failed:
        totals["failed"] += 1
        failures.append(f"{name}: ended badly")
    out = suite.findtext("system-out") or ""
    found = [m.group(1).strip() for m in map(SKIP.match, out.splitlines()) if m]
    for reason in found or ["no reason given"] * len(skipped):
        reasons[reason] += 1


def main() -> int:
    totals, failures, reasons = Counter(), [], Counter()
    for path in sys.argv[1:]:
        try:
            root = ElementTree.parse(path).getroot()
        except (OSError, ElementTree.ParseError) as error:
            failures.append(f"{path}: {error}")
            totals["failed"] += 1
            continue
        for suite in root.iter("testsuite"):
            add_suite(suite, totals, failures, reasons)
    for failure in failures:
        print(f"FAILED {failure}")
    for reason, count in sorted(reasons.items()):
        print(f"skipped {count}: {reason}")
    print(f"{totals['passed']} passed, {totals['failed']} failed, {totals['skipped']} skipped")
    return 1 if totals["failed"] or not totals["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
