"""What a Triton server writes to its log, and the lines that explain a failure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from constructs_triton_core.errors import ContainerExitError
from constructs_triton_core.facts.failures import harmless_lines
from triton_model_check.facts.images import version_of_image

#: The dynamic loader's words when a Python stub cannot start; the server then waits for the stub
#: forever. Without ``^`` a search would begin again at each character of a line, and a server's
#: lines are long.
_STUB_CANNOT_START = re.compile(
    r"^.*(?:error while loading shared libraries|cannot open shared object file).*", re.MULTILINE
)
_END_BYTES = 2**20
_MISSING_PACKAGE = re.compile(r"ModuleNotFoundError: No module named '([^'.]+)")
_ERROR_LINE = re.compile(r"^E\d{4} |^error:|UNAVAILABLE|Error:")
#: Lines that a server without a GPU always writes. They never explain why a server does not start.
_GPU_LINE = re.compile(
    r"CudaDriverHelper|CUDA driver|cuda_utils|CUDA memory pool|pinned_memory_manager"
    r"|libcuda|NVML|DCGM",
    re.IGNORECASE,
)


def read_log(path: Path) -> str:
    """Return the text of a log; nothing if there is none yet."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def read_end(path: Path) -> str:
    """Return the last lines of a log, however long it is."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, 2) - _END_BYTES))
            return file.read(_END_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""


def explain_failure(log: str, image: str = "", *, in_container: bool = False) -> str:
    """Return the diagnosis of a server that did not start, and the errors of its log.

    ``image`` is the one in AWS. ``in_container`` is whether the server has its Python here too.
    """
    from constructs_triton_tools.operations.diagnosis import diagnose_log, format_diagnoses

    found = diagnose_log(log, "the server's log", triton_version=version_of_image(image))
    diagnosis = f"{format_diagnoses(found)}\n" if found else ""
    is_misspelled = any(failure.id == "py-module-misspelled" for failure in found)
    local_fix = "" if in_container or is_misspelled else _local_fix(log)
    return f"{diagnosis}{local_fix}its log says:\n{error_excerpt(log)}"


def _local_fix(log: str) -> str:
    """Return what to install on this machine. The diagnosis has only the fix in AWS."""
    found = _MISSING_PACKAGE.search(log)
    if found is None:
        return ""
    return (
        f"on this machine: install {found[1]} into the Python that runs the models, which is the "
        "Python of local up, or that of --python\n"
    )


@contextmanager
def explained_exit(label: str) -> Iterator[None]:
    """Add the diagnosis to the error of the image's start script."""
    try:
        yield
    except ContainerExitError as error:
        from constructs_triton_tools.operations.diagnosis import diagnose_log, format_diagnoses

        found = diagnose_log(str(error), "the start script")
        diagnosis = f"{format_diagnoses(found)}\n" if found else ""
        raise ContainerExitError(f"{label}: the container exits\n{diagnosis}{error}") from None


def raise_if_stub_ended(label: str, log: str) -> None:
    """Raise an error if a Python stub could not start: the server would wait for it forever."""
    if stub_failure(log) is not None:
        raise ContainerExitError(
            f"{label}: the Python backend cannot start\n{explain_failure(log)}"
        )


def error_excerpt(log: str, lines: int = 15) -> str:
    """Return the lines that explain a failure, the cause first;
    the end of the log if there are none.
    """
    written = [line.strip() for line in log.splitlines() if line.strip()]
    errors = [line for line in written if _ERROR_LINE.search(line) and not _is_harmless(line)]
    shown = sorted(dict.fromkeys(errors), key=_rank)[:lines] or written[-lines:]
    return _indented(shown)


def _is_harmless(line: str) -> bool:
    """Whether the server writes a line as an error although nothing failed."""
    return any(part in line for part in harmless_lines())


def last_lines(log: str, lines: int = 15) -> str:
    """Return the end of a log as it was written."""
    return _indented([line.rstrip() for line in log.splitlines() if line.strip()][-lines:])


def _indented(lines: list[str]) -> str:
    return "\n".join(f"  {line}" for line in lines)


def stub_failure(log: str) -> str | None:
    """Return the dynamic loader's message if a Python stub could not start."""
    found = _STUB_CANNOT_START.search(log)
    return None if found is None else found[0].strip()


def _rank(line: str) -> int:
    """Order of a line: the server's summary, then errors in the order of the
    log, tables, GPU lines.
    """
    if _GPU_LINE.search(line):
        return 3
    if line.startswith("|"):
        return 2
    return 0 if line.startswith("error:") else 1
