"""The memory of a server and its child processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from constructs_triton_tools.local.server.memory import (
    available_bytes,
    count_gpus,
    gpu_bytes,
    region_bytes,
    session_bytes,
)

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


SMI = """#!/bin/sh
case "$1" in
--query-gpu=index) printf '0\\n1\\n' ;;
--query-gpu=index,uuid) printf '0, GPU-aa\\n1, GPU-bb\\n' ;;
*) sed -e s/SELF/{own}/ -e s/OTHER/{other}/ <<END
GPU-aa, SELF, 426
GPU-bb, SELF, 100
GPU-aa, OTHER, 9000
GPU-aa, SELF, [N/A]
END
;;
esac
"""


def test_gpu_memory_is_that_of_the_sessions_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What nvidia-smi lists of a session's processes is added up for each GPU; other processes,
    and sizes that the driver does not know, are not counted.
    """
    program = tmp_path / "nvidia-smi"
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, start_new_session=True) as other:
        program.write_text(SMI.format(own=os.getpid(), other=other.pid))
        program.chmod(0o755)
        assert gpu_bytes(os.getsid(0)) == {0: 426 * 2**20, 1: 100 * 2**20}
        assert count_gpus() == 2


def test_machine_without_nvidia_smi_has_no_gpu_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without nvidia-smi there is nothing to read, and nothing fails."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert gpu_bytes(os.getsid(0)) == {}
    assert count_gpus() == 0


def test_available_memory_is_less_than_the_machine_has() -> None:
    """The kernel's value, in bytes."""
    assert 2**20 < available_bytes() < os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def test_allocated_regions_of_a_server_count() -> None:
    """What is allocated in ``/dev/shm`` below its prefix counts, and not that of other servers."""
    prefix = f"triton_test_{os.getpid()}_"
    names = (f"{prefix}a", f"{prefix}b", f"other_{prefix}")
    folder = Path("/dev/shm")
    try:
        for name in names:
            with (folder / name).open("wb") as region:
                os.posix_fallocate(region.fileno(), 0, 2**20)
        assert region_bytes(prefix) == 2 * 2**20
    finally:
        for name in names:
            (folder / name).unlink(missing_ok=True)
