"""Our verdict and ONNX Runtime's on files of real exporters, small and above 256 KiB."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from onnx_exports import IMAGES, ORACLE, RECORDED, certain_outputs, faults, said

from triton_model_check.model_config.target import Target
from triton_model_check.model_repository import ModelRepository

__all__ = ["ORACLE"]

pytestmark = pytest.mark.xdist_group("onnx_exports")  # all tests use the findings of two processes

CASES: dict[str, dict[str, Any]] = RECORDED["cases"]
LARGE_BYTES = 256 << 10

MISSED = {
    "quantized": "ONNX Runtime 1.19 merges operators to one that it does not implement",
    "quantized_operators": "the types behind operators of com.microsoft are not inferred",
}
"""What ONNX Runtime 1.19 rejects and we do not; 1.28 loads it."""

UNREAD = {
    **dict.fromkeys(
        (
            *("dynamo_attention_large", "dynamo_if_large", "long_shapes_as_constants_large"),
            *("long_shapes_large", "sklearn_gaussian_large", "tensorflow_loop_large"),
        ),
        "the shapes depend on values that ONNX Runtime computes",
    ),
    "lightgbm_classes_large": "the nodes of its trees are more values than are read",
    "xgboost_value_large": "the nodes of its trees are more values than are read",
}
"""Models whose shapes are not certain, so that a wrong size in the configuration is not found."""

_TYPES = {
    "tensor(float)": "TYPE_FP32",
    "tensor(float16)": "TYPE_FP16",
    "tensor(double)": "TYPE_FP64",
    "tensor(int32)": "TYPE_INT32",
    "tensor(int64)": "TYPE_INT64",
    "tensor(string)": "TYPE_STRING",
}


def _loads(image: str, name: str) -> bool:
    return "error" not in CASES[name][image]


def missed(image: str) -> set[str]:
    """Return the models that this image rejects, and we do not."""
    if image != "24.10":
        return set()
    return {f"{kind}_{size}" for kind in MISSED for size in ("small", "large")}


def wrongly_refused(found: dict[str, Any], image: str) -> dict[str, list[str]]:
    """Return the models that ONNX Runtime loads and we refuse, with our messages."""
    refused = {}
    for name, ours in found.items():
        messages = faults(ours)
        if messages and _loads(image, name):
            refused[name] = messages
    return refused


def wrongly_accepted(found: dict[str, Any], image: str) -> set[str]:
    """Return the models that ONNX Runtime refuses and we accept."""
    accepted = {name for name, ours in found.items() if not faults(ours)}
    return {name for name in accepted if not _loads(image, name)}


@pytest.mark.parametrize("hidden", [(), ("onnx",)], ids=["with onnx", "without onnx"])
@pytest.mark.parametrize("image", IMAGES)
def test_verdict_equals_that_of_onnx_runtime(
    cases: Path, image: str, hidden: tuple[str, ...]
) -> None:
    """No model is refused that ONNX Runtime loads,
    and only the listed ones are accepted that it refuses.
    """
    found = said(cases, image, *hidden)
    assert found.keys() == CASES.keys()
    assert wrongly_refused(found, image) == {}
    assert wrongly_accepted(found, image) == missed(image)


@pytest.mark.parametrize("image", IMAGES)
def test_shapes_are_those_of_onnx_runtime(cases: Path, image: str) -> None:
    """Where a shape is certain it is that of ONNX Runtime,
    which is so for all outputs of four models of five.
    """
    differences = {}
    loaded = 0
    wholly_certain = 0
    for name, found in said(cases, image).items():
        if not _loads(image, name):
            continue
        loaded += 1
        wholly_certain += all(found["certain"])
        theirs = {output: shape for output, _, shape in CASES[name][image]["outputs"]}
        ours = {output: shape or [] for output, _, shape in certain_outputs(found)}
        if not ours.items() <= theirs.items():
            differences[name] = (ours, theirs)

    assert differences == {}
    assert wholly_certain >= 0.8 * loaded


@pytest.mark.parametrize("image", IMAGES)
def test_batch_dimension_is_that_of_onnx_runtime(cases: Path, image: str) -> None:
    """Where it is known whether a model has a batch dimension, ONNX Runtime says the same."""
    found = said(cases, image)
    for name, each in found.items():
        if _loads(image, name) and each["batched"] is not None:
            tensors = (*CASES[name][image]["inputs"], *CASES[name][image]["outputs"])
            assert each["batched"] == all(dims[:1] == [-1] for _, _, dims in tensors), name


def test_each_kind_has_a_file_of_real_size(cases: Path) -> None:
    """Each model is there twice, and once above the size from which on weights are not read."""
    kinds = Counter(name.rpartition("_")[0] for name in CASES)
    assert set(kinds.values()) == {2}

    too_small = {}
    for name in CASES:
        size = max(path.stat().st_size for path in (cases / name).iterdir())
        if name.endswith("_large") and size <= LARGE_BYTES:
            too_small[name] = size
    assert too_small == {}


def _config(signature: dict[str, Any], wrong_by: int) -> str:
    """Return a configuration with ONNX Runtime's signature;
    the last dim of the first output may be wrong.
    """
    sides = []
    for side in ("inputs", "outputs"):
        for name, type_name, dims in signature[side]:
            shown = [*dims[:-1], dims[-1] + (wrong_by if side == "outputs" else 0)]
            sides.append(
                f'{side[:-1]} [{{ name: "{name}" data_type: {_TYPES[type_name]} dims: {shown} }}]'
            )
    return "\n".join(['backend: "onnxruntime"', "max_batch_size: 0", *sides])


def _with_known_size(name: str) -> bool:
    """Return whether all inputs and outputs are tensors that Triton knows,
    and all outputs end in a size.
    """
    signature = CASES[name]["24.10"]
    inputs = signature.get("inputs", ())
    outputs = signature.get("outputs", ())
    if not inputs and not outputs:
        return False
    for _, type_name, dims in (*inputs, *outputs):
        if type_name not in _TYPES or not dims:
            return False
    return all(dims[-1] > 0 for _, _, dims in outputs)


@pytest.mark.parametrize(
    "name", [each for each in CASES if each.endswith("_large") and _with_known_size(each)]
)
def test_configuration_is_compared_with_the_inferred_shape(
    cases: Path, name: str, tmp_path: Path
) -> None:
    """The shapes of ONNX Runtime are accepted in the configuration,
    and another output size is not.
    """
    folder = tmp_path / "models" / "m"
    folder.mkdir(parents=True)
    (folder / "1").symlink_to(cases / name)
    target = Target(gpu_count=0, image_version="24.10")
    for wrong_by in (0, 1):
        (folder / "config.pbtxt").write_text(_config(CASES[name]["24.10"], wrong_by))
        report = ModelRepository.from_directory(folder.parent).check(target, is_packed=False)
        is_found = bool(wrong_by and name not in UNREAD)
        assert (report.verdict == "rejected") is is_found, report
