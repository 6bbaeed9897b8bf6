"""Rules whose result depends on a distance or a sum, checked on both sides of the threshold."""

from __future__ import annotations

from pathlib import Path

import pytest
from check_twins import write
from check_twins.repositories import CLASS

from constructs_triton.findings import Finding
from constructs_triton.model_config.target import Target
from constructs_triton.model_repository import ModelRepository

TENSOR = '{ name: "%s" data_type: TYPE_FP32 dims: [ 1048576 ] }'
LARGE = (
    f'backend: "python"\nmax_batch_size: 8\ninput [ {TENSOR % "X"} ]\noutput [ {TENSOR % "Y"} ]\n'
    "instance_group [ { kind: KIND_CPU count: 2 } ]\n"
)


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
    """A backend that differs by one letter, or by two swapped ones, is reported with the common name."""
    (finding,) = _findings(f'backend: "{backend}"\n', Target(), tmp_path, "backend-misspelled")
    assert finding.message == f'unable to find backend library for backend "{backend}"'
    assert finding.hint == f'did you mean "{guess}"?'


@pytest.mark.parametrize("backend", ["python", "my_python", "pythonic", "pyton2", "dal", "custom"])
def test_backend_that_is_not_a_misspelling(backend: str, tmp_path: Path) -> None:
    """Common backends, short names and names that differ by more are not reported."""
    assert _findings(f'backend: "{backend}"\n', Target(), tmp_path, "backend-misspelled") == []


@pytest.mark.parametrize(("memory_gib", "fits"), [(0.375, True), (0.374, False)])
def test_shared_memory_counts_tensors_of_a_whole_batch(memory_gib: float, fits: bool, tmp_path: Path) -> None:
    """Two instances need 16 MiB each, and 1.25 times a batch of 8 inputs and outputs of 4 MiB: 192 MiB."""
    found = _findings(LARGE, Target(memory_gib=memory_gib), tmp_path, "target-shared-memory")
    assert bool(found) is not fits
    assert all("need 0.2 GiB of shared memory" in finding.message for finding in found)


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
