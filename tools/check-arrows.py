#!/usr/bin/env python3
"""Holds the includes of src/ to the arrows of the architecture.

A file of a module may include headers of its own module and of the modules in its row below; headers
named x-internal.h only inside their own module. Exits 1 and names each include that breaks a rule.
"""
import pathlib
import re
import sys

ARROWS = {
    "base": [],
    "stats": ["base"],
    "host": ["base"],
    "events": ["base", "host"],
    "count": ["base", "stats", "host", "events"],
    "symbols": ["base", "host"],
    "profile": ["base", "stats"],
    "sample": ["base", "host", "events", "symbols", "profile"],
    "bpf": ["base", "host", "symbols"],
    "latency": ["base", "stats", "host", "symbols", "bpf"],
    "store": ["base", "stats", "profile"],
    "net": ["base"],
    "agent": ["base", "host", "symbols", "profile", "bpf", "net"],
    "server": ["base", "profile", "symbols", "store", "net"],
    "view": ["base", "stats", "profile"],
}
ARROWS["cmd"] = list(ARROWS)

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')


def check(src: pathlib.Path) -> list[str]:
    wrong = []
    for path in sorted(src.rglob("*.[ch]")):
        module = path.relative_to(src).parts[0]
        if module not in ARROWS:
            wrong.append(f"{path}: module '{module}' is not in the list of the architecture")
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            parts = pathlib.PurePosixPath(match.group(1)).parts
            if len(parts) < 2:
                wrong.append(f"{path}:{number}: include \"{match.group(1)}\": name it from src/, as \"module/header.h\"")
                continue
            target = parts[0]
            if target != module and target not in ARROWS[module]:
                wrong.append(f"{path}:{number}: {module} may not include {target}")
            if target != module and parts[-1].endswith("-internal.h"):
                wrong.append(f"{path}:{number}: {parts[-1]} belongs to {target} alone")
    return wrong


def main() -> int:
    root = pathlib.Path(__file__).resolve().parent.parent
    wrong = check(root / "src")
    print("\n".join(wrong) if wrong else "arrows: all includes follow the architecture")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
