"""The memory of a server and its child processes."""

from __future__ import annotations

import os
import subprocess
import sys

from constructs_triton_tools.local.server.memory import available_bytes, session_bytes

PROGRAM = """
import subprocess, sys
ballast = bytearray(b"x" * int(sys.argv[1]) * 2**20)
if int(sys.argv[2]):
    subprocess.Popen([sys.executable, "-c", sys.argv[3], sys.argv[1], "0", ""], stdin=sys.stdin)
else:
    print("up", flush=True)
sys.stdin.read()
"""


def test_children_count_with_their_parent() -> None:
    """A process and its child of 40 MiB each: both are counted, another session is not."""
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "40", "1", PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        assert process.stdout.readline() == b"up\n"
        assert 80 * 2**20 < session_bytes(process.pid) < 200 * 2**20
    finally:
        process.stdin.close()
        process.stdout.close()
        process.wait(30)


def test_available_memory_is_less_than_the_machine_has() -> None:
    """The kernel's value, in bytes."""
    assert 2**20 < available_bytes() < os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
