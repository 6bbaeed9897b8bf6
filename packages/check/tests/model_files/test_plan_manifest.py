"""The manifest of a plan: what is trusted, and what is reported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from check_examples import EXAMPLES, write

from triton_model_check.model_config.target import Target
from triton_model_check.model_files import describe
from triton_model_check.model_repository import ModelRepository

TENSOR = {
    "name": "X",
    "data_type": "TYPE_FP32",
    "shape": [-1, 4],
    "min": [1, 4],
    "opt": [4, 4],
    "max": [8, 4],
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository with one plan, and ``max_batch_size`` above that of its profile."""
    return write(EXAMPLES["plan-max-batch-size"].failing, tmp_path / "models")


def edit(root: Path, **values: Any) -> None:
    path = root / "m" / "plan.json"
    content = {**json.loads(path.read_text()), **values}
    path.write_text(json.dumps({key: value for key, value in content.items() if value != "gone"}))


def codes(root: Path, target: Target | None = None) -> list[str]:
    return [each.code for each in ModelRepository.from_directory(root).check(target).findings]


def test_tensors_are_those_of_the_file(root: Path) -> None:
    """The description of a plan has the tensors and profiles of its manifest."""
    described = describe(root / "m" / "1" / "model.plan")
    assert described.inputs[0].profile == ((1, 2), (4, 4), (8, 16))
    assert [each.name for each in described.outputs] == ["Y"]
    assert "tensors not checked" not in described.not_checked
    assert codes(root) == ["plan-max-batch-size"]


def test_manifest_of_an_earlier_version_has_no_tensors(root: Path) -> None:
    """Without tensors the configuration is not compared, and the GPU still is."""
    edit(root, inputs="gone", outputs="gone")
    assert codes(root) == []
    other = Target(default_model="m", gpu_count=1, gpu_model="L4", compute_capability="8.9")
    assert codes(root, other) == ["plan-gpu"]


def test_manifest_of_another_plan_is_not_trusted(root: Path) -> None:
    """A plan of the same size with other bytes has neither tensors nor a GPU."""
    plan = root / "m" / "1" / "model.plan"
    plan.write_bytes(plan.read_bytes()[:-1] + b"\x07")
    other = Target(default_model="m", gpu_count=1, gpu_model="L4", compute_capability="8.9")
    assert describe(plan).inputs == ()
    assert codes(root, other) == []


@pytest.mark.parametrize(
    "wrong",
    [
        "X",
        [None],
        [[]],
        ["X"],
        [{}],
        [{**TENSOR, "name": 1}],
        [{**TENSOR, "data_type": "FP32"}],
        [{**TENSOR, "data_type": []}],
        [{"name": "X", "data_type": "TYPE_FP32"}],
        [{**TENSOR, "shape": 4}],
        [{**TENSOR, "shape": [2**40, 4]}],
        [{**TENSOR, "shape": [-1, True]}],
        [{**TENSOR, "shape": [-1]}],
        [{**TENSOR, "min": None}],
        [{**TENSOR, "max": [8]}],
        [{**TENSOR, "max": [-1, 4]}],
    ],
)
def test_broken_tensors_are_a_finding(wrong: Any, root: Path) -> None:
    """A manifest that was edited by hand is reported with the field,
    and its tensors are not used.
    """
    edit(root, inputs=wrong)
    (finding,) = ModelRepository.from_directory(root).check().findings
    assert (finding.code, finding.path) == ("plan-gpu", "m/plan.json")
    assert '"inputs" is missing or has another form' in finding.message


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("max_batch_size: 64", "max_batch_size: 0", []),
        ("max_batch_size: 64", "max_batch_size: 1", []),
        ('input [ { name: "X" data_type: TYPE_FP32 dims: [ 4 ] } ]\n', "", ["plan-max-batch-size"]),
        ("dims: [ 4 ]", "dims: [ -1, 1, 1 ]", ["plan-dims", "plan-max-batch-size"]),
        ("dims: [ 4 ]", "dims: [ 2, 2 ] reshape { shape: [ 4 ] }", ["plan-max-batch-size"]),
    ],
)
def test_other_configurations(old: str, new: str, expected: list[str], root: Path) -> None:
    """max_batch_size 0 is completed, a side without tensors is left to the backend,
    and reshape counts.
    """
    config = root / "m" / "config.pbtxt"
    config.write_text(config.read_text().replace(old, new, 1))
    assert sorted(codes(root)) == expected
