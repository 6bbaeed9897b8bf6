"""What a Triton server writes to its log, and the lines that explain a failure."""

from __future__ import annotations

import re

__all__ = ["error_excerpt", "stub_failure"]

#: The dynamic loader's words when a Python stub cannot start; the server then waits for the stub forever.
_STUB_CANNOT_START = re.compile(r".*(error while loading shared libraries|cannot open shared object file).*")
_ERROR_LINE = re.compile(r"^E\d{4} |^error:|UNAVAILABLE|Error:")
#: Lines that a server without a GPU always writes. They never explain why a server does not start.
_GPU_LINE = re.compile(
    r"CudaDriverHelper|CUDA driver|cuda_utils|CUDA memory pool|pinned_memory_manager|libcuda|NVML|DCGM",
    re.IGNORECASE,
)


def error_excerpt(log: str, lines: int = 15) -> str:
    """Return the lines that explain a failure, the cause first; the end of the log if there are none."""
    written = [line.strip() for line in log.splitlines() if line.strip()]
    errors = [line for line in written if _ERROR_LINE.search(line)]
    shown = sorted(dict.fromkeys(errors), key=_rank)[:lines] or written[-lines:]
    return "\n".join(f"  {line}" for line in shown)


def stub_failure(log: str) -> str | None:
    """Return the dynamic loader's message if a Python stub could not start."""
    found = _STUB_CANNOT_START.search(log)
    return None if found is None else found[0].strip()


def _rank(line: str) -> int:
    """Order of a line: the server's summary, then errors in the order of the log, tables, GPU lines."""
    if _GPU_LINE.search(line):
        return 3
    if line.startswith("|"):
        return 2
    return 0 if line.startswith("error:") else 1
