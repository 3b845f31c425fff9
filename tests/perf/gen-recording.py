#!/usr/bin/env python3
"""Makes a large recording of a small one: its samples repeated, each time later in time.

usage: gen-recording.py SMALL LARGE SAMPLES

SMALL is a finished perf.data file of this machine's byte order in file mode, not compressed, whose events
all have TIME. Records other than samples and the ends of rounds are kept once; feature sections are moved behind the data.
"""
import struct
import sys

SAMPLE, FINISHED_ROUND, TIME_BIT = 9, 68, 1 << 2
BEFORE_TIME = (1 << 16, 1 << 0, 1 << 1)  # IDENTIFIER, IP, TID come before the time, 8 bytes each


def main() -> int:
    if len(sys.argv) != 4:
        print(__doc__, file=sys.stderr)
        return 2
    with open(sys.argv[1], "rb") as file:
        data = file.read()
    wanted = int(sys.argv[3])
    if data[:8] != b"PERFILE2":
        print("not a perf.data file of this byte order", file=sys.stderr)
        return 1
    attr_at, = struct.unpack_from("<Q", data, 24)
    start, size = struct.unpack_from("<QQ", data, 40)
    features = bin(int.from_bytes(data[72:104], "little")).count("1")
    sample_type, = struct.unpack_from("<Q", data, attr_at + 24)
    if not sample_type & TIME_BIT:
        print("the samples have no times", file=sys.stderr)
        return 1
    time_at = 8 + 8 * sum(1 for bit in BEFORE_TIME if sample_type & bit)

    times, offsets, body, at = [], [], bytearray(), start
    while at < start + size:
        kind, _, length = struct.unpack_from("<IHH", data, at)
        if kind == SAMPLE:
            times.append(struct.unpack_from("<Q", data, at + time_at)[0])
            offsets.append(len(body) + time_at)
        # Where rounds end, readers that sort can let go of what they hold.
        if kind in (SAMPLE, FINISHED_ROUND):
            body += data[at:at + length]
        at += length
    samples = len(times)
    span = max(times) - min(times) + 1
    body += struct.pack("<IHH", FINISHED_ROUND, 0, 8)
    repeats = max(0, -(-(wanted - samples) // samples))

    tail = bytearray(data[start + size:])
    grown = repeats * len(body)
    for i in range(features):
        offset, = struct.unpack_from("<Q", tail, 16 * i)
        struct.pack_into("<Q", tail, 16 * i, offset + grown)
    header = bytearray(data[:start])
    struct.pack_into("<Q", header, 48, size + grown)
    with open(sys.argv[2], "wb") as out:
        out.write(header)
        out.write(data[start:start + size])
        for turn in range(1, repeats + 1):
            for offset, time in zip(offsets, times):
                struct.pack_into("<Q", body, offset, time + turn * span)
            out.write(body)
        out.write(tail)
    print(samples * (repeats + 1), "samples")
    return 0


if __name__ == "__main__":
    sys.exit(main())
