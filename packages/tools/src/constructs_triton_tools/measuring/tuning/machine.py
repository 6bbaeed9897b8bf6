"""This machine: its hardware, and the Triton server that runs the candidates."""

from __future__ import annotations

import os
import platform
import shutil
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.processes.children import run_child
from constructs_triton_tools.local.options import LocalRunOptions
from constructs_triton_tools.local.server.installation import find_installation
from constructs_triton_tools.measuring.tuning.repositories import TunedRepository
from triton_model_check.model_config.backends import infer_backend

_CPU_INFO = Path("/proc/cpuinfo")
_QUERY = ("nvidia-smi", "--query-gpu=name", "--format=csv,noheader")
_QUERY_SECONDS = 20


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine that runs the candidates."""

    cpus: int
    cpu: str
    gpus: tuple[str, ...]

    def __str__(self) -> str:
        gpus = f"GPUs: {', '.join(self.gpus)}" if self.gpus else "no GPU"
        return f"{self.cpus} CPUs ({self.cpu}), {gpus}"


def read_machine() -> Machine:
    """Return the hardware of this machine."""
    return Machine(os.cpu_count() or 1, _cpu_name(), _gpu_names())


def _cpu_name() -> str:
    with suppress(OSError):
        for line in _CPU_INFO.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.machine()  # platform.processor() would start `uname`


def _gpu_names() -> tuple[str, ...]:
    if shutil.which(_QUERY[0]) is None:
        return ()
    try:
        answer = run_child(_QUERY, seconds=_QUERY_SECONDS)
    except OSError:
        return ()
    lines = answer.stdout.splitlines() if answer.returncode == 0 else []
    return tuple(line.strip() for line in lines if line.strip())


# --- the server -------------------------------------------------------------------------------------------


def describe_server(local: LocalRunOptions) -> str:
    """Return which Triton server runs the candidates: the image of an engine, or the bundled server."""
    if local.get("engine"):
        images = ", ".join(sorted((local.get("images") or {}).values())) or "the default image"
        return f"{images} in {local['engine']}"
    if local.get("tritonserver"):
        return str(local["tritonserver"])
    try:
        return f"nvidia-pytriton {version('nvidia-pytriton')}"
    except PackageNotFoundError:
        return "nvidia-pytriton"


def check_backends(repository: TunedRepository, local: LocalRunOptions, *, accept_stand_in: bool) -> str:
    """Return a sentence about the backends that a stand-in replaces; empty if there is none."""
    if local.get("engine"):
        return ""
    server = local.get("tritonserver")
    installed = find_installation(Path(server) if server else None).backend_names()
    backends = {infer_backend(folder).backend for folder in repository.folders}
    names = ", ".join(sorted(backends - installed - {""}))
    if names and not accept_stand_in:
        raise InvalidValueError(
            f"{repository.model}: this server does not have the backend {names}. The best settings of a "
            "stand-in are not those of the backend; add --engine and --image, or --accept-stand-in to "
            "search with the stand-in"
        )
    return f"Figures of a Python stand-in, not of the backend {names}." if names else ""
