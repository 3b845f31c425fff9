#!/usr/bin/env python3
"""Reads a perf.data file (file mode, little-endian) for tests, independently of culprit's own reader.

    perfdata.py FILE EXPRESSION      evaluates EXPRESSION with d = the recording; exit 1 when it is false
    perfdata.py FILE                 prints a summary as JSON

The names of the recording d: see class Recording. Everything is checked on the way: sizes of records
and sections, ids, that the sections of the header do not overlap, and that readers which sort by
FINISHED_ROUND (as perf does) get no event after its round.
"""
import ctypes
import ctypes.util
import json
import struct
import sys

MMAP, LOST, COMM, EXIT, THROTTLE, UNTHROTTLE, FORK, READ, SAMPLE, MMAP2 = range(1, 11)
LOST_SAMPLES, KSYMBOL, FINISHED_ROUND, COMPRESSED = 13, 17, 68, 81
IP, TID, TIME, ADDR, READV, CHAIN, ID, CPU, PERIOD, STREAM, RAW, BRANCH, REGS, STACK = (1 << i for i in range(14))
IDENTIFIER = 1 << 16
CULPRIT_FEATURE = 250


class Broken(Exception):
    pass


class Zstd:
    """One zstd stream over all COMPRESSED records."""

    class Buffer(ctypes.Structure):
        _fields_ = [("at", ctypes.c_void_p), ("size", ctypes.c_size_t), ("pos", ctypes.c_size_t)]

    def __init__(self):
        name = ctypes.util.find_library("zstd") or "libzstd.so.1"
        self.lib = ctypes.CDLL(name)
        self.lib.ZSTD_createDStream.restype = ctypes.c_void_p
        self.lib.ZSTD_decompressStream.restype = ctypes.c_size_t
        self.lib.ZSTD_decompressStream.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
        self.stream = self.lib.ZSTD_createDStream()

    def feed(self, data):
        out = ctypes.create_string_buffer(1 << 20)
        source = ctypes.create_string_buffer(data, len(data))
        src = self.Buffer(ctypes.addressof(source), len(data), 0)
        result = b""
        while True:
            dst = self.Buffer(ctypes.addressof(out), len(out), 0)
            if self.lib.ZSTD_isError(ctypes.c_size_t(self.lib.ZSTD_decompressStream(
                    self.stream, ctypes.byref(dst), ctypes.byref(src)))):
                raise Broken("zstd stream is damaged")
            result += out.raw[:dst.pos]
            if src.pos == src.size and dst.pos < dst.size:
                return result


def text(data):
    return data.split(b"\0", 1)[0].decode(errors="replace")


