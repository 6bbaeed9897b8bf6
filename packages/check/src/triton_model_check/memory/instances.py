"""Where the instances of a model run: on which GPUs, or on the host.

Source: triton core, NormalizeInstanceGroup and TritonModelInstance::SetInstances.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from constructs_triton_core.facts.versions import is_at_least
from triton_model_check.facts.published import load

__all__ = ["AUTO", "CPU", "GPU", "HOST", "MODEL", "copies", "gpu_place", "resolved_kind"]

AUTO, GPU, CPU, MODEL = range(4)
HOST = "the host"
_HOST_BACKENDS = frozenset({"openvino"})
"""Backends that prefer the CPU: without ``kind``, their instances run there."""


def gpu_place(index: int) -> str:
    """Return the name of a GPU as a place, such as ``GPU 0``."""
    return f"GPU {index}"


def is_gpu(place: str) -> bool:
    """Return whether a place is a GPU."""
    return place.startswith("GPU ")


def resolved_kind(group: Any, gpu_count: int | None) -> int:
    """Return the kind that Triton uses; ``KIND_AUTO`` remains if the number of GPUs is unknown."""
    if group.kind != AUTO or gpu_count is None:
        return int(group.kind)
    absent = gpu_count == 0 or any(gpu not in range(gpu_count) for gpu in group.gpus)
    return CPU if absent else GPU


def copies(
    groups: Iterable[Any], backend: str, gpu_count: int, release: str | None = None
) -> Counter[str] | None:
    """Return how many instances of a model run at each place.

    ``None`` if a group is ``KIND_MODEL``, where the model chooses. Without groups, there is one on
    each GPU. A GPU that does not exist counts nothing, since another check reports it. A group
    without ``count`` has one instance; on the host, the release decides for some backends, and an
    unknown release counts one.
    """
    found: Counter[str] = Counter()
    listed = list(groups)
    default_on_host = _default_cpu_count(backend, release)
    for group in listed:
        kind = resolved_kind(group, gpu_count)
        if kind == MODEL:
            return None
        if kind == GPU and not (group.kind == AUTO and backend in _HOST_BACKENDS):
            for gpu in group.gpus or range(gpu_count):
                if gpu in range(gpu_count):
                    found[gpu_place(gpu)] += max(1, group.count)
        else:
            found[HOST] += group.count if group.count > 0 else default_on_host
    if listed:
        return found
    if gpu_count == 0 or backend in _HOST_BACKENDS:
        return Counter({HOST: default_on_host})
    return Counter(map(gpu_place, range(gpu_count)))


def _default_cpu_count(backend: str, release: str | None) -> int:
    """Return how many instances a group of ``KIND_CPU`` without ``count`` has."""
    fact = load("memory")["instances"]["default_cpu_count"]
    if release is None or backend not in fact["backends"]:
        return 1
    return int(fact["count"]) if is_at_least(release, fact["since"]) else 1
