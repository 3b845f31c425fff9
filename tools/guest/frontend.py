"""The command line that the guests share, and what goes into their initial RAM disk."""
import argparse
import contextlib
import dataclasses
import fcntl
import os
import pathlib
import shutil
import sys

from . import EXIT_UNAVAILABLE, Unavailable, build, initrd, machine
from .packages import Packages

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent


# What culprit's measuring executable is built with.
BUILD_PACKAGES = ["libc6-dev", "zlib1g-dev", "libzstd-dev", "liblzma-dev", "libiberty-dev",
                  "libxxhash-dev", "libbpf-dev", "libtraceevent-dev", "libtracefs-dev"]

# The processors take turns on one thread. On threads of their own QEMU (7.2 at least) now and then keeps running a breakpoint
# that the kernel put into its code for a moment while it switched a tracepoint on: both processors trap there for ever.
EMULATION = "tcg,thread=single"


@dataclasses.dataclass
class Guest:
    """What distinguishes one guest from another."""
    name: str
    arch: str                       # Debian's name
    triplet: str
    family: str                     # meson's cpu family
    qemu: str                       # program; its package is qemu_package
    qemu_package: str
    compiler_package: str
    kernel_meta: str                # the meta package that names the newest kernel
    console: str
    sysroot_packages: list[str]     # development packages for building culprit
    tools: dict[str, str]           # option of the front end: package whose program is added
    heartbeat: bool = False         # tell a kernel that stands still from a command that does


def cache_folder() -> pathlib.Path:
    return pathlib.Path(os.environ.get("CULPRIT_GUEST_CACHE") or SOURCE / "build" / "guest")


def parser(guest: Guest, about: str) -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(prog=guest.name, description=about, usage=f"tools/{guest.name} [OPTIONS] -- COMMAND...",
                                epilog="Exit status: that of COMMAND; 77 when the guest cannot be had here (one line says "
                                       "why), 122 after a silence, 123 when its kernel stood still then or its clock ran away, 124 after the timeout, 125 when the guest "
                                       "died.")
    p.add_argument("--with", dest="extra", action="append", default=[], metavar="FILE[:DEST]",
                   help="put a file or folder into the guest (DEST: /root/NAME)")
    p.add_argument("--cc", action="append", default=[], metavar="FILE.c",
                   help="compile a C program statically for the guest; it is /usr/bin/FILE there")
    p.add_argument("--get", action="append", default=[], metavar="FILE[:DEST]",
                   help="afterwards fetch a file from the guest (DEST: its name here)")
    p.add_argument("--script", metavar="FILE", help="run a shell script of this machine instead of COMMAND")
    p.add_argument("--separate", action="store_true", help="hold standard error back until the command has ended")
    p.add_argument("--smp", type=int, default=2, metavar="N", help="CPUs (default: 2)")
    p.add_argument("--memory", type=int, default=1024, metavar="MIB", help="memory (default: 1024 MiB)")
    p.add_argument("--timeout", type=float, default=120, metavar="S", help="give up after S seconds (default: 120)")
    p.add_argument("--silence", type=float, metavar="S", help="give up when nothing was said for S seconds")
    p.add_argument("--no-culprit", action="store_true", help="do not build culprit and leave it out")
    p.add_argument("--prepare", action="store_true", help="fetch and build everything, boot nothing")
    p.add_argument("--verbose", action="store_true", help="show the kernel's messages too")
    for option, package in guest.tools.items():
        p.add_argument(f"--{option}", action="store_true", help=f"add the programs of {package}")
    p.add_argument("command", nargs="*", help=argparse.SUPPRESS)
    return p


