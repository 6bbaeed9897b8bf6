"""What the sum says of engines of TensorRT-LLM."""

from __future__ import annotations

from pathlib import Path

import pytest
from engines import memory, sizes, sparse

from triton_model_check.model_config.target import Target
from triton_model_check.model_repository import ModelRepository


def _parameter(key: str, value: str) -> str:
    return f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}\n'


def _model(folder: Path, ranks: list[float], group: str = "", **parameters: str) -> None:
    for rank, gib in enumerate(ranks):
        sparse(folder / "1" / "engine" / f"rank{rank}.engine", gib)
    given = {"gpt_model_path": f"/models/{folder.name}/1/engine", **parameters}
    text = 'backend: "tensorrtllm"\n' + "".join(_parameter(*item) for item in given.items())
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.pbtxt").write_text(text + group)


@pytest.mark.parametrize(
    ("group", "parameters", "expected"),
    [
        ("", {}, {0: 8, 1: 7}),
        ("instance_group { count: 2 kind: KIND_CPU }\n", {}, {0: 16, 1: 14}),
        ("", {"gpu_device_ids": "2,3"}, {2: 8, 3: 7}),
        ("instance_group { count: 2 }\n", {"gpu_device_ids": "0,1;2,3"}, {0: 8, 1: 7, 2: 8, 3: 7}),
        ("", {"gpu_device_ids": "${gpu_device_ids}"}, {0: 8, 1: 7}),
        ("", {"gpu_weights_percent": "0.5"}, {0: 4, 1: 3.5}),
        (
            "instance_group { count: 3 }\n",
            {"gpu_device_ids": "0,1;2,3"},
            {0: 16, 1: 14, 2: 8, 3: 7},
        ),
        (
            "instance_group { count: 2000000000 }\n",
            {},
            {0: 16_000_000_000, 1: 14_000_000_000},
        ),
    ],
)
def test_each_process_has_its_engine_on_a_gpu(
    group: str, parameters: dict[str, str], expected: dict[int, float], tmp_path: Path
) -> None:
    """The files count for each instance, on the GPUs that the parameters name, whatever the kind.

    NVIDIA's template says ``KIND_CPU``, and its engines run on GPUs.
    """
    _model(tmp_path / "m", [8, 7], group, **parameters)
    assert sizes(memory(tmp_path, 4)) == {(f"GPU {gpu}", "m"): gib for gpu, gib in expected.items()}


def test_cache_is_named(tmp_path: Path) -> None:
    """The key-value cache depends on what is free, so that it is named with its fraction."""
    _model(tmp_path / "m", [8], kv_cache_free_gpu_mem_fraction="0.3")
    (line,) = memory(tmp_path).not_counted
    assert line.startswith("m: its key-value cache takes up to 30 percent of the memory")


def test_encoder_counts_too(tmp_path: Path) -> None:
    """A model with an encoder loads two engines."""
    _model(tmp_path / "m", [4], encoder_model_path="/models/m/1/encoder")
    sparse(tmp_path / "m" / "1" / "encoder" / "rank0.engine", 2)
    assert sizes(memory(tmp_path)) == {("GPU 0", "m"): 6.0}


@pytest.mark.parametrize(
    ("place", "note"),
    [
        ("/engines/llama", 'm: the engine of "/engines/llama" is not in the repository'),
        ("${engine_dir}", "m: its engine folder is not named"),
    ],
)
def test_engine_elsewhere_is_named(place: str, note: str, tmp_path: Path) -> None:
    """An engine that is not in the repository has an unknown size."""
    _model(tmp_path / "m", [8], gpt_model_path=place)
    estimate = memory(tmp_path)
    assert sizes(estimate) == {}
    assert estimate.not_counted == (note,)


@pytest.mark.parametrize(
    ("gib", "instances_and_gpus", "parameters", "code"),
    [
        (26, (1, 1), {}, "target-gpu-weights-memory"),
        (13.4, (2, 1), {}, "target-gpu-weights-memory"),
        (13.4, (2, 2), {}, "target-gpu-memory"),
        (26, (1, 1), {"gpu_weights_percent": "0.95"}, "target-gpu-memory"),
        (23.9, (1, 1), {}, "target-gpu-memory"),
    ],
)
def test_engine_that_certainly_does_not_fit_is_an_error(
    gib: float,
    instances_and_gpus: tuple[int, int],
    parameters: dict[str, str],
    code: str,
    tmp_path: Path,
) -> None:
    """Engines beyond the memory of a GPU are an error where all of them certainly are on it."""
    instances, gpus = instances_and_gpus
    group = f"instance_group {{ count: {instances} kind: KIND_CPU }}\n"
    _model(tmp_path / "m", [gib], group, **parameters)
    target = Target.named("server", gpu_count=gpus, gpu_memory_mib=24 * 1024)
    report = ModelRepository.from_directory(tmp_path).check(target, is_packed=False)
    assert [each.code for each in report.findings if "memory" in each.code] == [code]


def test_declared_memory_takes_the_place_of_an_engine(tmp_path: Path) -> None:
    """What ``triton-models.toml`` says counts instead of the files and of what is not known."""
    _model(tmp_path / "m", [8])
    (tmp_path / "triton-models.toml").write_text("[memory]\nm = { gpu_mib = 20480 }\n")
    estimate = memory(tmp_path)
    assert sizes(estimate) == {("GPU 0", "m"): 20.0}
    assert estimate.not_counted == ()
