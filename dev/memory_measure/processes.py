"""What processes hold: memory of the host, of ``/dev/shm`` and of GPUs."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

SHARED_MEMORY = Path("/dev/shm")
_REGIONS = "triton_python_backend_shm_region_*"


@dataclass(frozen=True, slots=True)
class HostMemory:
    """Memory of one process in bytes.

    ``resident`` counts pages that it shares with other processes in full, ``private`` not at all.
    ``shared`` is what it maps of ``/dev/shm``. ``peak`` is the largest ``resident`` so far.
    """

    resident: int
    private: int
    shared: int
    peak: int


def host_memory(pid: int) -> HostMemory:
    """Read the memory of a process from ``/proc``."""
    rollup = _kilobytes(Path(f"/proc/{pid}/smaps_rollup"))
    status = _kilobytes(Path(f"/proc/{pid}/status"))
    return HostMemory(
        resident=rollup["Rss"],
        private=rollup["Private_Clean"] + rollup["Private_Dirty"],
        shared=status["RssShmem"],
        peak=status["VmHWM"],
    )


def _kilobytes(path: Path) -> dict[str, int]:
    found = {}
    for line in path.read_text().splitlines():
        words = line.split()
        if words[-1:] == ["kB"]:
            found[words[0].rstrip(":")] = int(words[1]) * 1024
    return found


def children(pid: int) -> list[int]:
    """Return the processes that a process has started, as the kernel lists them."""
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        found += [int(child) for child in (task / "children").read_text().split()]
    return sorted(found)


def shared_regions(folder: Path = SHARED_MEMORY) -> dict[str, int]:
    """Return the regions of Python models in ``/dev/shm``, with the bytes that are allocated."""
    return {
        path.name: path.stat().st_blocks * 512
        for path in sorted(folder.glob(_REGIONS))
        if path.is_file()
    }


def gpu_bytes() -> dict[int, int] | None:
    """Return the GPU memory of each process by its id; ``None`` if there is no GPU to ask."""
    lines = _ask_gpus("--query-compute-apps=pid,used_memory")
    if lines is None:
        return None
    used: dict[int, int] = {}
    for line in lines:
        pid, mebibytes = line.split(",")
        # One line for each GPU. In a container without the host's processes it is "[N/A]".
        if mebibytes.strip().isdigit():
            used[int(pid)] = used.get(int(pid), 0) + int(mebibytes) * 2**20
    return used


def gpus_used() -> list[int] | None:
    """Return the used memory of each GPU, of all processes; ``None`` if there is no GPU to ask."""
    lines = _ask_gpus("--query-gpu=memory.used")
    return None if lines is None else [int(line) * 2**20 for line in lines]


def _ask_gpus(query: str) -> list[str] | None:
    if shutil.which("nvidia-smi") is None:
        return None
    answer = subprocess.run(
        ["nvidia-smi", query, "--format=csv,noheader,nounits"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return answer.stdout.splitlines() if answer.returncode == 0 else None
