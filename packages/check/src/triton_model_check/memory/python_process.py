"""What the processes of a Python model take: each instance of each version is one.

What the code of the model loads is not known.
"""

from __future__ import annotations

from collections.abc import Mapping

from triton_model_check.facts.published import load
from triton_model_check.memory.instances import HOST
from triton_model_check.memory.since import value_since
from triton_model_check.model.python_gpu import GpuUseOfCode


def process_bytes(instances: int) -> int:
    """Return what the processes take of the host, without what they share with each other."""
    return instances * int(load("memory")["host"]["python_instance_private_bytes"])


def contexts(
    placed: Mapping[str, int], use: GpuUseOfCode | None, gpu_count: int
) -> dict[str, int] | None:
    """Return how many CUDA contexts are on each GPU; ``None`` if it is not known on which.

    Each process that uses a GPU has a context of its own. Instances of ``KIND_CPU`` do not count,
    since their code may choose the CPU. On a machine with several GPUs, the code has to ask for the
    GPU of its instance, or else it may use another one.
    """
    on_gpus = {place: count for place, count in placed.items() if place != HOST}
    if use is None or not on_gpus:
        return {}
    return on_gpus if use.follows_instance or gpu_count == 1 else None


def context_bytes(release: str | None) -> int:
    """Return what one CUDA context of a framework takes, at least."""
    return value_since(load("memory")["gpu"]["framework_context_bytes"], release)
