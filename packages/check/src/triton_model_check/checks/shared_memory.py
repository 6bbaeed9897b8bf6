"""Whether the instances of Python models and their calls fit into ``/dev/shm``."""

from __future__ import annotations

from collections.abc import Iterator

from constructs_triton_core.facts.versions import is_at_least
from triton_model_check.checks.loaded_memory import loaded_together
from triton_model_check.checks.loaded_shared_memory import shared_memory_of
from triton_model_check.checks.model_under_check import RepositoryContext
from triton_model_check.checks.rules import Problem, rule, warning
from triton_model_check.memory.estimate import MemoryEstimate, in_units
from triton_model_check.memory.shared_memory import SHARED_MEMORY
from triton_model_check.model_config.target import SAGEMAKER, SERVERS, Target

_MIB = 2**20
_SMALL_SINCE = "23.09"
_SOURCE = (
    "triton python_backend src/python_be.cc by release branch, and src/shm_manager.cc; "
    "facts/memory.json"
)


@rule("server-shm-size", "repository", source=_SOURCE, platforms=SERVERS)
def regions(context: RepositoryContext) -> Iterator[Problem]:
    """The instances of Python models fit into ``/dev/shm`` of the container when the server starts.

    Each instance takes 64 MiB with images before 23.09, and 1 MiB with newer ones. Every loaded
    version has its own, and vLLM models are Python models. A container has 64 MiB by default. The
    instance that finds no more space stops the server.
    """
    estimate = shared_memory_of(context, sorted(context.loaded), with_calls=False)
    if estimate.exceeded:
        yield _too_small(
            estimate, "when the server starts, ", _server_hint(context.target, estimate)
        )


@warning("server-shm-calls", "repository", source=_SOURCE, platforms=SERVERS)
def calls(context: RepositoryContext) -> Iterator[Problem]:
    """The largest calls of Python models fit into ``/dev/shm`` of the container.

    The inputs and outputs of a call are in the region of its instance together. The region grows to
    the largest call, here one with ``max_batch_size`` elements, and does not shrink. Triton gives
    calls to all instances in turn, so the regions of all of them grow. A call that finds no space
    fails. A variable dimension counts as 1, so this is the least that is needed.
    """
    names = sorted(context.loaded)
    if shared_memory_of(context, names, with_calls=False).exceeded:
        return  # server-shm-size reports it
    estimate = shared_memory_of(context, names)
    if estimate.exceeded:
        hint = _server_hint(context.target, estimate, "lower max_batch_size or the count")
        yield _too_small(estimate, "with their largest calls, ", hint)


@warning(
    "target-shared-memory",
    "repository",
    source=f"{_SOURCE}; AWS documentation: up to half of the memory is /dev/shm",
    hint=(
        "lower the count of the instance groups, max_batch_size or shm_default_byte_size, "
        "or use an instance type with more memory"
    ),
    platforms=SAGEMAKER,
)
def on_sagemaker(context: RepositoryContext) -> Iterator[Problem]:
    """The instances of Python models and their calls fit into shared memory, which is half of the
    instance's memory.

    Each instance takes the region of ``SAGEMAKER_TRITON_SHM_DEFAULT_BYTE_SIZE`` when it starts, by
    default 16 MiB. The region grows to the inputs and outputs of the largest call, one with
    ``max_batch_size`` elements, and does not shrink. All models count that can be loaded together,
    also those of several archives of a multi-model endpoint. When shared memory is full, requests
    fail. A variable dimension counts as 1, so this is the least that is needed.
    """
    together = [name for names in loaded_together(context) for name in names]
    estimate = shared_memory_of(context, together)
    if estimate.exceeded:
        yield _too_small(estimate, "", None)


def _too_small(estimate: MemoryEstimate, when: str, hint: str | None) -> Problem:
    needed = in_units(estimate.total(SHARED_MEMORY))
    limit = in_units(estimate.limits[SHARED_MEMORY])
    parts = "; ".join(map(str, estimate.largest(SHARED_MEMORY)))
    message = f"{when}the models need at least {needed} of {SHARED_MEMORY}, which has {limit}"
    return Problem(f"{message}: {parts}", hint=hint)


def _server_hint(target: Target, estimate: MemoryEstimate, lower: str = "lower the count") -> str:
    """Return how to enlarge ``/dev/shm``, with room for calls."""
    mebibytes = -(-estimate.total(SHARED_MEMORY) // (64 * _MIB)) * 128
    enlarge = "mount an emptyDir volume with medium: Memory at /dev/shm"
    if target.platform in ("server", "docker"):
        enlarge = f"start the container with --shm-size={mebibytes}m"
    version = target.image_version
    is_large = version is not None and not is_at_least(version, _SMALL_SINCE)
    if is_large and target.shm_default_byte_size is None and lower == "lower the count":
        other = f"use image version {_SMALL_SINCE} or newer"
    else:
        other = f"{lower} of instance groups"
    return f"{enlarge}, and check with --shm-size {mebibytes}m; or {other}"
