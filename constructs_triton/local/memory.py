"""How much memory a server and its children take."""

from __future__ import annotations

import os
from pathlib import Path

from constructs_triton.errors import LocalEndpointError

__all__ = ["available_bytes", "require_shared_memory", "session_bytes"]

_SHARED_MEMORY = "/dev/shm"


def session_bytes(session: int) -> int:
    """The proportional memory of all processes of a session, shared memory that they map included."""
    return sum(
        _proportional_bytes(path) for path in Path("/proc").glob("[0-9]*") if _session(path) == session
    )


def available_bytes() -> int:
    """What the kernel says can be used without swapping."""
    for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    raise OSError("/proc/meminfo: has no MemAvailable")


def require_shared_memory(instances: int, default_bytes: int) -> None:
    """Refuse Python models that cannot all have their region.

    Each instance of a Python model takes ``default_bytes`` at its start and grows from there. Raises
    ``LocalEndpointError``.
    """
    status = os.statvfs(_SHARED_MEMORY)
    free = status.f_bavail * status.f_frsize
    if instances * default_bytes > free:
        raise LocalEndpointError(
            f"{_SHARED_MEMORY}: {instances} Python model instances take {default_bytes} bytes each, got "
            f"{free} bytes free; enlarge it (docker run --shm-size) or lower "
            "SAGEMAKER_TRITON_SHM_DEFAULT_BYTE_SIZE"
        )


def _session(process: Path) -> int | None:
    try:
        # The command's name, in brackets, may hold blanks; the session is the fourth field after it.
        return int(
            (process / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[3]
        )
    except (OSError, IndexError, ValueError):
        return None


def _proportional_bytes(process: Path) -> int:
    try:
        for line in (process / "smaps_rollup").read_text(encoding="ascii").splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0
