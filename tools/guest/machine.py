"""One boot: start QEMU, run a command as part of init, pass on its output and exit status.

The guest has one serial line. Init marks what belongs to the command with a token that is new in every
boot; everything before (firmware, kernel) is kept only to explain a guest that died. With separate=True the
command's standard error is held back in the guest and arrives behind its output, so that output which a
program parses stays clean.

A guest that says nothing for long is stopped. Whether its kernel still ran then, and at the pace of this
machine's clock, is told by its heartbeat, a word each second from a process above every other priority;
where its CPUs were, by the monitor.
"""
import base64
import dataclasses
import os
import pathlib
import re
import secrets
import selectors
import shlex
import socket
import subprocess
import sys
import tempfile
import time

from . import EXIT_BROKEN, EXIT_SILENT, EXIT_STALLED, EXIT_TIMEOUT

PACE_MOST = 3.0  # heartbeats for each second (or seconds for each) that make a guest's time useless

INIT = """#!/bin/busybox sh
/bin/busybox mkdir -p /proc /sys /dev /tmp /run /root /etc /sbin /usr/sbin /mnt
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sysfs /sys
/bin/busybox mount -t devtmpfs devtmpfs /dev
/bin/busybox --install -s /bin
export PATH=/usr/bin:/bin:/usr/sbin:/sbin HOME=/root TERM=dumb LANG=C
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs tmpfs /dev/shm
mount -t tmpfs tmpfs /tmp
mount -t tracefs tracefs /sys/kernel/tracing
mount -t debugfs debugfs /sys/kernel/debug 2>/dev/null
mount -t cgroup2 cgroup2 /sys/fs/cgroup 2>/dev/null
ifconfig lo up 2>/dev/null
hostname guest
echo -1 >/proc/sys/kernel/perf_event_paranoid
echo 0 >/proc/sys/kernel/kptr_restrict
[ -e /proc/sys/kernel/perf_user_access ] && echo 1 >/proc/sys/kernel/perf_user_access
[ -d /guest/modules ] && for m in /guest/modules/*.ko; do [ -e "$m" ] && insmod "$m"; done
stty -opost -echo </dev/console
. /guest/token
cd /root
[ -e /guest/heartbeat ] && /guest/heartbeat "$(printf '\\036%s:beat\\036' "$TOKEN")" &
printf '\\036%s:begin\\036' "$TOKEN"
if [ "$SEPARATE" = 1 ]; then
	sh /guest/command </dev/null 2>/tmp/.stderr
	status=$?
	printf '\\036%s:stderr\\036' "$TOKEN"
	cat /tmp/.stderr
else
	sh /guest/command </dev/null 2>&1
	status=$?
fi
for file in $GET; do
	printf '\\036%s:file:%s\\036' "$TOKEN" "$file"
	[ -f "$file" ] && base64 "$file"
done
printf '\\036%s:end:%s\\036\\n' "$TOKEN" "$status"
sleep 0.1
poweroff -f
"""


@dataclasses.dataclass
class Machine:
    qemu: list[str]          # program and machine options
    kernel: pathlib.Path
    console: str             # what the kernel calls its serial line
    append: str = ""
    heartbeat: bool = False


@dataclasses.dataclass
class Job:
    command: list[str]
    timeout_s: float
    silence_s: float         # so long it may say nothing
    separate: bool = False
    get: dict[str, pathlib.Path] = dataclasses.field(default_factory=dict)
    verbose: bool = False


def command_text(command: list[str]) -> str:
    """One argument is a shell script, several are the words of one command."""
    return command[0] + "\n" if len(command) == 1 else shlex.join(command) + "\n"


class Console:
    """Splits the serial line's bytes at the marks of one token."""

    def __init__(self, job: Job, token: str):
        self.job, self.mark = job, b"\x1e" + token.encode() + b":"
        self.state, self.pending, self.boot = "boot", b"", bytearray()
        self.file: bytearray = bytearray()
        self.files: dict[str, bytes] = {}
        self.status: int | None = None
        self.begun = False
        self.said = time.monotonic()
        self.beats: list[float] = []

    def feed(self, data: bytes) -> None:
        self.pending += data
        while True:
            at = self.pending.find(self.mark)
            end = self.pending.find(b"\x1e", at + len(self.mark)) if at >= 0 else -1
            if end < 0:
                break
            self.emit(self.pending[:at])
            self.turn(self.pending[at + len(self.mark):end].decode())
            self.pending = self.pending[end + 1:]
        if b"\x1e" not in self.pending:
            self.emit(self.pending)
            self.pending = b""
        elif len(self.pending) > 4096 and self.mark not in self.pending:
            self.emit(self.pending[:-256])
            self.pending = self.pending[-256:]

    def turn(self, word: str) -> None:
        if word == "beat":
            self.beats.append(time.monotonic())
            return
        if self.state.startswith("file:"):
            self.files[self.state[5:]] = base64.b64decode(bytes(self.file))
        self.file = bytearray()
        self.state = word
        self.begun |= word == "begin"
        if word.startswith("end:"):
            self.status = int(word[4:])

    def before(self) -> str:
        """The last of what came before the command's output."""
        return "\n".join(self.boot.decode(errors="replace").splitlines()[-20:])

    def emit(self, data: bytes) -> None:
        if data:
            self.said = time.monotonic()
        if self.state == "boot":
            self.boot += data
            if self.job.verbose:
                write(2, data)
        elif self.state == "begin":
            write(1, data)
        elif self.state == "stderr":
            write(2, data)
        elif self.state.startswith("file:"):
            self.file += data


