"""What is said of shapes that depend on computed values, compared with ONNX Runtime."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from check_examples.onnx_models import model, node, tensor
from onnx import TensorProto, helper, numpy_helper
from onnx_corpus.random_graphs import random_model

from triton_model_check.model.completion import complete_from_onnx
from triton_model_check.model_files import describe

SEEDS = range(60)
UNKNOWN = helper.make_tensor_value_info("Y", TensorProto.FLOAT, None)


def _sizes(path: Path) -> list[int]:
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return [dim if isinstance(dim, int) else -1 for dim in session.get_outputs()[0].shape]


def test_random_shapes_are_those_of_onnx_runtime_or_not_said(tmp_path: Path) -> None:
    """No model is refused that the runtime loads, and what is certain of a shape is the runtime's.

    The runtime follows values wrongly, too, so it refuses one model in a thousand.
    """
    path = tmp_path / "model.onnx"
    certain = batched = 0
    for seed in SEEDS:
        path.write_bytes(random_model(seed).SerializeToString())
        found = describe(path)
        try:
            theirs = _sizes(path)
        except Exception as error:
            assert "ShapeInferenceError" in str(error)  # noqa: PT017 - most models load
            continue
        assert found.faults == (), seed
        if found.has_inferred_shapes:
            certain += 1
            assert list(found.outputs[0].shape or ()) == theirs, seed
        if found.has_batch_dimension is not None:
            batched += 1
            assert found.has_batch_dimension == (theirs[:1] == [-1]), seed
    assert certain >= len(SEEDS) / 5
    assert batched > certain


@pytest.mark.parametrize("operator", ["Add", "Sub", "Mul"])
def test_column_and_row_of_integers_are_valid(operator: str, tmp_path: Path) -> None:
    """A column and a row of integers are not refused, whose values onnx follows wrongly."""
    nodes = [
        node("Unsqueeze", ["A", "L"], ["C"]),
        node(operator, ["C", "B"], ["G"]),
        helper.make_node("Cast", ["G"], ["F"], to=TensorProto.FLOAT),
        node("MatMul", ["X", "F"], ["Y"]),
    ]
    values = {"A": np.arange(3), "L": np.array([-1]), "B": np.arange(2)}
    constants = [numpy_helper.from_array(value, name) for name, value in values.items()]
    inputs = [tensor("X", dims=("b", 3))]
    path = tmp_path / "model.onnx"
    path.write_bytes(model("", nodes, inputs, [UNKNOWN], initializers=constants, opsets={"": 17}))
    found = describe(path)
    assert found.faults == ()
    assert list(found.outputs[0].shape or ()) == _sizes(path) == [-1, 2]


@pytest.mark.parametrize("declared", [("a", "b"), ("a", 6), None])
def test_folded_shape_is_not_certain(
    declared: tuple[str | int, ...] | None, tmp_path: Path
) -> None:
    """A size that ONNX Runtime computes is not certain, whatever the file declares."""
    nodes = [node("Neg", ["S"], ["T"]), node("Reshape", ["X", "T"], ["Y"])]
    output = UNKNOWN if declared is None else tensor("Y", dims=declared)
    sizes = [numpy_helper.from_array(np.array([1, -6]), "S")]
    path = tmp_path / "model.onnx"
    inputs = [tensor("X", dims=("b", 2, 3))]
    path.write_bytes(model("", nodes, inputs, [output], initializers=sizes, opsets={"": 17}))
    found = describe(path)
    assert _sizes(path) == [-1, 6]
    assert not found.outputs[0].has_certain_shape
    assert (found.outputs[0].shape, found.has_batch_dimension) == (None, None)
    assert found.not_checked == (
        'output shapes not checked: ONNX Runtime computes values that "Y" depend on',
    )


def test_output_of_unknown_shape_is_completed_without_dims(tmp_path: Path) -> None:
    """Dims that only ONNX Runtime knows are left out, so that nothing contradicts them."""
    nodes = [node("Neg", ["S"], ["T"]), node("Reshape", ["X", "T"], ["Y"])]
    sizes = [numpy_helper.from_array(np.array([1, -6]), "S")]
    inputs = [tensor("X", dims=("b", 2, 3))]
    path = tmp_path / "model.onnx"
    path.write_bytes(model("", nodes, inputs, [UNKNOWN], initializers=sizes, opsets={"": 17}))
    (output,) = complete_from_onnx(None, describe(path), "m").output
    assert (output.name, list(output.dims), output.HasField("reshape")) == ("Y", [], False)
