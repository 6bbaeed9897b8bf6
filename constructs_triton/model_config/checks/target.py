"""Where a repository meets the endpoint: image, GPUs, memory, disk and request size."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from constructs_triton.datatypes import by_data_type
from constructs_triton.facts.images import image_version
from constructs_triton.facts.limits import INVOCATION_PAYLOAD_BYTES
from constructs_triton.facts.versions import is_at_least
from constructs_triton.findings import Severity
from constructs_triton.model_config.checks.instances import groups, resolved_kind
from constructs_triton.model_config.model_under_check import ModelUnderCheck, RepositoryContext
from constructs_triton.model_config.rules import Problem, rule
from constructs_triton.model_config.schema import data_type_name

__all__: list[str] = []

_PROTO = "triton common protobuf/model_config.proto by release branch"
_MIB = 2**20
_SHARED_MEMORY_DEFAULT = 16 * _MIB

# A field and the first release whose schema has it; releases before it refuse the text.
_FIELD_SINCE = {
    "runtime": "24.01",
    "is_non_linear_format_io": "24.08",
    "model_metrics": "24.11",
    "max_inflight_requests": "25.11",
}


@rule("target-field-too-new", source=_PROTO)
def field_too_new(model: ModelUnderCheck) -> Iterator[Problem]:
    """Every field is known to the chosen image version.

    An older server refuses the text for a field that a newer one added.
    """
    version = model.target.image_version
    if version is None:
        return
    for name, place in _new_fields(model.config):
        since = _FIELD_SINCE[name]
        if not is_at_least(version, since):
            hint = f"remove it, or choose image {since} or newer"
            yield Problem(f"{name} is not known to image {version}, it came with {since}", place, hint)


def _new_fields(config: Any) -> Iterator[tuple[str, tuple[str | int, ...]]]:
    if config.runtime:
        yield "runtime", ("runtime",)
    if config.HasField("model_metrics"):
        yield "model_metrics", ("model_metrics",)
    if config.ensemble_scheduling.max_inflight_requests:
        yield "max_inflight_requests", ("ensemble_scheduling", "max_inflight_requests")
    for field in ("input", "output"):
        for index, tensor in enumerate(getattr(config, field)):
            if tensor.is_non_linear_format_io:
                yield "is_non_linear_format_io", (field, index, "is_non_linear_format_io")


@rule("target-backend-removed", source="triton server build.py by release branch")
def backend_removed(model: ModelUnderCheck) -> Iterator[Problem]:
    """The chosen image version still carries the backend.

    TensorFlow's was removed in 25.03.
    """
    version = model.target.image_version
    if version is None or not model.backend:
        return
    if model.backend in image_version(version).removed_backends:
        hint = "choose an older image, or convert the model to ONNX"
        place = ("backend",) if model.config.backend else ("platform",)
        yield Problem(f"image {version} has no backend {model.backend}", place, hint)


@rule(
    "target-tensorrt-without-gpu",
    refuses=False,
    source="triton tensorrt_backend, ModelInstanceState",
    hint="choose a GPU instance, or serve the model as ONNX",
)
def tensorrt_without_gpu(model: ModelUnderCheck) -> Iterator[Problem]:
    """A TensorRT plan runs on an instance with a GPU.

    The configuration is valid anywhere; it is the backend that cannot read a plan without a GPU.
    """
    if model.backend == "tensorrt" and model.target.gpu_count == 0:
        place = ("backend",) if model.config.backend else ("platform",)
        yield Problem("a TensorRT plan needs a GPU and the instance has none", place)


# --- memory and disk --------------------------------------------------------------------------------------


@rule(
    "target-shared-memory",
    "repository",
    severity=Severity.WARNING,
    source="triton python_backend, shm-default-byte-size; AWS documentation: half of the memory is /dev/shm",
    hint="lower the instance counts or the shared memory of each, or choose a larger instance",
)
def shared_memory(context: RepositoryContext) -> Iterator[Problem]:
    """The Python instances fit into shared memory: half of the instance's memory.

    Each takes 16 MiB at start and, while busy, some two and a half times its tensors. What is full is not
    grown: requests fail.
    """
    memory = context.target.memory_gib
    if memory is None:
        return
    needed = sum(_shared_bytes(context.models[name]) for name in sorted(context.loaded))
    available = memory * 2**30 / 2
    if needed > available:
        yield Problem(
            f"Python instances need {needed / 2**30:.1f} GiB of shared memory, got {available / 2**30:g} GiB"
        )


def _shared_bytes(model: ModelUnderCheck) -> float:
    if model.backend != "python" or model.config is None:
        return 0
    batch = max(1, model.config.max_batch_size)
    sides = [sum(_bytes(tensor) for tensor in side) for side in (model.config.input, model.config.output)]
    return float(instance_count(model) * (_SHARED_MEMORY_DEFAULT + 1.25 * batch * sum(sides)))


def instance_count(model: ModelUnderCheck) -> int:
    """How many instances of the model one machine runs; a GPU group counts for each of its GPUs."""
    total = 0
    for _, group in groups(model):
        on_gpu = resolved_kind(group, model.target.gpu_count) == 1
        total += max(1, group.count) * (
            max(1, len(group.gpus) or model.target.gpu_count or 1) if on_gpu else 1
        )
    return total or 1


def _bytes(tensor: Any) -> int:
    """Bytes of one element of the batch; what varies counts as 1, so this is the least."""
    row = by_data_type(data_type_name(tensor.data_type))
    item = row.item_size if row is not None and row.item_size else 4
    return int(item * math.prod(max(1, dim) for dim in tensor.dims))


@rule(
    "target-request-size",
    severity=Severity.WARNING,
    source="AWS documentation: SageMaker hosting FAQs, 25 MB for a real-time endpoint",
    hint="lower max_batch_size, or send smaller batches",
)
def request_size(model: ModelUnderCheck) -> Iterator[Problem]:
    """A request of ``max_batch_size`` fits into what SageMaker lets through.

    Counted in binary form; JSON takes several times as much. Larger batches still form in the server.
    """
    if not model.context.front_end or model.name not in model.context.served:
        return
    batch = max(1, model.config.max_batch_size)
    size = batch * sum(_bytes(tensor) for tensor in model.config.input)
    limit = INVOCATION_PAYLOAD_BYTES
    if size > limit:
        message = (
            f"a request of {batch} takes {size / _MIB:.0f} MB and SageMaker lets {limit // _MIB} MB through"
        )
        yield Problem(message, ("max_batch_size",))


@rule(
    "target-storage",
    "repository",
    refuses=False,
    source="AWS documentation: SageMaker hosting, volume size",
    hint="choose an instance with more storage, or a larger volume",
    needs_files=True,
)
def storage(context: RepositoryContext) -> Iterator[Problem]:
    """The models fit onto the instance's disk.

    An archive is unpacked there; a multi-model endpoint holds several at once.
    """
    limit = context.target.storage_gb
    if limit is None:
        return
    sizes = {name: context.folders[name].total_bytes for name in context.loaded if name in context.folders}
    largest = max(sizes.values(), default=0) if context.target.mode == "multi-model" else sum(sizes.values())
    if largest > limit * 10**9:
        yield Problem(f"the models take {largest / 1e9:.1f} GB, got {limit} GB of storage")


@rule(
    "target-gpu-memory",
    severity=Severity.WARNING,
    source="triton tensorrt_backend and pytorch_backend: weights are loaded into GPU memory",
    hint="choose a GPU with more memory, or fewer instances",
    needs_files=True,
)
def gpu_memory(model: ModelUnderCheck) -> Iterator[Problem]:
    """The weights of a model on GPUs fit into the memory of one.

    Python models are not judged: they decide themselves what they load and where.
    """
    memory = model.target.gpu_memory_mib
    if not memory or not model.target.gpu_count or model.backend in ("python", "", "vllm", "tensorrtllm"):
        return
    size = sum(
        model.folder.size_of(version, model.completed.model_file) or 0 for version in model.versions_to_load
    )
    if size > memory * _MIB:
        yield Problem(f"the weights take {size / _MIB:.0f} MiB, a GPU has {memory} MiB")
