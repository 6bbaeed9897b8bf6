"""What the processes of Python models take of ``/dev/shm``.

Each instance of a Python model is a process, which exchanges tensors with the server through a
region of its own. The region is allocated when the instance starts, grows with the largest call,
and does not shrink. Source: triton python_backend, src/shm_manager.cc and src/stub_launcher.cc; the
sizes by release and what was measured are in ``facts/memory.json``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from triton_model_check.facts.images import in_force
from triton_model_check.facts.published import load
from triton_model_check.memory.estimate import MemoryEstimate, MemoryPart
from triton_model_check.memory.instances import GPU, copies, resolved_kind

SHARED_MEMORY = "/dev/shm"
"""The place in a :class:`~triton_model_check.memory.estimate.MemoryEstimate`."""
PYTHON_BACKENDS = frozenset({"python", "vllm"})
"""Backends whose instances are Python processes."""


@dataclass(frozen=True, slots=True)
class Region:
    """The region of an instance: its size at the start and the step of its growth, in bytes."""

    first: int
    growth: int

    @classmethod
    def of(
        cls,
        version: str | None,
        *,
        is_sagemaker: bool,
        first: int | None = None,
        growth: int | None = None,
    ) -> Region | None:
        """Return the region of a release; ``None`` if neither release nor size is known.

        ``first`` and ``growth`` are what the server was started with. SageMaker's start script has
        defaults of its own.
        """
        facts = load("memory")["shm"]
        whose = "sagemaker" if is_sagemaker else "python"
        if version is not None:
            first = first or in_force(facts[f"{whose}_instance_bytes"], version)
            growth = growth or in_force(facts[f"{whose}_growth_bytes"], version)
        elif is_sagemaker:  # an image of your own, which has the start script too
            first = first or facts["sagemaker_instance_bytes"][-1]["value"]
            growth = growth or facts["sagemaker_growth_bytes"][-1]["value"]
        # With a growth that is not known, only the bytes of the calls count.
        return None if first is None else cls(first, growth or 1)

    def after(self, call_bytes: int) -> int:
        """Return the least size of the region after a call whose tensors have ``call_bytes``.

        All tensors of a call are in the region together. How the free space is divided makes it
        larger by some steps: see ``dev/memory_measure``.
        """
        if not self.first or not call_bytes:
            return self.first
        queues: int = load("memory")["shm"]["queue_bytes"]
        missing = queues + call_bytes - self.first
        return self.first + max(0, -(-missing // self.growth)) * self.growth


@dataclass(frozen=True, slots=True)
class PythonProcesses:
    """The instances of one Python model: how many there are, and their largest call.

    ``call_bytes`` has the tensors of a call with ``batch`` elements, at least, or what the
    user declares if it ``is_declared``.
    """

    model: str
    count: int
    call_bytes: int = 0
    batch: int = 1
    is_declared: bool = False


def shared_memory(
    models: Sequence[PythonProcesses],
    region: Region,
    limit: int | None,
    *,
    with_calls: bool = True,
    not_counted: Iterable[str] = (),
) -> MemoryEstimate:
    """Return what the instances of Python models take of ``/dev/shm``, in parts.

    ``limit`` is its size, ``None`` if that is unknown. Without ``with_calls`` it is what they take
    at their start.
    """
    parts = [part for model in models for part in _parts(model, region, with_calls=with_calls)]
    return MemoryEstimate(
        tuple(model.model for model in models),
        tuple(parts),
        {} if limit is None else {SHARED_MEMORY: limit},
        shared_not_counted=tuple(not_counted),
    )


def _parts(model: PythonProcesses, region: Region, *, with_calls: bool) -> list[MemoryPart]:
    """Return what the processes of a Python model take of ``/dev/shm``."""
    start = region.first * model.count
    what = "region" if model.count == 1 else f"region of {model.count} instances"
    parts = [_part(model, what, start, "shm.python_instance_bytes")]
    if with_calls:
        growth = region.after(model.call_bytes) * model.count - start
        what = f"calls of batch {model.batch}" if model.batch > 1 else "calls"
        what += "" if model.count == 1 else f", {model.count} instances"
        source = "triton-models.toml" if model.is_declared else "shm.calls"
        parts.append(_part(model, what, growth, source))
    return [part for part in parts if part.size]


def _part(model: PythonProcesses, what: str, size: int, source: str) -> MemoryPart:
    return MemoryPart(SHARED_MEMORY, model.model, what, size, source)


def process_count(groups: Sequence[Any], backend: str, gpu_count: int | None) -> int:
    """Return how many instances of a model run, at least; each is a process.

    Without groups there is one on each GPU, as for other backends. A number of GPUs that is not
    known counts as one.
    """
    if gpu_count is not None:
        placed = copies(groups, backend, gpu_count)
        if placed is not None:
            return sum(placed.values())
    total = 0
    for group in groups:
        is_on_gpu = resolved_kind(group, gpu_count) == GPU
        gpus = (len(group.gpus) or gpu_count or 1) if is_on_gpu else 1
        total += max(1, group.count) * gpus
    return total or 1
