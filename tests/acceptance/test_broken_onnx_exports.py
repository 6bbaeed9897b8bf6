"""Files of real exporters with one fault each, small and above 256 KiB,
and ONNX Runtime's verdict.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from backports import tarfile
from onnx_corpus.__main__ import write_broken
from onnx_exports import IMAGES, ORACLE, RECORDED, faults, is_refused, said

BUDGET_MINUTES = 3
LOADS: dict[str, dict[str, list[str]]] = RECORDED["broken_that_load"]
CASES = [(name, fault) for name, broken in LOADS.items() for fault in broken]

STRICT = {
    (
        "dynamo_attention",
        "unknown_attribute",
    ): "ONNX Runtime ignores attributes of LayerNormalization"
}
"""What ONNX Runtime loads and we refuse."""

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
def broken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the broken models."""
    models, folder = tmp_path_factory.mktemp("models"), tmp_path_factory.mktemp("broken")
    with tarfile.open(ORACLE / "cases.tar.xz") as archive:
        archive.extractall(models, filter="data")
    write_broken(models, folder)
    assert {path.name for path in folder.iterdir()} == {"__".join(case) for case in CASES}
    return folder


def _of_both_sizes(kinds: Iterable[tuple[str, str]]) -> set[tuple[str, str]]:
    return {(f"{kind}_{size}", fault) for kind, fault in kinds for size in ("small", "large")}


@pytest.mark.parametrize("image", IMAGES)
def test_faults_are_found_whatever_the_size(broken: Path, image: str) -> None:
    """With the onnx package, only the listed faults are not found,
    and only the listed models are refused.
    """
    found = said(broken, image)
    accepted = {case for case in CASES if not is_refused(found["__".join(case)])}
    refused = {case for case in CASES if faults(found["__".join(case)])}
    loaded = {(name, fault) for name, fault in CASES if image in LOADS[name][fault]}
    assert refused & loaded == _of_both_sizes(STRICT)
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
    assert refused & loaded == _of_both_sizes(STRICT)
    assert len(refused - loaded) >= 0.55 * (len(CASES) - len(loaded))
