"""Settings in the configuration of a model."""

from __future__ import annotations

from pathlib import Path

import pytest

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_tools.measuring.tuning.candidates import ModelSettings
from constructs_triton_tools.measuring.tuning.model_settings import (
    find_space,
    read_settings,
    write_settings,
)
from triton_model_check.model.folder import ModelFolder
from triton_model_check.model_config.text import format_model_config

TENSORS = (
    'input { name: "X" data_type: TYPE_FP32 dims: 4 } output { name: '
    '"Y" data_type: TYPE_FP32 dims: 4 }'
)


def write_model(tmp_path: Path, config: str) -> ModelFolder:
    (tmp_path / "m" / "1").mkdir(parents=True)
    (tmp_path / "m" / "config.pbtxt").write_text(f"{config} {TENSORS}")
    return ModelFolder("m", tmp_path / "m")


def rewrite(folder: ModelFolder, settings: ModelSettings) -> ModelSettings:
    """Write settings and read them again."""
    config = write_settings(folder.config, read_settings(folder, 0), settings)
    (folder.directory / "config.pbtxt").write_text(format_model_config(config))
    return read_settings(ModelFolder("m", folder.directory), 0)


@pytest.mark.parametrize(
    ("config", "settings"),
    [
        ('backend: "python"', ModelSettings(1, 1)),
        ('backend: "python" max_batch_size: 8', ModelSettings(1, 1)),
        ('backend: "python" max_batch_size: 8 dynamic_batching { }', ModelSettings(1, 8)),
        (
            'backend: "python" max_batch_size: 8 instance_group [ { count: 2 }, { count: 3 } ] '
            "dynamic_batching { max_queue_delay_microseconds: 500 }",
            ModelSettings(5, 8, 500),
        ),
        ('backend: "onnxruntime" max_batch_size: 8', ModelSettings(2, 1)),
        (
            'backend: "onnxruntime" max_batch_size: 8 '
            'parameters { key: "intra_op_thread_count" value { string_value: "1" } }',
            ModelSettings(2, 1, 0, (("intra_op_thread_count", "1"),)),
        ),
    ],
)
def test_settings_are_those_that_the_server_completes(
    tmp_path: Path, config: str, settings: ModelSettings
) -> None:
    """Settings that the file leaves out are those of the server,
    such as two instances of ONNX on CPUs.
    """
    assert read_settings(write_model(tmp_path, config), 0) == settings


@pytest.mark.parametrize(
    "settings",
    [
        ModelSettings(2, 1),
        ModelSettings(1, 16),
        ModelSettings(1, 4, 2500),
        ModelSettings(2, 4, 0, (("intra_op_thread_count", "3"),)),
    ],
)
def test_written_settings_are_read_again(tmp_path: Path, settings: ModelSettings) -> None:
    """What is written is what the server reads, also where it replaces groups, sizes and delays."""
    folder = write_model(
        tmp_path,
        'backend: "onnxruntime" max_batch_size: 8 instance_group [ { count: 1 kind: KIND_CPU } ] '
        "dynamic_batching { preferred_batch_size: [ 2, 8 ] max_queue_delay_microseconds: 500 }",
    )
    assert rewrite(folder, settings) == settings


def test_settings_that_stay_are_not_rewritten(tmp_path: Path) -> None:
    """More instances change the count of the first group only; batching,
    kind and GPUs stay as written.
    """
    batching = "dynamic_batching { preferred_batch_size: 2 preserve_ordering: true }"
    folder = write_model(
        tmp_path,
        'backend: "python" max_batch_size: 8 instance_group [ { count: 1 kind: KIND_CPU } ] '
        + batching,
    )
    written = write_settings(folder.config, read_settings(folder, 0), ModelSettings(2, 8))
    assert written.dynamic_batching == folder.config.dynamic_batching
    assert [(group.count, group.kind) for group in written.instance_group] == [(2, 2)]


def test_smaller_batch_drops_larger_preferred_sizes(tmp_path: Path) -> None:
    """Triton refuses a preferred size above max_batch_size, so it is dropped."""
    folder = write_model(
        tmp_path,
        'backend: "python" max_batch_size: 8 dynamic_batching { preferred_batch_size: [ 2, 8 ] }',
    )
    written = write_settings(folder.config, read_settings(folder, 0), ModelSettings(1, 4))
    assert list(written.dynamic_batching.preferred_batch_size) == [2]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ('backend: "vllm"', "has its own batching, which tune does not search; .* AIPerf"),
        (
            'backend: "python" max_batch_size: 4 sequence_batching { }',
            "does not search models of sequences",
        ),
        (
            'backend: "python" model_transaction_policy { decoupled: true }',
            "one response for each request",
        ),
    ],
)
def test_models_that_cannot_be_tuned_are_refused(tmp_path: Path, config: str, message: str) -> None:
    """Models that generate, keep sequences or answer several times are an error
    that names another tool.
    """
    with pytest.raises(InvalidValueError, match=message):
        read_settings(write_model(tmp_path, config), 0)


def test_space_depends_on_backend_and_machine(tmp_path: Path) -> None:
    """Instances on CPUs are at most the CPUs, delays a part of the limit,
    and threads share the CPUs.
    """
    folder = write_model(tmp_path, 'backend: "onnxruntime" max_batch_size: 8')
    space = find_space(folder, 100, cpus=4, gpu_count=0, parameters={})
    assert (space.most_instances, space.most_batch) == (4, 128)
    assert space.delays_microseconds == (2000, 5000, 10_000)
    assert space.instance_parameters == tuple(
        (count, "intra_op_thread_count", threads)
        for count, threads in ((1, "4"), (2, "2"), (4, "1"))
    )


def test_model_without_batches_gets_instances_only(tmp_path: Path) -> None:
    """With max_batch_size 0, neither batches nor delays are tried; on GPUs,
    up to 8 instances are.
    """
    folder = write_model(tmp_path, 'backend: "python" instance_group [ { kind: KIND_GPU } ]')
    space = find_space(folder, 100, cpus=2, gpu_count=1, parameters={})
    assert (space.most_instances, space.most_batch, space.delays_microseconds) == (8, 1, ())


def test_plan_of_tensorrt_limits_the_batch(tmp_path: Path) -> None:
    """A TensorRT plan cannot have larger batches than its configuration."""
    folder = write_model(tmp_path, 'backend: "tensorrt" max_batch_size: 16')
    assert find_space(folder, 100, cpus=2, gpu_count=1, parameters={}).most_batch == 16