class Recording:
    """attrs: dicts (type, config, period, freq, sample_type, flags, name, ids); features: number -> bytes;
    counts: record type -> number; samples: dicts (ip, pid, tid, time, cpu, period, chain, event, user, regs,
    stack); comms, forks, maps: as recorded; lost_records, lost_samples: by LOST and
    LOST_SAMPLES, which tell of the same loss; lost: the larger; throttled; complete: whether the
    header was finished; cut: bytes of a last incomplete record."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.data = file.read()
        self.counts, self.samples, self.comms, self.forks, self.maps = {}, [], [], [], []
        self.lost_records = self.lost_samples = self.throttled = self.cut = self.rounds = 0
        self.compressed_bytes = 0
        self.zstd, self.rest = None, b""
        self.round_limit = self.round_before = self.round_max = 0
        self.read_header()
        self.read_records()

    def part(self, offset, size, what):
        if offset + size > len(self.data):
            raise Broken(f"{what}: {offset}+{size} lies outside the file of {len(self.data)}")
        return self.data[offset:offset + size]

    def read_header(self):
        head = self.part(0, 104, "header")
        if head[:8] != b"PERFILE2":
            raise Broken("magic")
        size, attr_size, attrs_at, attrs_bytes, self.data_at, self.data_bytes, _, _ = struct.unpack("<8Q", head[8:72])
        bits = struct.unpack("<4Q", head[72:104])
        if size != 104 or attrs_bytes % attr_size:
            raise Broken("header sizes")
        self.attrs, self.by_id = [], {}
        for at in range(attrs_at, attrs_at + attrs_bytes, attr_size):
            raw = self.part(at, attr_size, "attr")
            kind, inner, config, period, sample_type, read_format, flags = struct.unpack("<IIQQQQQ", raw[:48])
            ids_at, ids_bytes = struct.unpack("<QQ", raw[-16:])
            if inner != attr_size - 16:
                raise Broken("attr.size is not the size in the header")
            attr = dict(type=kind, config=config, period=period, freq=bool(flags >> 10 & 1), sample_type=sample_type,
                        read_format=read_format, flags=flags, inherit=bool(flags >> 1 & 1),
                        exclude_user=bool(flags >> 4 & 1), exclude_kernel=bool(flags >> 5 & 1),
                        precise=flags >> 15 & 3, branch=struct.unpack("<Q", raw[72:80])[0],
                        regs=struct.unpack("<Q", raw[80:88])[0], stack=struct.unpack("<I", raw[88:92])[0],
                        ids=list(struct.unpack(f"<{ids_bytes // 8}Q", self.part(ids_at, ids_bytes, "ids"))))
            for event_id in attr["ids"]:
                if event_id in self.by_id:
                    raise Broken(f"id {event_id} stands twice")
                self.by_id[event_id] = len(self.attrs)
            self.attrs.append(attr)
        self.complete = any(bits)
        self.features = {}
        at = self.data_at + self.data_bytes
        last = at + 16 * sum(bin(word).count("1") for word in bits)
        for bit in (i for i in range(256) if bits[i // 64] >> i % 64 & 1):
            offset, size = struct.unpack("<QQ", self.part(at, 16, "feature table"))
            if offset < last:
                raise Broken(f"feature {bit} overlaps")
            self.features[bit] = self.part(offset, size, f"feature {bit}")
            last, at = offset + size, at + 16
        self.read_event_names()

    def read_event_names(self):
        desc = self.features.get(12)
        if desc is None:
            return
        count, size = struct.unpack("<II", desc[:8])
        at = 8
        if count != len(self.attrs):
            raise Broken("event_desc: number of events")
        for attr in self.attrs:
            at += size
            ids, length = struct.unpack("<II", desc[at:at + 8])
            attr["name"] = text(desc[at + 8:at + 8 + length])
            at += 8 + length
            if list(struct.unpack(f"<{ids}Q", desc[at:at + 8 * ids])) != attr["ids"]:
                raise Broken("event_desc: ids")
            at += 8 * ids
        if at != len(desc):
            raise Broken("event_desc: size")

    def string_feature(self, bit):
        data = self.features[bit]
        if struct.unpack("<I", data[:4])[0] != len(data) - 4:
            raise Broken(f"feature {bit}: string size")
        return text(data[4:])

    def kernel_symbols(self):
        """The kallsyms text in culprit's own section, None without one."""
        data = self.features.get(CULPRIT_FEATURE)
        if data is None:
            return None
        version, kind, size = struct.unpack("<IIQ", data[:16])
        raw = Zstd().feed(data[16:])
        if (version, kind) != (1, 1) or len(raw) != size:
            raise Broken("kernel symbol section")
        return raw.decode()

    def read_records(self):
        end = self.data_at + self.data_bytes if self.complete else len(self.data)
        self.run(self.part(self.data_at, end - self.data_at, "records"), True)
        if self.rest:
            raise Broken(f"{len(self.rest)} compressed bytes are no record")

    def run(self, data, top):
        at = 0
        while at + 8 <= len(data):
            kind, misc, size = struct.unpack("<IHH", data[at:at + 8])
            if at + size > len(data) and size >= 8:
                break
            if size < 8 or (size % 8 and kind != COMPRESSED):
                raise Broken(f"record {kind} of size {size}")
            self.record(kind, misc, data[at + 8:at + size], top)
            at += size
        if top:
            self.cut = len(data) - at
            if self.complete and self.cut:
                raise Broken(f"the records do not fill the data section: {self.cut} bytes are left")
        return data[at:]

    def record(self, kind, misc, body, top):
        self.counts[kind] = self.counts.get(kind, 0) + 1
        if kind == COMPRESSED and top:
            self.zstd = self.zstd or Zstd()
            self.compressed_bytes += len(body)
            self.rest = self.run(self.rest + self.zstd.feed(body), False)
            return
        if kind == FINISHED_ROUND:
            self.rounds += 1
            # A round ends what came before the round before it: rings are read one after the other.
            self.round_limit, self.round_before = self.round_before, self.round_max
            return
        if kind >= 64:
            return
        time = self.sample(misc, body) if kind == SAMPLE else self.side_band(kind, misc, body)
        if time and time < self.round_limit:
            raise Broken(f"record {kind} at {time} comes after its round was finished ({self.round_limit})")
        self.round_max = max(self.round_max, time)

    def trailer(self, body):
        """The sample_id at the end of every record but samples."""
        kind = self.attrs[0]["sample_type"]
        names = [n for bit, n in ((TID, "tid"), (TIME, "time"), (ID, "id"), (STREAM, "stream"), (CPU, "cpu"),
                                  (IDENTIFIER, "id")) if kind & bit]
        words = struct.unpack(f"<{len(names)}Q", body[len(body) - 8 * len(names):])
        return dict(zip(names, words)), body[:len(body) - 8 * len(names)]

    def side_band(self, kind, misc, body):
        tail, body = self.trailer(body)
        if kind == COMM:
            self.comms.append(dict(pid=struct.unpack("<I", body[:4])[0], tid=struct.unpack("<I", body[4:8])[0],
                                   comm=text(body[8:]), exec=bool(misc & 0x2000), time=tail.get("time", 0)))
        elif kind in (FORK, EXIT):
            pid, ppid, tid, ptid, when = struct.unpack("<IIIIQ", body[:24])
            if kind == FORK:
                self.forks.append(dict(pid=pid, ppid=ppid, tid=tid, ptid=ptid, time=when))
        elif kind == MMAP2:
            pid, tid, start, size, offset = struct.unpack("<IIQQQ", body[:32])
            build_id = body[36:36 + body[32]].hex() if misc & 0x4000 else ""
            self.maps.append(dict(pid=pid, tid=tid, start=start, size=size, offset=offset, build_id=build_id,
                                  kernel=misc & 7 == 1, path=text(body[64:]), time=tail.get("time", 0)))
        elif kind == MMAP:
            pid, tid, start, size, offset = struct.unpack("<IIQQQ", body[:32])
            self.maps.append(dict(pid=pid, tid=tid, start=start, size=size, offset=offset, build_id="",
                                  kernel=misc & 7 == 1, path=text(body[32:]), time=tail.get("time", 0)))
        elif kind == LOST:
            self.lost_records += struct.unpack("<QQ", body[:16])[1]
        elif kind == LOST_SAMPLES:
            self.lost_samples += struct.unpack("<Q", body[:8])[0]
        elif kind == THROTTLE:
            self.throttled += 1
        return tail.get("time", 0)

    def sample(self, misc, body):
        kind, at = self.attrs[0]["sample_type"], 0
        one = dict(user=misc & 7 == 2, event=0)

        def word():
            nonlocal at
            at += 8
            return struct.unpack("<Q", body[at - 8:at])[0]

        if kind & IDENTIFIER:
            one["event"] = self.by_id[word()]
        one["ip"] = word()
        pids = word()
        one["pid"], one["tid"], one["time"] = pids & 0xffffffff, pids >> 32, word()
        if kind & ADDR:
            one["addr"] = word()
        if kind & ID:
            one["event"] = self.by_id[word()]
        if kind & STREAM:
            word()
        if kind & CPU:
            one["cpu"] = word() & 0xffffffff
        attr = self.attrs[one["event"]]
        one["period"] = word() if kind & PERIOD else attr["period"]
        if kind & READV:
            group = attr["read_format"] & 8
            words = bin(attr["read_format"] & 3).count("1")
            per = 1 + bool(attr["read_format"] & 4) + bool(attr["read_format"] & 16)
            count = word() if group else 1
            one["read"] = [word() for _ in range(words + count * per)]
        if kind & CHAIN:
            one["chain"] = [word() for _ in range(word())]
        if kind & RAW:
            size = struct.unpack("<I", body[at:at + 4])[0]
            one["raw"] = body[at + 4:at + 4 + size]
            at += 4 + size
        if kind & BRANCH:
            count = word()
            one["branches"] = [(word(), word(), word()) for _ in range(count)]
        if kind & REGS:
            one["regs"] = [word() for _ in range(bin(attr["regs"]).count("1"))] if word() else None
        if kind & STACK:
            size = word()
            one["stack"] = body[at:at + size]
            at += size
            one["stack_used"] = word() if size else 0
        if at != len(body):
            raise Broken(f"a sample of {len(body)} bytes has {at} bytes of fields")
        self.samples.append(one)
        return one["time"]

    # What tests ask for

    @property
    def lost(self):
        return max(self.lost_records, self.lost_samples)

    def tids(self):
        return {s["tid"] for s in self.samples}

    def pids(self):
        return {s["pid"] for s in self.samples}

    def seconds(self):
        times = [s["time"] for s in self.samples]
        return (max(times) - min(times)) / 1e9 if times else 0

    def thread_names(self):
        """The names under which threads were sampled, as of the time of each sample."""
        names, result = {}, set()
        changes = [(c["time"], 0, c["tid"], c) for c in self.comms] + [(f["time"], -1, f["tid"], f) for f in self.forks]
        changes += [(s["time"], 1, s["tid"], s) for s in self.samples]
        for _, order, tid, what in sorted(changes, key=lambda c: c[:3]):
            if order == 0:
                names[tid] = what["comm"]
            elif order == -1:
                names.setdefault(tid, names.get(what["ptid"], "?"))
            else:
                result.add(names.get(tid, "?"))
        return result

    def summary(self):
        return dict(complete=self.complete, samples=len(self.samples), lost=self.lost, throttled=self.throttled,
                    seconds=self.seconds(), counts=self.counts, features=sorted(self.features), cut=self.cut,
                    events=[a.get("name") for a in self.attrs])


def main():
    try:
        d = Recording(sys.argv[1])
    except (Broken, struct.error, KeyError, IndexError) as error:
        sys.exit(f"{sys.argv[1]}: {error!r}")
    if len(sys.argv) < 3:
        print(json.dumps(d.summary(), indent=1))
    elif not eval(sys.argv[2], {"d": d, **globals()}):  # the tests' own expressions
        sys.exit(f"{sys.argv[1]}: not so: {sys.argv[2]}\n{json.dumps(d.summary())}")


if __name__ == "__main__":
    main()
