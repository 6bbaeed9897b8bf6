"""How much memory a server and its child processes use, and how much shared memory they get."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from constructs_triton_core.errors import LocalEndpointError
from constructs_triton_core.processes.children import run_child
from constructs_triton_tools.local.server.serve_script import DEFAULT_SHM_BYTES

SHARED_MEMORY = "/dev/shm"
SHM_DEFAULT = "SAGEMAKER_TRITONSHM_DEFAULT_BYTE_SIZE"
#: The Python backend refuses to start with less for an instance.
_LEAST_BYTES = 2**20
_LISTING_SECONDS = 5


def session_bytes(session: int) -> int:
    """Return the proportional set size of all processes of a session,
    with the shared memory they map.
    """
    return sum(
        _proportional_bytes(path)
        for path in Path("/proc").glob("[0-9]*")
        if _session(path) == session
    )


def stub_bytes(session: int) -> dict[str, int]:
    """Return the proportional set size of the processes of Python models,
    by the path of the model's file.
    """
    sizes: dict[str, int] = {}
    for path in Path("/proc").glob("[0-9]*"):
        if _session(path) == session:
            model = _stub_model(path)
            if model:
                sizes[model] = sizes.get(model, 0) + _proportional_bytes(path)
    return sizes


def count_gpus() -> int:
    """Count the GPUs that nvidia-smi lists; 0 without nvidia-smi."""
    return len(_listed(["--query-gpu=index"]))


def gpu_bytes(session: int) -> dict[int, int]:
    """Return what the processes of a session use of each GPU, in bytes, by the GPU's index.

    Empty without nvidia-smi. A GPU that no process of the session uses is not in it.
    """
    indexes = {uuid: int(index) for index, uuid in _listed(["--query-gpu=index,uuid"])}
    sizes: dict[int, int] = {}
    for uuid, process, mebibytes in _listed(["--query-compute-apps=gpu_uuid,pid,used_gpu_memory"]):
        # A driver that does not know the size prints [N/A].
        is_known = uuid in indexes and process.isdecimal() and mebibytes.isdecimal()
        if is_known and _session(Path("/proc") / process) == session:
            index = indexes[uuid]
            sizes[index] = sizes.get(index, 0) + int(mebibytes) * 2**20
    return sizes


def _listed(query: Sequence[str]) -> list[list[str]]:
    """Return the rows that nvidia-smi prints for a query; none without nvidia-smi."""
    command = ["nvidia-smi", *query, "--format=csv,noheader,nounits"]
    try:
        listing = run_child(command, seconds=_LISTING_SECONDS)
    except (OSError, TimeoutError):
        return []
    if listing.returncode:
        return []
    rows = (line.split(",") for line in listing.stdout.splitlines())
    return [list(map(str.strip, row)) for row in rows]


def region_bytes(prefix: str) -> int:
    """Return the bytes of ``/dev/shm`` that regions of Python models take, by their prefix.

    A region that ends while it is read counts nothing.
    """
    total = 0
    for path in Path(SHARED_MEMORY).glob(f"{prefix}*"):
        with suppress(OSError):
            total += path.stat().st_blocks * 512
    return total


def available_bytes() -> int:
    """Return how much memory can be used without swapping (MemAvailable)."""
    for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    raise OSError("/proc/meminfo: has no MemAvailable")


def fit_shared_memory(instances: int, default_bytes: int, *, is_chosen: bool) -> int:
    """Return the initial shared memory of each Python model instance, in bytes.

    A chosen size stays. The image's default is reduced if this machine has less, down to 1 MiB.
    """
    status = os.statvfs(SHARED_MEMORY)
    free = status.f_bavail * status.f_frsize
    share = free // max(1, instances)
    if default_bytes <= share:
        return default_bytes
    if not is_chosen and share >= 2 * _LEAST_BYTES:
        return share // 2 // 4096 * 4096  # the other half is left for growth
    raise LocalEndpointError(
        f"{SHARED_MEMORY}: {instances} Python model instances need {default_bytes} bytes each, "
        f"got {free} bytes free; enlarge it (`docker run --shm-size`), or lower "
        "SAGEMAKER_TRITONSHM_DEFAULT_BYTE_SIZE"
    )


def fitted_environment(
    given: Mapping[str, str],
    instances: int,
    report: Callable[[str], None],
    *,
    is_exact: bool = False,
) -> dict[str, str]:
    """Return variables that fit ``instances`` Python model processes to this machine.

    ``given`` is the environment of the template. With ``is_exact`` the processes do not share the
    CPUs.
    """
    fitted: dict[str, str] = {}
    chosen = given.get(SHM_DEFAULT, "")
    if not chosen or chosen.isdecimal():  # the server rejects other values
        wanted = int(chosen or DEFAULT_SHM_BYTES)
        fitting = fit_shared_memory(instances, wanted, is_chosen=bool(chosen))
        if fitting != wanted:
            report(f"/dev/shm is small on this machine: {SHM_DEFAULT} is set to {fitting}")
            fitted[SHM_DEFAULT] = str(fitting)
    if (
        instances > 1 and not is_exact
    ):  # otherwise numerical libraries start one thread per CPU in each process
        fitted["OMP_NUM_THREADS"] = str(max(1, (os.cpu_count() or 1) // instances))
    return fitted


def _session(process: Path) -> int | None:
    try:
        # The command's name, in parentheses, may contain blanks; the session is the fourth field
        # after it.
        return int(
            (process / "stat")
            .read_text(encoding="utf-8", errors="replace")
            .rpartition(")")[2]
            .split()[3]
        )
    except (OSError, IndexError, ValueError):
        return None


def _stub_model(process: Path) -> str:
    """Return the path of the model that a process runs;
    empty if it is no stub of the Python backend.
    """
    try:
        words = (process / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return ""
    is_stub = words[0].endswith(b"triton_python_backend_stub") and len(words) > 1
    return os.fsdecode(words[1]) if is_stub else ""


def _proportional_bytes(process: Path) -> int:
    try:
        for line in (process / "smaps_rollup").read_text(encoding="ascii").splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0
