#!/usr/bin/env python3
"""Sums JUnit files of meson: prints each failure, each skip's reason, and "N passed, N failed, N skipped".

The JUnit file knows what each test program printed, not how it ended: one that timed out, leaked or stopped
half-way looks passed there. That stands in the log beside it (X.json for X.junit.xml), which is read too.
"""
import json
import pathlib
import re
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter

SKIP = re.compile(r"^ok\b[^#]*# SKIP\s*(.*)$", re.IGNORECASE)
GOOD = {"OK", "SKIP", "EXPECTEDFAIL"}


class Sum:
    def __init__(self):
        self.totals, self.failures, self.reasons = Counter(), [], Counter()

    def fail(self, text: str) -> None:
        self.totals["failed"] += 1
        self.failures.append(text)

    def add_suite(self, suite, passed: Counter, failed: set) -> None:
        """passed, failed: names of suites and cases, to be held against the programs' own ends."""
        name = suite.get("name", "")
        cases = suite.findall("testcase")
        skipped = 0
        for case in cases:
            if case.find("failure") is not None or case.find("error") is not None:
                self.fail(f"{name}: {case.get('name')}")
                failed |= {name, case.get("name")}
            elif case.find("skipped") is not None:
                skipped += 1
            else:
                self.totals["passed"] += 1
                passed[case.get("name")] += 1
        self.totals["skipped"] += skipped
        # A test program that crashed failed even when all that it printed was ok.
        if int(suite.get("errors", 0)) + int(suite.get("failures", 0)) and name not in failed:
            self.fail(f"{name}: ended badly")
            failed.add(name)
        out = suite.findtext("system-out") or ""
        found = [m.group(1).strip() for m in map(SKIP.match, out.splitlines()) if m]
        for reason in found or ["no reason given"] * skipped:
            self.reasons[reason] += 1

    def add_ends(self, path: pathlib.Path, passed: Counter, failed: set) -> None:
        """The results of the programs, one JSON document a line."""
        for line in path.read_text(errors="replace").splitlines():
            test = json.loads(line)
            name, result = test["name"], test["result"]
            if result in GOOD or name in failed or any(f.endswith("." + name) for f in failed):
                continue
            if passed[name]:  # without subtests the program is the case, and stands there as passed
                self.totals["passed"] -= 1
                passed[name] -= 1
            self.fail(f"{name}: {result}, status {test.get('returncode')}")

    def add(self, path: pathlib.Path) -> None:
        passed, failed = Counter(), set()
        try:
            for suite in ElementTree.parse(path).getroot().iter("testsuite"):
                self.add_suite(suite, passed, failed)
            if path.name.endswith(".junit.xml"):
                self.add_ends(path.with_name(path.name.replace(".junit.xml", ".json")), passed, failed)
        except (OSError, ElementTree.ParseError, ValueError, KeyError) as error:
            self.fail(f"{path}: {error}")

    def show(self) -> int:
        for failure in self.failures:
            print(f"FAILED {failure}")
        for reason, count in sorted(self.reasons.items()):
            print(f"skipped {count}: {reason}")
        totals = self.totals
        print(f"{totals['passed']} passed, {totals['failed']} failed, {totals['skipped']} skipped")
        return 1 if totals["failed"] or not totals["passed"] else 0


def main() -> int:
    total = Sum()
    for path in sys.argv[1:]:
        total.add(pathlib.Path(path))
    return total.show()


if __name__ == "__main__":
    sys.exit(main())
