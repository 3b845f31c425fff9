"""One boot: start QEMU, run a command as part of init, pass on its output and exit status.

The guest has one serial line. Init marks what belongs to the command with a token that is new in every
boot; everything before (firmware, kernel) is kept only to explain a guest that died. With separate=True the
command's standard error is held back in the guest and arrives behind its output, so that output which a
program parses stays clean.
"""
import base64
import dataclasses
import os
import pathlib
import secrets
import selectors
import shlex
import subprocess
import sys
import time

from . import EXIT_BROKEN, EXIT_TIMEOUT

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


@dataclasses.dataclass
class Job:
    command: list[str]
    timeout_s: float
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
        if self.state.startswith("file:"):
            self.files[self.state[5:]] = base64.b64decode(bytes(self.file))
        self.file = bytearray()
        self.state = word
        if word.startswith("end:"):
            self.status = int(word[4:])

    def emit(self, data: bytes) -> None:
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
    argv = [*machine.qemu, "-display", "none", "-monitor", "none", "-serial", "stdio", "-no-reboot", "-net", "none",
            "-kernel", str(machine.kernel), "-initrd", str(initrd),
            "-append", f"console={machine.console} quiet loglevel=1 panic=-1 rdinit=/init {machine.append}".strip()]
    last = overlay(job, token)
    try:
        with initrd.open("wb") as out:
            for blob in [*initrds, last]:
                out.write(blob)
        return watch(argv, Console(job, token), job)
    finally:
        initrd.unlink(missing_ok=True)


def overlay(job: Job, token: str) -> bytes:
    from .initrd import Cpio
    cpio = Cpio()
    cpio.text("guest/command", command_text(job.command))
    cpio.text("guest/token", f"TOKEN={token}\nSEPARATE={int(job.separate)}\nGET={shlex.quote(' '.join(job.get))}\n")
    return cpio.bytes()


def watch(argv: list[str], console: Console, job: Job) -> int:
    deadline = time.monotonic() + job.timeout_s
    qemu = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        with selectors.DefaultSelector() as selector:
            selector.register(qemu.stdout, selectors.EVENT_READ)
            while console.status is None:
                left = deadline - time.monotonic()
                if left <= 0:
                    print(f"guest: no end after {job.timeout_s:g} s, stopped", file=sys.stderr)
                    return EXIT_TIMEOUT
                if not selector.select(min(left, 1.0)):
                    continue
                data = os.read(qemu.stdout.fileno(), 65536)
                if not data:
                    break
                console.feed(data)
    finally:
        if console.status is None:
            qemu.kill()
        else:
            try:
                qemu.wait(timeout=5)
            except subprocess.TimeoutExpired:
                qemu.kill()
        errors = qemu.stderr.read().decode(errors="replace").strip()
        qemu.wait()
        qemu.stdout.close()
        qemu.stderr.close()
    if console.status is None:
        tail = "\n".join(console.boot.decode(errors="replace").splitlines()[-20:])
        print(f"guest: died before its command ended\n{errors}\n{tail}".rstrip(), file=sys.stderr)
        return EXIT_BROKEN
    for name, target in job.get.items():
        if console.files.get(name):
            target.write_bytes(console.files[name])
        else:
            print(f"guest: {name}: no such file in the guest, or empty", file=sys.stderr)
    return console.status