def write(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data):]


def boot(machine: Machine, initrds: list[bytes], home: pathlib.Path, job: Job) -> int:
    """Boots, runs the job, returns its exit status (or EXIT_TIMEOUT, EXIT_BROKEN with words on stderr)."""
    token = secrets.token_hex(8)
    initrd = home / f"initrd-{os.getpid()}"
    monitor = home / f"monitor-{os.getpid()}"
    argv = [*machine.qemu, "-display", "none", "-monitor", f"unix:{monitor},server,nowait", "-serial", "stdio", "-no-reboot", "-net", "none",
            "-kernel", str(machine.kernel), "-initrd", str(initrd),
            "-append", f"console={machine.console} quiet loglevel=1 panic=-1 nokaslr rdinit=/init {machine.append}".strip()]
    last = overlay(job, token)
    try:
        with initrd.open("wb") as out:
            for blob in [*initrds, last]:
                out.write(blob)
        return Boot(machine, job, Console(job, token), monitor).run(argv)
    finally:
        initrd.unlink(missing_ok=True)
        monitor.unlink(missing_ok=True)


def overlay(job: Job, token: str) -> bytes:
    from .initrd import Cpio
    cpio = Cpio()
    cpio.text("guest/command", command_text(job.command))
    cpio.text("guest/token", f"TOKEN={token}\nSEPARATE={int(job.separate)}\nGET={shlex.quote(' '.join(job.get))}\n")
    return cpio.bytes()


@dataclasses.dataclass
class Boot:
    """A running QEMU."""
    machine: Machine
    job: Job
    console: Console
    monitor: pathlib.Path

    def run(self, argv: list[str]) -> int:
        with tempfile.TemporaryFile() as errors:
            qemu = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors)
            try:
                overdue = self.watch(qemu)
            finally:
                if self.console.status is None:
                    qemu.kill()
                try:
                    qemu.wait(timeout=5)
                except subprocess.TimeoutExpired:
                    qemu.kill()
                    qemu.wait()
                qemu.stdout.close()
            errors.seek(0)
            words = errors.read().decode(errors="replace").strip()
        if overdue is not None:
            return overdue
        if self.console.status is None:
            print(f"guest: died before its command ended\n{words}\n{self.console.before()}".rstrip(), file=sys.stderr)
            return EXIT_BROKEN
        if not self.console.begun:
            print(f"guest: the mark where its command's output begins was lost on its line:\n{self.console.before()}", file=sys.stderr)
        for name, target in self.job.get.items():
            if self.console.files.get(name):
                target.write_bytes(self.console.files[name])
            else:
                print(f"guest: {name}: no such file in the guest, or empty", file=sys.stderr)
        return self.console.status

    def watch(self, qemu: subprocess.Popen) -> int | None:
        """Passes output on to the end of the command or of QEMU; a status when the guest took too long."""
        deadline = time.monotonic() + self.job.timeout_s
        with selectors.DefaultSelector() as selector:
            selector.register(qemu.stdout, selectors.EVENT_READ)
            while self.console.status is None:
                now = time.monotonic()
                if now > deadline or now > self.console.said + self.job.silence_s:
                    return self.stop(now, now > deadline)
                if not selector.select(1.0):
                    continue
                data = os.read(qemu.stdout.fileno(), 65536)
                if not data:
                    break
                self.console.feed(data)
        return None

    def stop(self, now: float, late: bool) -> int:
        limit = f"no end after {self.job.timeout_s:g} s" if late else f"silent for {self.job.silence_s:g} s"
        heart, sound = self.heart(now)
        print(f"guest: {limit}{heart}, stopped while its CPUs were at: {self.places()}", file=sys.stderr)
        return EXIT_TIMEOUT if late else EXIT_SILENT if sound else EXIT_STALLED

    def heart(self, now: float) -> tuple[str, bool]:
        """Words about the heartbeat during the silence, and whether time in the guest passed as it does here."""
        if not self.machine.heartbeat:
            return "", True
        if not self.console.beats:
            return " (no heartbeat yet)", False
        since = max(self.console.said, self.console.beats[0])
        count = sum(beat > since for beat in self.console.beats)
        pace = count / max(now - since, 1.0)
        return (f" (heartbeats: {count} in {now - since:.0f} s)", 1 / PACE_MOST <= pace <= PACE_MOST)

    def places(self) -> str:
        """Addresses that the CPUs are at, by frequency over two seconds; /proc/kallsyms of another start of
        the same kernel names them, as its address is not randomized."""
        counts: dict[str, int] = {}
        try:
            with socket.socket(socket.AF_UNIX) as line:
                line.settimeout(2)
                line.connect(str(self.monitor))
                for _ in range(20):
                    line.sendall(b"info registers -a\n")
                    time.sleep(0.1)
                    for cpu, pc in re.findall(r"CPU#(\d+).*?(?:RIP|PC)=([0-9a-f]+)", line.recv(1 << 16).decode(), re.DOTALL):
                        place = f"CPU {cpu} {pc}"
                        counts[place] = counts.get(place, 0) + 1
        except OSError as error:
            return f"not known ({error})"
        return ", ".join(f"{place} ({n})" for place, n in sorted(counts.items(), key=lambda item: -item[1])[:12])

