"""Runs a module of Python, and kills the process when it is about to change its N-th file.

Usage: ``killed_program.py N FILE MODULE ARGUMENTS...``. With N = 0 it is not killed, and FILE gets
the number of changes.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
from pathlib import Path

_CHANGES = frozenset(
    {
        *("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.chmod"),
        *("os.truncate", "os.utime", "sqlite3.connect", "os.listdir", "os.scandir"),
    }
)
_WRITE_FLAGS = os.O_WRONLY | os.O_RDWR | os.O_CREAT


def main() -> None:
    """Run the module that the arguments name."""
    last = int(sys.argv.pop(1))
    counted = Path(sys.argv.pop(1))
    module = sys.argv.pop(1)
    parent = os.getpid()
    count = 0

    def watch(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal count
        if not _is_change(event, arguments) or os.getpid() != parent:
            return
        count += 1
        if count == last:
            os.kill(parent, signal.SIGKILL)

    sys.addaudithook(watch)
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    finally:
        total = count
        if not last:
            counted.write_text(str(total), encoding="utf-8")


def _is_change(event: str, arguments: tuple[object, ...]) -> bool:
    if event == "open":
        path, mode, flags = (*arguments, None, None, None)[:3]
        if str(path).startswith(("/dev/", "/proc/")) or str(path).endswith(".pyc"):
            return False
        is_writing = isinstance(mode, str) and bool(set(mode) & set("wax+"))
        return is_writing or (isinstance(flags, int) and bool(flags & _WRITE_FLAGS))
    return event in _CHANGES - {"os.listdir", "os.scandir"}


if __name__ == "__main__":
    main()
