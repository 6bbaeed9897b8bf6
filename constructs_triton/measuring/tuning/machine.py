"""What identifies this machine and the server, so that results of another one are not mixed with them."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from constructs_triton.local.options import LocalRunOptions

__all__ = ["Machine", "describe_server"]

_CPU_INFO = Path("/proc/cpuinfo")
_QUERY = ("nvidia-smi", "--query-gpu=name", "--format=csv,noheader")
_QUERY_SECONDS = 20


@dataclass(frozen=True, slots=True)
class Machine:
    """This machine.

    Args:
        cpus: Number of CPUs.
        cpu: Name of the CPU.
        gpus: Name of each GPU.
    """

    cpus: int
    cpu: str
    gpus: tuple[str, ...]

    @classmethod
    def inspect(cls) -> Machine:
        """Return what the operating system and the GPU driver report."""
        return cls(os.cpu_count() or 1, _cpu_name(), _gpu_names())

    def __str__(self) -> str:
        gpus = f"GPUs: {', '.join(self.gpus)}" if self.gpus else "no GPU"
        return f"{self.cpus} CPUs ({self.cpu}), {gpus}"


def _cpu_name() -> str:
    try:
        lines = _CPU_INFO.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _gpu_names() -> tuple[str, ...]:
    if shutil.which(_QUERY[0]) is None:
        return ()
    try:
        answer = subprocess.run(_QUERY, capture_output=True, text=True, timeout=_QUERY_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        return ()
    return tuple(line.strip() for line in answer.stdout.splitlines() if line.strip())


def describe_server(options: LocalRunOptions) -> str:
    """Return which Triton server runs the candidates: the image of an engine, or the bundled server."""
    if options.get("engine"):
        images = ", ".join(sorted((options.get("images") or {}).values())) or "the default image"
        return f"{images} in {options['engine']}"
    if options.get("tritonserver"):
        return str(options["tritonserver"])
    from importlib.metadata import PackageNotFoundError, version

    try:
        return f"nvidia-pytriton {version('nvidia-pytriton')}"
    except PackageNotFoundError:
        return "nvidia-pytriton"
