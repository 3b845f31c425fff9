"""Building for a guest: culprit itself by meson, small test programs by the compiler alone."""
import os
import pathlib
import shutil
import subprocess
import sys

from . import Unavailable

CROSS_FILE = """# written by tools/guest; paths of this machine
[binaries]
c = '{triplet}-gcc'
ar = '{triplet}-ar'
strip = '{triplet}-strip'
pkgconfig = 'pkg-config'
pkg-config = 'pkg-config'

[properties]
sys_root = '{sysroot}'
pkg_config_libdir = ['{sysroot}/usr/lib/{triplet}/pkgconfig', '{sysroot}/usr/share/pkgconfig']
needs_exe_wrapper = true

[built-in options]
c_args = ['--sysroot={sysroot}']
c_link_args = ['--sysroot={sysroot}']

[host_machine]
system = 'linux'
cpu_family = '{family}'
cpu = '{family}'
endian = 'little'
"""


def need_compiler(triplet: str, package: str) -> str:
    compiler = shutil.which(f"{triplet}-gcc")
    if not compiler:
        raise Unavailable(f"no cross compiler {triplet}-gcc: apt-get install {package}")
    return compiler


def run(what: str, argv: list[object]) -> None:
    done = subprocess.run([str(arg) for arg in argv], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        sys.stderr.write(done.stdout)
        raise SystemExit(f"guest: {what} failed with status {done.returncode}")


def culprit(source: pathlib.Path, home: pathlib.Path, sysroot: pathlib.Path, triplet: str, family: str) -> pathlib.Path:
    """The folder of a release build of the source tree for the guest, brought up to date."""
    build = home / "culprit"
    cross = home / "cross.txt"
    cross.write_text(CROSS_FILE.format(triplet=triplet, sysroot=sysroot, family=family))
    if not (build / "build.ninja").exists():
        shutil.rmtree(build, ignore_errors=True)
        run("setting up the build for the guest", [
            "meson", "setup", build, source, "--cross-file", cross, "--buildtype=release", "-Dtests=false"])
    run("building culprit for the guest", ["ninja", "-C", build, f"-j{os.cpu_count() or 1}"])
    return build


def program(source: pathlib.Path, tree: pathlib.Path, home: pathlib.Path, sysroot: pathlib.Path,
            triplet: str) -> pathlib.Path:
    """A test program of one C file, linked statically, with libculprit when it includes its header; built
    again when its source or the library is newer."""
    if not source.exists():
        raise SystemExit(f"guest: --cc {source}: no such file")
    library = home / "culprit" / "lib" / "libculprit.a"
    extra, newest = [], source.stat().st_mtime
    if '#include "culprit.h"' in source.read_text():
        extra = [f"-I{tree}/include", library]
        newest = max(newest, library.stat().st_mtime)
    target = home / "programs" / source.stem
    target.parent.mkdir(parents=True, exist_ok=True)
    if not target.exists() or target.stat().st_mtime < newest:
        run(f"compiling {source}", [f"{triplet}-gcc", f"--sysroot={sysroot}", "-D_GNU_SOURCE", "-O2", "-g", "-static",
                                    "-pthread", "-o", target, source, *extra, "-lm"])
    return target
