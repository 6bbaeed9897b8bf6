"""Completes a configuration from an ONNX model as the ONNX Runtime backend does (rules A1 to A9).

Source: onnxruntime_backend r24.10, src/onnxruntime.cc, ModelState::AutoCompleteConfig. Tensors are
in the order of the model; the server's order is that of a hash map.
"""

from __future__ import annotations

from typing import Any

from triton_model_check.model.backends import Backend
from triton_model_check.model_config.schema import new_model_config
from triton_model_check.model_files.model_file import ModelFile, ModelTensor

DEFAULT_MAX_BATCH_SIZE = 4
"""The ``max_batch_size`` that the backend sets if the model supports batching
and none is written.
"""


def complete_from_onnx(config: Any | None, file: ModelFile, name: str) -> Any:
    """Return a copy of the configuration, completed from the model;
    ``None`` stands for an empty one.
    """
    completed = new_model_config()
    if config is not None:
        completed.CopyFrom(config)
    completed.name = completed.name or name
    if not is_complete(completed):
        _complete_from(completed, file)
    _prefer_full_batches(completed)
    return completed


def _complete_from(completed: Any, file: ModelFile) -> None:
    _complete_batching(completed, file)
    required = [each for each in file.inputs if not each.is_optional]
    for field, tensors in ((completed.input, required), (completed.output, file.outputs)):
        if not field:
            for tensor in tensors:
                _add(field.add(), tensor, completed.max_batch_size > 0)


def _prefer_full_batches(config: Any) -> None:
    """Set the preferred batch size as the core does (model_config_utils.cc,
    NormalizeModelConfig).
    """
    batching = config.dynamic_batching
    if (
        config.HasField("dynamic_batching")
        and config.max_batch_size > 0
        and not batching.preferred_batch_size
    ):
        batching.preferred_batch_size.append(config.max_batch_size)


def is_complete(config: Any) -> bool:
    """Return whether the backend leaves the configuration unchanged (A1)."""
    return bool((config.input or config.batch_input) and config.output)


def _complete_batching(config: Any, file: ModelFile) -> None:
    if file.has_batch_dimension and config.max_batch_size == 0:
        config.max_batch_size = DEFAULT_MAX_BATCH_SIZE
    has_scheduler = config.WhichOneof("scheduling_choice") is not None
    if file.has_batch_dimension and config.max_batch_size > 1 and not has_scheduler:
        config.dynamic_batching.SetInParent()


def _add(tensor: Any, found: ModelTensor, is_batched: bool) -> None:
    """Write a tensor of the model into a new one of the configuration."""
    tensor.name = found.name
    if found.data_type:
        tensor.data_type = _number(tensor, found.data_type)
    if found.shape is None and not found.has_certain_shape:
        return  # Only the runtime knows the shape; without dims, nothing compares it.
    dims = list(found.shape or ())
    dims = dims[1:] if is_batched else dims
    tensor.dims.extend(dims or [1])
    if not dims and is_batched:
        tensor.reshape.SetInParent()


def _number(tensor: Any, data_type: str) -> int:
    values = tensor.DESCRIPTOR.fields_by_name["data_type"].enum_type.values_by_name
    return int(values[data_type].number)


# What Triton's core completes for every backend.

_TWO_INSTANCES_ON_CPU = frozenset({"onnxruntime", "tensorflow"})
_SEQUENCE_IDLE_MICROSECONDS = 1_000_000


def complete_core(config: Any, backend: Backend, gpu_count: int | None) -> None:
    """Set what Triton's core sets in the configuration of a model, in place.

    ``gpu_count`` is the number of GPUs of the machine; without it, instance groups are left as they
    are.
    Source: triton core r24.10, model_config_utils.cc, AutoCompleteBackendFields and
    NormalizeModelConfig.
    """
    config.backend, config.platform, config.default_model_filename = backend
    if not config.HasField("version_policy"):
        config.version_policy.latest.num_versions = 1
    for memory in (
        config.optimization.input_pinned_memory,
        config.optimization.output_pinned_memory,
    ):
        if not memory.ListFields():
            memory.enable = True
    if config.HasField("sequence_batching"):
        sequences = config.sequence_batching
        sequences.max_sequence_idle_microseconds = (
            sequences.max_sequence_idle_microseconds or _SEQUENCE_IDLE_MICROSECONDS
        )
    _prefer_full_batches(config)
    if gpu_count is not None:
        _complete_instances(config, gpu_count)


def _complete_instances(config: Any, gpu_count: int) -> None:
    """Complete the instance groups of a model as Triton does."""
    groups = config.instance_group
    if not groups:
        has_two = not gpu_count and config.backend in _TWO_INSTANCES_ON_CPU
        groups.add(name=config.name, count=2 if has_two else 1)
    for index, group in enumerate(groups):
        group.name = group.name or f"{config.name}_{index}"
        group.count = group.count or 1
        if group.kind == group.KIND_AUTO:
            group.kind = group.KIND_GPU if gpu_count else group.KIND_CPU
        if group.kind == group.KIND_GPU and not group.gpus:
            group.gpus.extend(range(gpu_count))
