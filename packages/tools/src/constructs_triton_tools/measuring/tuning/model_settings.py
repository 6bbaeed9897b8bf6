"""Reads the settings of a search from a model's configuration, and writes them into it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_tools.measuring.tuning.candidates import (
    LARGEST_BATCH,
    ModelSettings,
    SearchSpace,
)
from triton_model_check.checks.loaded_config import complete
from triton_model_check.model.folder import ModelFolder
from triton_model_check.model_config.target import Target

#: The parameter that sets the threads of one instance.
_THREADS = {"onnxruntime": "intra_op_thread_count", "openvino": "INFERENCE_NUM_THREADS"}
#: They batch by themselves, and a token's latency is not that of a request.
_GENERATING = frozenset({"vllm", "tensorrtllm"})
#: A delay is worth trying up to a tenth of the limit: it is in each latency.
_DELAY_SHARES = (50, 20, 10)
_MOST_INSTANCES = 8


def read_settings(
    folder: ModelFolder, gpu_count: int, parameters: Collection[str] = ()
) -> ModelSettings:
    """Return the settings of a model as the server completes them.

    ``parameters`` are further parameters of the backend to read.
    """
    config = complete(folder, Target(gpu_count=gpu_count)).config
    _refuse(folder.name, config)
    batching = config.dynamic_batching
    has_batching = config.HasField("dynamic_batching") and config.max_batch_size > 1
    names = {*parameters, *filter(None, [_THREADS.get(config.backend)])} & set(config.parameters)
    return ModelSettings(
        sum(group.count for group in config.instance_group),
        config.max_batch_size if has_batching else 1,
        batching.max_queue_delay_microseconds if has_batching else 0,
        tuple((name, config.parameters[name].string_value) for name in sorted(names)),
    )


def _refuse(name: str, config: Any) -> None:
    if config.backend in _GENERATING:
        raise InvalidValueError(
            f"{name}: the backend {config.backend} has its own batching, which tune does not "
            "search; measure it with `constructs-triton load-test --stream`, "
            "or with NVIDIA's AIPerf"
        )
    if config.HasField("sequence_batching"):
        raise InvalidValueError(f"{name}: tune does not search models of sequences; use load-test")
    if config.model_transaction_policy.decoupled:
        raise InvalidValueError(
            f"{name}: tune measures one response for each request; "
            "use `constructs-triton load-test --stream`"
        )


def find_space(
    folder: ModelFolder,
    latency_ms: float,
    *,
    cpus: int,
    gpu_count: int,
    parameters: Mapping[str, Sequence[str]],
) -> SearchSpace:
    """Return within which limits a model is searched.

    Delays are a part of the latency's limit. A model on CPUs gets at most one instance for each.
    """
    config = complete(folder, Target(gpu_count=gpu_count)).config
    is_on_gpu = any(group.kind == group.KIND_GPU for group in config.instance_group)
    instances = _MOST_INSTANCES if is_on_gpu else min(cpus, _MOST_INSTANCES)
    can_batch = config.max_batch_size > 0
    # A plan has profiles, whose largest batch is not known without TensorRT; the configuration
    # respects it.
    most_batch = config.max_batch_size if config.backend == "tensorrt" else LARGEST_BATCH
    limit = round(latency_ms * 1000)
    threads = None if is_on_gpu else _THREADS.get(config.backend)
    return SearchSpace(
        instances,
        most_batch if can_batch else 1,
        1,
        tuple(limit // share for share in _DELAY_SHARES) if can_batch else (),
        tuple((name, tuple(values)) for name, values in parameters.items()),
        _share_cpus(threads, cpus) if threads and threads not in parameters else (),
    )


def _share_cpus(parameter: str, cpus: int) -> tuple[tuple[int, str, str], ...]:
    """Instances, a power of two, and the threads of each, which share all CPUs."""
    counts = [2**power for power in range(cpus.bit_length())]
    return tuple((count, parameter, str(cpus // count)) for count in counts)


def write_settings(config: Any, present: ModelSettings, settings: ModelSettings) -> Any:
    """Return a copy of a configuration with other settings.

    What the settings leave as it is at present stays as it is written.

    ``config`` is the message of the present configuration, as it is written.
    """
    written = type(config)()
    written.CopyFrom(config)
    if settings.instances != present.instances:
        _write_instances(written, settings.instances)
    if (settings.batch, settings.delay_microseconds) != (present.batch, present.delay_microseconds):
        _write_batching(written, settings)
    for name, value in settings.parameters:
        if dict(present.parameters).get(name) != value:
            written.parameters[name].string_value = value
    return written


def _write_instances(config: Any, count: int) -> None:
    """Write one group with the count, of the kind and the GPUs of the first group."""
    groups = config.instance_group
    if groups:
        del groups[1:]
    else:
        groups.add()
    groups[0].count = count


def _write_batching(config: Any, settings: ModelSettings) -> None:
    if settings.batch == 1:
        config.ClearField("dynamic_batching")
        if not config.input:  # the backend would complete dynamic batching again
            config.max_batch_size = min(config.max_batch_size, 1)
        return
    config.max_batch_size = settings.batch
    batching = config.dynamic_batching
    batching.SetInParent()
    batching.max_queue_delay_microseconds = settings.delay_microseconds
    kept = [size for size in batching.preferred_batch_size if size <= settings.batch]
    del batching.preferred_batch_size[:]
    batching.preferred_batch_size.extend(kept)