@contextlib.contextmanager
def locked(home: pathlib.Path):
    """Two starts at once would fetch and build the same things."""
    home.mkdir(parents=True, exist_ok=True)
    with (home / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def pair(text: str, default_folder: str) -> tuple[str, str]:
    left, _, right = text.partition(":")
    return left, right or f"{default_folder}{pathlib.PurePath(left).name}"


def base_initrd(guest: Guest, home: pathlib.Path, packages: Packages) -> bytes:
    """The part that never changes: busybox, init, an empty tree in the usual shape."""
    cached = home / "base.cpio"
    stamp = home / "base.init"
    if cached.exists() and stamp.exists() and stamp.read_text() == machine.INIT:
        return cached.read_bytes()
    busybox = packages.unpacked(home / "busybox", ["busybox-static"], closure=False)
    cpio = initrd.Cpio()
    for name in ("usr/bin", "usr/lib", "usr/lib64", "usr/sbin", "dev", "guest", "etc", "root"):
        cpio.folder(name)
    for name in ("bin", "lib", "lib64"):
        cpio.link(name, f"usr/{name}")
    program = busybox / "usr/bin/busybox"
    cpio.file("usr/bin/busybox", program if program.exists() else busybox / "bin/busybox", 0o755)
    cpio.text("init", machine.INIT, 0o755)
    cpio.text("etc/passwd", "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n")
    cpio.text("etc/group", "root:x:0:\n")
    cpio.add("dev/console", 0o020600, rdev=(5, 1))
    blob = cpio.bytes()
    cached.write_bytes(blob)
    stamp.write_text(machine.INIT)
    return blob


def kernel(guest: Guest, home: pathlib.Path, packages: Packages) -> pathlib.Path:
    folder = home / "kernel"
    if not (folder / ".complete").exists():
        packages.prepare()
        packages.unpacked(folder, [packages.newest(guest.kernel_meta)], closure=False)
    found = sorted(folder.glob("boot/vmlinuz-*"))
    if not found:
        raise Unavailable(f"the kernel package in {folder} holds no kernel: remove the folder and try again")
    return found[-1]


def add_tools(guest: Guest, args: argparse.Namespace, home: pathlib.Path, packages: Packages) -> bytes:
    """Programs of other packages with their libraries; the archive is kept."""
    blobs = b""
    for option, package in guest.tools.items():
        if not getattr(args, option.replace("-", "_")):
            continue
        cached = home / f"tool-{option}.cpio"
        if not cached.exists():
            root = packages.unpacked(home / f"tool-{option}", [package], closure=True)
            cpio = initrd.Cpio()
            listing = root / f"usr/share/doc/{package}"
            if not listing.exists():
                raise Unavailable(f"the package {package} ({guest.arch}) unpacked to nothing")
            for program in TOOL_PROGRAMS[package]:
                initrd.add_program(cpio, f"usr/bin/{program}", root / "usr/bin" / program, [root], guest.triplet)
            cached.write_bytes(cpio.bytes())
        blobs += cached.read_bytes()
    return blobs


TOOL_PROGRAMS = {"linux-perf": ["perf"], "rtla": ["rtla"], "rt-tests": ["cyclictest", "oslat", "hwlatdetect"],
                 "trace-cmd": ["trace-cmd"], "strace": ["strace"]}


def contents(guest: Guest, args: argparse.Namespace, home: pathlib.Path, packages: Packages) -> list[bytes]:
    blobs = [base_initrd(guest, home, packages), add_tools(guest, args, home, packages)]
    cpio = initrd.Cpio()
    sysroot = home / "sysroot"
    if not args.no_culprit or args.cc or guest.heartbeat:
        build.need_compiler(guest.triplet, guest.compiler_package)
        packages.unpacked(sysroot, guest.sysroot_packages, closure=True)
    if not args.no_culprit:
        folder = build.culprit(SOURCE, home, sysroot, guest.triplet, guest.family)
        initrd.add_program(cpio, "usr/bin/culprit", folder / "culprit", [sysroot], guest.triplet)
    if guest.heartbeat:
        program = build.program(pathlib.Path(__file__).with_name("heartbeat.c"), SOURCE, home, sysroot, guest.triplet)
        cpio.file("guest/heartbeat", program, 0o755)
    for source in args.cc:
        program = build.program(pathlib.Path(source), SOURCE, home, sysroot, guest.triplet)
        cpio.file(f"usr/bin/{program.name}", program, 0o755)
    for text in args.extra:
        source, target = pair(text, "root/")
        if not pathlib.Path(source).exists():
            raise SystemExit(f"guest: --with {source}: no such file")
        cpio.tree(target, pathlib.Path(source))
    return [*blobs, cpio.bytes()]


def main(guest: Guest, args: argparse.Namespace, qemu_options: list[str], append: str = "") -> int:
    command = args.command
    if args.script:
        command = [pathlib.Path(args.script).read_text()]
    if not command and not args.prepare:
        print(f"{guest.name}: no command: tools/{guest.name} [OPTIONS] -- COMMAND...", file=sys.stderr)
        return 1
    home = cache_folder() / guest.arch
    try:
        qemu = shutil.which(guest.qemu)
        if not qemu:
            raise Unavailable(f"no {guest.qemu}: apt-get install {guest.qemu_package}")
        packages = Packages(guest.arch, cache_folder())
        with locked(home):
            blobs = contents(guest, args, home, packages)
            image = kernel(guest, home, packages)
    except Unavailable as reason:
        print(f"{guest.name}: not available: {reason}", file=sys.stderr)
        return EXIT_UNAVAILABLE
    if args.prepare:
        return 0
    job = machine.Job(command, args.timeout, args.silence or args.timeout, args.separate, verbose=args.verbose,
                      get={name: pathlib.Path(target) for name, target in (pair(text, "") for text in args.get)})
    what = machine.Machine([qemu, *qemu_options, "-m", str(args.memory)], image, guest.console, append, guest.heartbeat)
    return machine.boot(what, blobs, home, job)
