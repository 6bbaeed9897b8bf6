"""Runs a Python program where seccomp(2) fails, as it does in gVisor,
with an old kernel or in a sandbox.
"""

from __future__ import annotations

import errno
import sys

#: Filters the system call itself, and then becomes a Python interpreter with the rest of its
#: arguments.
_REFUSING = """
import ctypes, os, struct, sys
call = {"x86_64": 317, "aarch64": 277}[os.uname().machine]
lines = [
    (0x20, 0, 0, 0),
    (0x15, 0, 1, call),
    (6, 0, 0, 0x50000 | int(sys.argv[1])),
    (6, 0, 0, 0x7FFF0000),
]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in lines))
libc = ctypes.CDLL(None)
libc.prctl(38, 1, 0, 0, 0)
assert libc.prctl(22, 2, struct.pack("HxxxxxxP", len(lines), ctypes.addressof(code))) == 0
os.execv(sys.executable, [sys.executable, *sys.argv[2:]])
"""


def without_seccomp(number: int = errno.ENOSYS) -> list[str]:
    """The command of an interpreter in which seccomp(2) fails with this error number."""
    return [sys.executable, "-c", _REFUSING, str(number)]
