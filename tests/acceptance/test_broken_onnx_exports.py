"""Files of real exporters with one fault each, small and above 256 KiB,
and ONNX Runtime's verdict.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from backports import tarfile
from onnx_corpus.__main__ import write_broken
from onnx_exports import (
    IMAGES,
    ORACLE,
    RECORDED,
    certain_outputs,
    faults,
    is_refused,
    said,
)

BUDGET_MINUTES = 3
LOADS: dict[str, dict[str, list[str]]] = RECORDED["broken_that_load"]
CASES = [(name, fault) for name, broken in LOADS.items() for fault in broken]

MISSED = {
    (
        "dynamo_external",
        "wrong_weight_dims",
    ): "ONNX Runtime 1.19 does not compare the sizes of Gemm",
    ("dynamo_if", "wrong_weight_dims"): "ONNX Runtime 1.19 does not compare the sizes of Gemm",
    ("dynamo_table", "wrong_weight_dims"): "ONNX Runtime 1.19 does not compare the sizes of Gemm",
    (
        "onnxscript",
        "wrong_weight_dims",
    ): "an error in a function of the model may be one that is ignored",
    (
        "onnxscript",
        "wrong_weight_type",
    ): "an error in a function of the model may be one that is ignored",
    (
        "quantized",
        "elements_twice",
    ): "ONNX Runtime 1.19 merges operators to one that it does not implement",
    ("sklearn_neighbors", "wrong_weight_dims"): "an error in a subgraph may be one that is ignored",
    ("torchscript_loop", "wrong_weight_dims"): "an error in a subgraph may be one that is ignored",
    ("torchscript_loop", "wrong_weight_type"): "an error in a subgraph may be one that is ignored",
    (
        "torchscript_table",
        "wrong_weight_dims",
    ): "ONNX Runtime 1.19 does not compare the sizes of Gemm",
}
"""What ONNX Runtime refuses, in one release or both, and we do not,
whatever the size of the file.
"""

UNREAD = {
    ("lightgbm_value_large", "wrong_attribute_type"),
    ("lightgbm_value_large", "wrong_output_type"),
}
"""What we do not refuse because the nodes of the trees are more values than are read."""


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the models as they were exported."""
    folder = tmp_path_factory.mktemp("models")
    with tarfile.open(ORACLE / "cases.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder


@pytest.fixture(scope="module")
def broken(models: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the broken models."""
    folder = tmp_path_factory.mktemp("broken")
    write_broken(models, folder)
    assert {path.name for path in folder.iterdir()} == {"__".join(case) for case in CASES}
    return folder


def _of_both_sizes(kinds: Iterable[tuple[str, str]]) -> set[tuple[str, str]]:
    return {(f"{kind}_{size}", fault) for kind, fault in kinds for size in ("small", "large")}


@pytest.mark.parametrize("image", IMAGES)
def test_faults_are_found_whatever_the_size(broken: Path, image: str) -> None:
    """With the onnx package, only the listed faults are not found,
    and no model is refused that ONNX Runtime loads.
    """
    found = said(broken, image)
    accepted = {case for case in CASES if not is_refused(found["__".join(case)])}
    refused = {case for case in CASES if faults(found["__".join(case)])}
    loaded = {(name, fault) for name, fault in CASES if image in LOADS[name][fault]}
    assert refused & loaded == set()
    assert accepted - loaded <= _of_both_sizes(MISSED) | UNREAD
    assert {
        name.replace("_small", "_large") for name, _ in accepted if name.endswith("_small")
    } == {name for name, _ in accepted - UNREAD if name.endswith("_large")}


@pytest.mark.parametrize("image", IMAGES)
def test_nothing_more_is_refused_without_the_onnx_package(broken: Path, image: str) -> None:
    """Without the onnx package, four of ten faults are found at most,
    and nothing else is refused wrongly.
    """
    found = said(broken, image, "onnx")
    refused = {case for case in CASES if faults(found["__".join(case)])}
    loaded = {(name, fault) for name, fault in CASES if image in LOADS[name][fault]}
    assert refused & loaded == set()
    assert len(refused - loaded) >= 0.55 * (len(CASES) - len(loaded))


@pytest.mark.parametrize("image", IMAGES)
def test_onnx_runtime_itself_decides(broken: Path, image: str) -> None:
    """With the fetched ONNX Runtime of the image, no model has another verdict than with it."""
    found = said(broken, image, asking="fetch")
    refused = {case for case in CASES if is_refused(found["__".join(case)])}
    assert refused == {(name, fault) for name, fault in CASES if image not in LOADS[name][fault]}
    assert not any(each["not_checked"] for each in found.values())


@pytest.mark.parametrize("image", IMAGES)
def test_outputs_are_those_of_the_fetched_onnx_runtime(models: Path, image: str) -> None:
    """Each model has the recorded verdict, and each output the recorded shape."""
    for name, each in said(models, image, asking="fetch").items():
        recorded = RECORDED["cases"][name][image]
        assert bool(faults(each)) == ("error" in recorded), name
        if not is_refused(each):
            theirs = {output: dims for output, _, dims in recorded["outputs"]}
            assert {output: dims for output, _, dims in certain_outputs(each)} == theirs, name
