"""Guests: Debian kernels under QEMU's own emulation, with culprit inside.

packages.py  fetches and unpacks Debian packages of any architecture, without touching the system's apt
initrd.py    writes initial RAM disks (cpio) and finds the shared libraries a program needs
build.py     cross-builds culprit and small test programs against an unpacked sysroot
machine.py   starts QEMU, runs one command as part of init, passes output and status back
frontend.py  the command line that all guests share

Everything that costs time is kept in a cache folder (build/guest, or $CULPRIT_GUEST_CACHE), so that the
second start takes seconds. What cannot be had raises Unavailable with one line that says what is missing
and what to install; the front ends then exit with status 77, which test runners count as skipped.
"""


class Unavailable(Exception):
    """This guest cannot run here; the text says why in one line."""


EXIT_UNAVAILABLE = 77
EXIT_SILENT = 122   # nothing was said for too long
EXIT_STALLED = 123  # the same, and its own heartbeat stopped or its clock ran away
EXIT_TIMEOUT = 124
EXIT_BROKEN = 125  # the guest died before the command ended
