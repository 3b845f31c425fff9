"""Debian packages of any architecture, fetched with apt into a folder of our own.

The system's package lists, status and cache are neither read nor changed: apt gets its own folders, the
Debian sources of this machine and an empty status, so that "install --download-only" names the whole
closure of a package's dependencies.
"""
import os
import pathlib
import re
import shutil
import subprocess
import time

from . import Unavailable

LISTS_MAX_AGE_S = 7 * 24 * 3600


class Packages:
    def __init__(self, arch: str, cache: pathlib.Path):
        self.arch = arch
        self.home = cache / arch / "apt"
        self.archives = self.home / "archives"
        self.fresh = False

    def options(self) -> list[str]:
        home = self.home
        return [f"-o{name}={value}" for name, value in (
            ("APT::Architecture", self.arch), ("APT::Architectures", self.arch),
            ("APT::Sandbox::User", "root"), ("Acquire::Languages", "none"), ("Acquire::Retries", "2"),
            ("Dir::State::Lists", home / "lists"), ("Dir::State::status", home / "status"),
            ("Dir::Cache", home), ("Dir::Cache::archives", self.archives),
            ("Dir::Etc::SourceList", "/dev/null"), ("Dir::Etc::SourceParts", home / "sources"),
            ("Dir::Etc::PreferencesParts", "/dev/null"), ("Debug::NoLocking", "1"))]

    def run(self, tool: str, *args: str, cwd: pathlib.Path | None = None) -> str:
        done = subprocess.run([tool, *self.options(), *args], cwd=cwd, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, env={**os.environ, "LC_ALL": "C"})
        if done.returncode != 0:
            words = [line for line in done.stderr.splitlines() if line.startswith(("E:", "W:"))]
            raise Unavailable(f"{tool} {' '.join(args)} ({self.arch}): {words[0] if words else 'failed'}")
        return done.stdout

    def prepare(self) -> None:
        """Own folders, the machine's Debian sources, lists not older than a week."""
        if self.fresh:
            return
        if not shutil.which("apt-get") or not shutil.which("dpkg-deb"):
            raise Unavailable("apt-get and dpkg-deb are needed to fetch Debian packages")
        for folder in ("lists/partial", "archives/partial", "sources"):
            (self.home / folder).mkdir(parents=True, exist_ok=True)
        (self.home / "status").touch()
        count = 0
        etc = pathlib.Path("/etc/apt")
        for path in [etc / "sources.list", *sorted(etc.glob("sources.list.d/*"))]:
            if path.suffix not in (".list", ".sources") or not path.is_file():
                continue
            text = path.read_text(errors="replace")
            if re.search(r"^(deb\s|URIs:).*debian", text, re.MULTILINE):
                shutil.copy(path, self.home / "sources" / path.name)
                count += 1
        if count == 0:
            raise Unavailable("no Debian sources in /etc/apt: packages of a guest cannot be fetched")
        stamp = self.home / "lists-updated"
        if not stamp.exists() or time.time() - stamp.stat().st_mtime > LISTS_MAX_AGE_S:
            self.run("apt-get", "update")
            stamp.touch()
        self.fresh = True

    def newest(self, meta: str) -> str:
        """The package that a meta package such as linux-image-arm64 depends on now."""
        self.prepare()
        for line in self.run("apt-cache", "depends", "--no-recommends", meta).splitlines():
            match = re.match(r"\s*Depends: (\S+)", line)
            if match:
                return match.group(1)
        raise Unavailable(f"the package {meta} ({self.arch}) names no kernel")

    def unpacked(self, target: pathlib.Path, names: list[str], closure: bool) -> pathlib.Path:
        """The folder target with these packages (closure: and what they depend on) unpacked in it."""
        stamp = target / ".complete"
        want = " ".join(names)
        if stamp.exists() and stamp.read_text() == want:
            return target
        self.prepare()
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        if closure:
            out = self.run("apt-get", "-y", "--no-install-recommends", "--print-uris", "install", *names)
            files = [line.split()[1] for line in out.splitlines() if line.startswith("'")]
            self.run("apt-get", "-y", "-q", "--no-install-recommends", "--download-only", "install", *names)
        else:
            files = []
            for name in names:
                before = set(self.archives.glob(f"{name}_*.deb"))
                self.run("apt-get", "-q", "download", name, cwd=self.archives)
                found = set(self.archives.glob(f"{name}_*.deb"))
                files.append(max(found - before or found, key=lambda p: p.stat().st_mtime).name)
        for file in files:
            path = self.archives / file
            subprocess.run(["dpkg-deb", "-x", path, target], check=True)
            path.unlink()
        merge_usr(target)
        mend_links(target)
        stamp.write_text(want)
        return target


def merge_usr(root: pathlib.Path) -> None:
    """/lib and friends become links into /usr, as on an installed system."""
    for name in ("lib", "lib64", "bin", "sbin"):
        old, new = root / name, root / "usr" / name
        if old.is_symlink() or not old.is_dir():
            continue
        new.mkdir(parents=True, exist_ok=True)
        subprocess.run(["cp", "-a", "--remove-destination", f"{old}/.", f"{new}/"], check=True)
        shutil.rmtree(old)
        old.symlink_to(f"usr/{name}")


def mend_links(root: pathlib.Path) -> None:
    """Absolute links would lead out of the folder to this machine's own libraries."""
    for folder, dirs, files in os.walk(root):
        for name in dirs + files:
            path = pathlib.Path(folder, name)
            if path.is_symlink() and os.readlink(path).startswith("/"):
                target = root / os.readlink(path).lstrip("/")
                path.unlink()
                path.symlink_to(os.path.relpath(target, folder))
