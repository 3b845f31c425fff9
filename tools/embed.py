#!/usr/bin/env python3
"""Writes C source with the bytes of files: embed.py OUT.c HEADER FILE...

FILE dir/flame.js becomes "const char asset_flame_js[]", NUL-terminated, and "asset_flame_js_size".
"""
import pathlib
import re
import sys


def main() -> int:
    out, header, *files = sys.argv[1:]
    text = [f'#include "{header}"\n']
    for file in files:
        path = pathlib.Path(file)
        name = "asset_" + re.sub(r"\W", "_", path.name)
        data = path.read_bytes()
        rows = [", ".join(str(byte) for byte in data[at:at + 24]) for at in range(0, len(data), 24)]
        text.append(f"const char {name}[] = {{\n" + "".join(f"\t{row},\n" for row in rows) + "\t0,\n};\n")
        text.append(f"const size_t {name}_size = {len(data)};\n")
    pathlib.Path(out).write_text("\n".join(text))
    return 0


if __name__ == "__main__":
    sys.exit(main())
