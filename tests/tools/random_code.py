#!/usr/bin/env python3
"""usage: random_code.py FILE COUNT: that many addresses (hex) of its .text, the same ones each time."""
import random
import re
import subprocess
import sys

sections = subprocess.run(["readelf", "-SW", sys.argv[1]], stdout=subprocess.PIPE, check=True, text=True).stdout
text = re.search(r"\] \.text +PROGBITS +([0-9a-f]+) [0-9a-f]+ ([0-9a-f]+)", sections)
rng = random.Random(11)
for _ in range(int(sys.argv[2])):
    print(f"{int(text[1], 16) + rng.randrange(int(text[2], 16)):x}")
