"""Rules whose result depends on a distance or a sum, checked on both sides of the threshold."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from check_examples import write
from check_examples.repositories import CLASS

from constructs_triton_core.findings import Finding
from triton_model_check.checks.chapters import RULES
from triton_model_check.checks.model_under_check import RepositoryContext
from triton_model_check.model.folder import ModelFolder
from triton_model_check.model_config.target import Target
from triton_model_check.model_repository import ModelRepository

TENSOR = '{ name: "%s" data_type: TYPE_FP32 dims: [ 1048576 ] }'
LARGE = (
    f'backend: "python"\nmax_batch_size: 8\ninput [ {TENSOR % "X"} ]\noutput [ {TENSOR % "Y"} ]\n'
    "instance_group [ { kind: KIND_CPU count: 2 } ]\n"
)

MODEL = {"config.pbtxt": 'backend: "python"\n', "1/model.py": CLASS}


def _findings(config: str, target: Target, directory: Path, code: str) -> list[Finding]:
    files = {"m/config.pbtxt": config, "m/1/model.py": CLASS}
    report = ModelRepository.from_directory(write(files, directory / "models")).check(target)
    return [finding for finding in report.findings if finding.code == code]


@pytest.mark.parametrize(
    ("backend", "guess"),
    [
        ("pythn", "python"),  # a letter is missing
        ("pythonn", "python"),  # a letter too many
        ("pithon", "python"),  # another letter
        ("pyhton", "python"),  # two letters swapped
        ("ython", "python"),  # the first letter is missing
        ("pytho", "python"),  # the last letter is missing
        ("Pythonn", "python"),
        ("onnxruntim", "onnxruntime"),
        ("tensort", "tensorrt"),
    ],
)
def test_backend_one_letter_from_a_common_one(backend: str, guess: str, tmp_path: Path) -> None:
    """A backend that differs by one letter, or by two swapped ones,
    is reported with the common name.
    """
    (finding,) = _findings(f'backend: "{backend}"\n', Target(), tmp_path, "backend-misspelled")
    assert finding.message == f'unable to find backend library for backend "{backend}"'
    assert finding.hint == f'did you mean "{guess}"?'


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("tensorrt_plan", 'backend: "tensorrt"'),
        ("pytorch_libtorch", 'backend: "pytorch"'),
        ("onnxruntime_onnx", 'backend: "onnxruntime"'),
        ("tensorflow_graphdef", 'platform: "tensorflow_graphdef"'),  # the backend alone is an error
        ("torch_aoti", 'platform: "torch_aoti"'),  # the backend alone is pytorch_libtorch
        ("onnx", 'backend: "onnxruntime"'),
        ("onnxrt", 'backend: "onnxruntime"'),
    ],
)
def test_platform_as_backend(name: str, field: str, tmp_path: Path) -> None:
    """A platform and a short name of a backend are reported with the field to write,
    in both fields.
    """
    (finding,) = _findings(f'backend: "{name}"\n', Target(), tmp_path / "a", "backend-misspelled")
    assert finding.message == f'unable to find backend library for backend "{name}"'
    assert finding.hint == f"did you mean {field}?"
    if name.startswith("onnx") and "_" not in name:
        (finding,) = _findings(
            f'platform: "{name}"\n', Target(), tmp_path / "b", "backend-platform"
        )
        assert finding.hint == f"write {field}"


@pytest.mark.parametrize("backend", ["python", "my_python", "pythonic", "pyton2", "dal", "custom"])
def test_backend_that_is_not_a_misspelling(backend: str, tmp_path: Path) -> None:
    """Common backends, short names and names that differ by more are not reported."""
    assert _findings(f'backend: "{backend}"\n', Target(), tmp_path, "backend-misspelled") == []


def test_warmup_batch_of_a_model_that_is_completed(tmp_path: Path) -> None:
    """A backend may set max_batch_size, so that the batch of a warmup sample is not checked."""
    config = 'backend: "%s"\nmodel_warmup [ { name: "w" batch_size: 2 } ]\n'
    assert _findings(config % "custom", Target(), tmp_path, "warmup-batch-size") == []


@pytest.mark.parametrize(("memory_gib", "fits"), [(0.254, True), (0.2539, False)])
def test_shared_memory_counts_tensors_of_a_whole_batch(
    memory_gib: float, fits: bool, tmp_path: Path
) -> None:
    """The regions of two instances grow to a batch of 8 inputs and outputs of 4 MiB, in steps
    of 1 MiB: 130 MiB.
    """
    found = _findings(LARGE, Target(memory_gib=memory_gib), tmp_path, "target-shared-memory")
    assert bool(found) is not fits
    assert all("need at least 130 MiB of /dev/shm" in finding.message for finding in found)


@pytest.mark.parametrize(
    ("group", "gpus", "instances"),
    [
        ("count: 2 kind: KIND_CPU", 4, 2),
        ("count: 2 kind: KIND_GPU", 4, 8),
        ("count: 2 kind: KIND_GPU gpus: [ 0, 1 ]", 4, 4),
        ("count: 2", 4, 8),
        ("count: 2", 0, 2),
    ],
)
def test_shared_memory_counts_instances_on_each_gpu(
    group: str, gpus: int, instances: int, tmp_path: Path
) -> None:
    """A GPU group runs its count on each of its GPUs; every instance takes 16 MiB."""
    config = f'backend: "python"\ninstance_group [ {{ {group} }} ]\n'
    enough = instances * 32 / 1024
    for memory, fits in ((enough, True), (enough * 0.999, False)):
        target = Target(memory_gib=memory, gpu_count=gpus)
        found = _findings(config, target, tmp_path / str(fits), "target-shared-memory")
        assert bool(found) is not fits


@pytest.mark.parametrize(
    ("platform", "megabytes", "fits"),
    [
        ("sagemaker-multi-model", (600, 900), True),
        ("sagemaker-multi-model", (100, 1001), False),
        ("sagemaker", (600, 390), True),
        ("sagemaker", (600, 410), False),
    ],
)
def test_storage_holds_the_largest_model_or_all(
    platform: Any, megabytes: tuple[int, int], fits: bool, tmp_path: Path
) -> None:
    """On a multi-model endpoint each model has to fit for itself,
    otherwise all of them together.
    """
    files = {f"{name}/{file}": text for name in "ab" for file, text in MODEL.items()}
    root = write(files, tmp_path / "models")
    for name, size in zip("ab", megabytes, strict=True):
        with (root / name / "1" / "weights.bin").open("wb") as weights:
            weights.truncate(size * 10**6)
    report = ModelRepository.from_directory(root).check(Target(platform, storage_gb=1))
    assert ("target-storage" not in {finding.code for finding in report.findings}) is fits


@pytest.mark.parametrize(
    ("policy", "loaded"),
    [
        ("", ("10",)),
        ("version_policy: { latest { num_versions: 2 } }", ("10", "9")),
        ("version_policy: { specific { versions: [ 2, 10 ] } }", ("10", "2")),
        ("version_policy: { all {} }", ("10", "9", "2")),
    ],
)
def test_versions_are_loaded_newest_first(
    policy: str, loaded: tuple[str, ...], tmp_path: Path
) -> None:
    """Without a version policy only the version with the largest number is loaded."""
    files = {f"m/{version}/model.py": CLASS for version in (2, 9, 10)}
    root = write({"m/config.pbtxt": f'backend: "python"\n{policy}\n', **files}, tmp_path / "models")
    folders = {"m": ModelFolder("m", root / "m")}
    context = RepositoryContext(folders, {"m": False}, None, Target(), frozenset(folders), ("m",))
    assert context.models["m"].versions_to_load == loaded


def test_number_of_an_unknown_data_type_is_located(tmp_path: Path) -> None:
    """The finding has the line and the column of the field, not those of the tensor."""
    config = (
        'backend: "python"\ninput [ { name: "W" data_type: TYPE_FP32 dims: [ 1 ] },\n'
        '{ name: "X"\n  dims: [ 1 ]\n  data_type: 99 } ]\n'
    )
    (finding,) = _findings(config, Target(), tmp_path, "tensor-data-type-number")
    assert (finding.line, finding.column) == (5, 3)


def test_a_rule_can_be_called_by_its_name() -> None:
    """Registering a function as a rule leaves the function in its module."""
    for rule in RULES.values():
        assert (
            getattr(sys.modules[rule.function.__module__], rule.function.__name__) is rule.function
        )
