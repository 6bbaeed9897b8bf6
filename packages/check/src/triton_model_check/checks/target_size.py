"""Whether the models fit into the memory of their target: of each GPU, and of the host."""

from __future__ import annotations

from collections.abc import Iterator

from constructs_triton_core.spelling import quoted
from triton_model_check.checks.loaded_memory import certain_estimates, limiting
from triton_model_check.checks.loaded_shared_memory import memory_of
from triton_model_check.checks.model_under_check import RepositoryContext
from triton_model_check.checks.rules import Problem, rule, warning
from triton_model_check.memory.estimate import MemoryEstimate, in_same_units, in_units
from triton_model_check.memory.instances import HOST, is_gpu
from triton_model_check.memory.shared_memory import SHARED_MEMORY
from triton_model_check.model_config.target import Target

_MIB = 2**20
_MOST_PARTS = 3
_KSERVE_HINT = (
    "raise resources.limits.memory of the InferenceService, which KServe's runtime sets to 2Gi, "
    "and check with --memory; or load fewer models"
)
_WEIGHTS_SOURCE = "triton backends, as facts/memory.json names them: which instances share weights"


@rule(
    "target-gpu-weights-memory",
    "repository",
    source=_WEIGHTS_SOURCE,
    hint=(
        "use an instance type whose GPUs have more memory, lower the count of the instance groups, "
        "or convert the weights to a smaller type"
    ),
    server_hint=(
        "use GPUs with more memory, lower the count of the instance groups, or convert the weights "
        "to a smaller type"
    ),
    needs_files=True,
)
def gpu_weights_memory(context: RepositoryContext) -> Iterator[Problem]:
    """The weights alone of a model and of its steps fit into the memory of each GPU.

    Without room for them, the model does not load. Only weights count that certainly are on the
    GPU: TorchScript modules, TensorRT plans, engines of TensorRT-LLM, and the matrices of an ONNX
    graph that are multiplied with something that depends on an input. Drivers for Windows can take
    host memory instead; ignore this there.
    """
    for found in certain_estimates(context):
        place = _fullest_with_weights(found)
        if place is not None:
            comparison = _compared(context.target, found, place, found.certain(place))
            parts = _largest_weights(found, place)
            yield Problem(
                f"the weights alone need {comparison}: {parts}",
                hint=_higher_limit(found.certain(place), place, context.target),
            )


def _fullest_with_weights(found: MemoryEstimate) -> str | None:
    """Return the place that weights alone overfill most; ``None`` if there is none."""
    exceeded = [place for place, limit in found.limits.items() if found.certain(place) > limit]
    return max(exceeded, key=found.certain, default=None)


def _largest_weights(found: MemoryEstimate, place: str) -> str:
    weights = [part for part in found.parts if part.place == place and part.certain]
    weights.sort(key=lambda part: -part.certain)
    return "; ".join(
        f"{part.model}: {part.what} {in_units(part.certain)}" for part in weights[:_MOST_PARTS]
    )


@warning(
    "target-gpu-memory",
    "repository",
    source=_WEIGHTS_SOURCE,
    hint=(
        "use an instance type whose GPUs have more memory, lower the count of the instance groups, "
        "or load fewer models together"
    ),
    server_hint=(
        "use GPUs with more memory, lower the count of the instance groups, or load fewer models: "
        "--load-model NAME"
    ),
    needs_files=True,
)
def gpu_memory(context: RepositoryContext) -> Iterator[Problem]:
    """The weights of the models that are loaded together fit into the memory of each GPU.

    Weights count with their external data, once for each instance if the backend does not share
    them, beside the context of the server and those of Python models. An engine of vLLM counts with
    the share of the GPU that it reserves, one of TensorRT-LLM with its files. A multi-model
    endpoint loads the models of one archive. The sum is the least that is needed: memory for
    requests is not counted, nor is what Python models load, trees on a GPU and what an accelerator
    makes of the weights, unless ``[memory]`` of triton-models.toml declares them.
    """
    problems = list(_exceeded(context, is_gpu=True))
    if problems and not any(map(_fullest_with_weights, certain_estimates(context))):
        yield from problems


@warning(
    "target-memory",
    "repository",
    source=_WEIGHTS_SOURCE,
    hint=(
        "use an instance type with more memory, lower the count of the instance groups, "
        "or load fewer models together"
    ),
    server_hint=(
        "give the server more memory, lower the count of the instance groups, or load fewer "
        "models: --load-model NAME"
    ),
    needs_files=True,
)
def memory(context: RepositoryContext) -> Iterator[Problem]:
    """The weights of the models that run on the CPU fit into the memory of the machine.

    They are counted as for ``target-gpu-memory``.
    """
    for problem in _exceeded(context, is_gpu=False):
        is_kserve = context.target.platform == "kserve"
        yield problem._replace(hint=_KSERVE_HINT) if is_kserve and not problem.hint else problem


def _exceeded(context: RepositoryContext, *, is_gpu: bool) -> Iterator[Problem]:
    """Report the fullest place, for the models of the archive that need most of it."""
    found = []
    for estimate in memory_of(context):
        for place in estimate.exceeded:
            is_kind = place != SHARED_MEMORY and (place != HOST) is is_gpu
            if is_kind:
                found.append((estimate.total(place), place, estimate))
    if not found:
        return

    total, place, largest = max(found, key=lambda entry: entry[0])
    comparison = _compared(context.target, largest, place, total)
    parts = "; ".join(map(str, largest.largest(place)))
    hint = _higher_limit(total, place, context.target)
    if not hint:
        hint = _smaller_shares(largest, place, context.target)
    yield Problem(f"the models need at least {comparison}: {parts}", hint=hint)


def _compared(target: Target, found: MemoryEstimate, place: str, size: int) -> str:
    """Return a number of bytes with the place that has less, and what limits it."""
    needed, limit = in_same_units(size, found.limits[place])
    limited_by = limiting(target, place)
    if limited_by is None:
        return f"{needed} of {place}, which has {limit}"
    return f"{needed} of {place}, of which {limited_by} allows {limit}"


def _higher_limit(total: int, place: str, target: Target) -> str | None:
    """Return how to fix a limit; ``None`` if there is none, or the models exceed the place too."""
    by = limiting(target, place)
    if by is None:
        return None
    gpu_mib, host_gib = target.gpu_memory_mib, target.memory_gib
    size = gpu_mib and gpu_mib * _MIB if is_gpu(place) else host_gib and host_gib * 2**30
    if size is not None and total > size:
        return None
    return f"raise {by}, or lower the count of the instance groups"


def _smaller_shares(found: MemoryEstimate, place: str, target: Target) -> str | None:
    """Return how to fix shares that do not fit together; ``None`` is the hint of the rule."""
    sharing = [part.model for part in found.parts if part.place == place and part.is_share]
    if not sharing:
        return None
    names = quoted(dict.fromkeys(sharing))
    fewer = "load fewer models together" if target.is_sagemaker else "use --load-model NAME"
    return (
        f"lower gpu_memory_utilization in model.json of {names}, so that the shares and the other "
        f"models fit together, {fewer}, or use GPUs with more memory"
    )
