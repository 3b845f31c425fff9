"""Initial RAM disks: cpio archives in the "newc" form that the kernel unpacks (its
Documentation/driver-api/early-userspace/buffer-format.rst), and the libraries a program needs."""
import os
import pathlib
import re
import stat
import subprocess


class Cpio:
    """One archive in memory. Several may follow each other: the kernel unpacks them all."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.inode = 0
        self.seen: set[str] = set()

    def add(self, name: str, mode: int, data: bytes = b"", rdev: tuple[int, int] = (0, 0)) -> None:
        name = name.strip("/")
        if name in self.seen:
            return
        parent = os.path.dirname(name)
        if parent:
            self.folder(parent)
        self.seen.add(name)
        self.entry(name, mode, data, rdev)

    def entry(self, name: str, mode: int, data: bytes, rdev: tuple[int, int]) -> None:
        self.inode += 1
        raw = name.encode() + b"\0"
        fields = (self.inode, mode, 0, 0, 1, 0, len(data), 0, 0, *rdev, len(raw), 0)
        head = b"070701" + b"".join(b"%08x" % field for field in fields) + raw
        self.parts += [head, b"\0" * (-len(head) % 4), data, b"\0" * (-len(data) % 4)]

    def folder(self, name: str) -> None:
        self.add(name, stat.S_IFDIR | 0o755)

    def file(self, name: str, source: pathlib.Path, mode: int | None = None) -> None:
        source = source.resolve()
        if mode is None:
            mode = 0o755 if os.access(source, os.X_OK) else 0o644
        self.add(name, stat.S_IFREG | mode, source.read_bytes())

    def text(self, name: str, text: str, mode: int = 0o644) -> None:
        self.add(name, stat.S_IFREG | mode, text.encode())

    def link(self, name: str, target: str) -> None:
        self.add(name, stat.S_IFLNK | 0o777, target.encode())

    def tree(self, name: str, source: pathlib.Path) -> None:
        """A file, or a folder with all that is in it."""
        if not source.is_dir():
            self.file(name, source)
            return
        self.folder(name)
        for path in sorted(source.iterdir()):
            self.tree(f"{name}/{path.name}", path)

    def bytes(self) -> bytes:
        self.entry("TRAILER!!!", 0, b"", (0, 0))
        blob = b"".join(self.parts)
        return blob + b"\0" * (-len(blob) % 512)


def dynamic(path: pathlib.Path) -> tuple[list[str], str | None]:
    """What a program or library needs at run time: sonames and the interpreter."""
    out = subprocess.run(["readelf", "-W", "-l", "-d", path], capture_output=True, text=True).stdout
    interpreter = re.search(r"program interpreter: ([^\]]+)\]", out)
    return re.findall(r"\(NEEDED\).*\[([^\]]+)\]", out), interpreter.group(1) if interpreter else None


def add_program(cpio: Cpio, name: str, program: pathlib.Path, roots: list[pathlib.Path], triplet: str) -> None:
    """Adds a program and, from the first root that has them, its interpreter and libraries."""
    cpio.file(name, program, 0o755)
    queue, done = [program], set()
    while queue:
        needed, interpreter = dynamic(queue.pop())
        if interpreter:
            cpio.file(interpreter, find_library(interpreter.lstrip("/"), roots, [""]), 0o755)
        for soname in needed:
            if soname in done:
                continue
            done.add(soname)
            found = find_library(soname, roots, [f"usr/lib/{triplet}", f"lib/{triplet}", "usr/lib", "lib"])
            cpio.file(f"usr/lib/{triplet}/{soname}", found, 0o755)
            queue.append(found)


def find_library(name: str, roots: list[pathlib.Path], folders: list[str]) -> pathlib.Path:
    for root in roots:
        for folder in folders:
            if (root / folder / name).exists():
                return root / folder / name
    raise FileNotFoundError(f"{name}: in none of the guest's unpacked packages")
