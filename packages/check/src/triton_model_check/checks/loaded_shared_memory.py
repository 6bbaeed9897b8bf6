"""What the Python models that a target loads take of ``/dev/shm``, and how large that is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from triton_model_check.checks.loaded_memory import estimates, loaded_together
from triton_model_check.checks.model_under_check import ModelUnderCheck, RepositoryContext
from triton_model_check.facts.published import load
from triton_model_check.memory.estimate import MemoryEstimate
from triton_model_check.memory.instances import GPU, HOST, resolved_kind
from triton_model_check.memory.shared_memory import (
    PYTHON_BACKENDS,
    SHARED_MEMORY,
    PythonProcesses,
    Region,
    process_count,
    shared_memory,
)
from triton_model_check.memory.tensor_sizes import has_unknown_size, tensor_bytes
from triton_model_check.model_config.target import Target

_ON_GPU_TOO = "FORCE_CPU_ONLY_INPUT_TENSORS"


def memory_of(context: RepositoryContext) -> list[MemoryEstimate]:
    """Return what the models take of each GPU, of the host and of ``/dev/shm``.

    Without a number of GPUs there is only what they take of ``/dev/shm``.
    """
    shared = [shared_memory_of(context, names) for names in loaded_together(context)]
    others = estimates(context)
    if not others:
        return [each for each in shared if each.parts]
    return [_joined(other, each) for other, each in zip(others, shared, strict=True)]


def _joined(first: MemoryEstimate, second: MemoryEstimate) -> MemoryEstimate:
    """Return an estimate of GPUs and host with that of ``/dev/shm``, which is in host memory."""
    in_host = (
        replace(part, place=HOST, what=f"in {SHARED_MEMORY}: {part.what}") for part in second.parts
    )
    return replace(
        first,
        parts=(*first.parts, *in_host, *second.parts),
        limits={**first.limits, **(second.limits if second.parts else {})},
        shared_not_counted=second.shared_not_counted,
    )


def shared_memory_of(
    context: RepositoryContext, names: Iterable[str], *, with_calls: bool = True
) -> MemoryEstimate:
    """Return what the named models take of ``/dev/shm`` together; ``with_calls``: after calls.

    There are no parts if the size of a region is not known.
    """
    target = context.target
    models = [context.models[name] for name in names]
    python = [model for model in models if model.backend in PYTHON_BACKENDS]
    region = _region(target)
    if region is None:
        left_out = tuple(f"{model.name}: the image version is not known" for model in python)
        return MemoryEstimate((), (), shared_not_counted=left_out)
    return shared_memory(
        [_processes(model) for model in python],
        region,
        shared_memory_limit(target),
        with_calls=with_calls,
        not_counted=[line for model in python if region.first for line in _not_counted(model)],
    )


def shared_memory_limit(target: Target) -> int | None:
    """Return the size of ``/dev/shm``; ``None`` if it is not known.

    SageMaker gives a container up to half of the instance's memory.
    """
    if target.shm_bytes is not None:
        return target.shm_bytes
    if not target.is_sagemaker or target.memory_gib is None:
        return None
    return int(target.memory_gib * 2**30 * load("memory")["shm"]["sagemaker_fraction"])


def _region(target: Target) -> Region | None:
    return Region.of(
        target.image_version,
        is_sagemaker=target.is_sagemaker,
        first=target.shm_default_byte_size,
        growth=target.shm_growth_byte_size,
    )


def _processes(model: ModelUnderCheck) -> PythonProcesses:
    """Return how many processes of Python a model starts, and the tensors that they copy."""
    groups = () if model.config is None else model.config.instance_group
    # Every loaded version has its own instances; versions may be stored elsewhere.
    versions = max(1, len(model.versions_to_load))
    count = versions * process_count(groups, model.backend, model.target.gpu_count)
    declared = model.context.declared_calls.get(model.name)
    if declared is not None:
        return PythonProcesses(model.name, count, declared, is_declared=True)
    if model.config is None:
        return PythonProcesses(model.name, count)

    tensors = list(model.config.input) if _copies_inputs(model) else []
    if _copies_outputs(model):
        tensors += model.config.output
    batch = max(1, model.config.max_batch_size)
    call_bytes = batch * sum(map(tensor_bytes, tensors))
    return PythonProcesses(model.name, count, call_bytes, batch)


def _copies_inputs(model: ModelUnderCheck) -> bool:
    """Whether inputs are copied into ``/dev/shm``: all, unless the model takes them from a GPU.

    Source: python_backend README, "Input Tensor Device Placement".
    """
    is_forced = model.parameter(_ON_GPU_TOO).lower() != "no"
    return is_forced or not _may_be_on_gpu(model)


def _copies_outputs(model: ModelUnderCheck) -> bool:
    """Whether each call has all outputs in ``/dev/shm``.

    Responses of a decoupled model are sent one by one. Outputs stay on a GPU only if the code gets
    them there: with ``from_dlpack``, or from another model.
    """
    if model.config.model_transaction_policy.decoupled:
        return False
    return not _may_be_on_gpu(model) or not _has_tensors_of_others(model)


def _may_be_on_gpu(model: ModelUnderCheck) -> bool:
    gpu_count = model.target.gpu_count
    if gpu_count == 0:
        return False
    groups = list(model.config.instance_group)
    return not groups or any(resolved_kind(each, gpu_count or 1) == GPU for each in groups)


def _has_tensors_of_others(model: ModelUnderCheck) -> bool:
    """Whether the code may get tensors from a GPU; so it may if it is stored elsewhere."""
    sources = model.python_sources
    return not sources or any(
        word in source.content for source in sources for word in (b"dlpack", b"InferenceRequest")
    )


def _not_counted(model: ModelUnderCheck) -> list[str]:
    """Return what a model takes of ``/dev/shm`` besides, or may take."""
    if model.name in model.context.declared_calls:
        return []
    if model.config is None or not (model.config.input or model.config.output):
        found = ["its tensors, which config.pbtxt does not declare"]
    else:
        found = []
        if any(map(has_unknown_size, (*model.config.input, *model.config.output))):
            found.append("variable dimensions beyond 1, and the characters of strings")
        if not _copies_inputs(model):
            found.append("inputs that it does not take from a GPU")
        if not _copies_outputs(model):
            found.append("its outputs, which may be on a GPU or come one by one")
    if any(b"InferenceRequest" in source.content for source in model.python_sources):
        found.append("its calls of other models")
    if model.backend == "vllm":
        found.append("what vLLM's own processes exchange")
    return [f"{model.name}: {'; '.join(found)}"] if found else []
