"""ONNX files above 256 KiB, in which the content of large tensors is not read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from check_examples.onnx_models import model, node, tensor
from onnx import AttributeProto, NodeProto, TensorProto, helper, numpy_helper

from triton_model_check.model_files import describe, onnx_shapes
from triton_model_check.model_files.model_file import ModelFile

BALLAST = numpy_helper.from_array(np.zeros(1 << 17, np.float32), "B")
UNKNOWN = helper.make_tensor_value_info("Y", TensorProto.FLOAT, None)


def _described(
    nodes: list[NodeProto], folder: Path, *, is_large: bool = True, **weights: Any
) -> ModelFile:
    tensors = [numpy_helper.from_array(values, name) for name, values in weights.items()]
    opsets = {"": 18, "ai.onnx.ml": 4}
    ballast = [BALLAST] if is_large else []
    path = folder / "model.onnx"
    path.write_bytes(
        model("", nodes, [tensor("X")], [UNKNOWN], initializers=tensors + ballast, opsets=opsets)
    )
    return describe(path)


@pytest.mark.parametrize(("length", "shape"), [(300, (-1, 2)), (9_000, None)])
def test_shape_is_read_from_a_list_of_integers(
    length: int, shape: tuple[int, ...] | None, tmp_path: Path
) -> None:
    """A shape is known from a list of up to 64 KiB; above, the result says that it is not."""
    sizes = np.full(length, 1)
    sizes[:2] = -1, 2
    rank = len(shape or ())
    nodes = [node("Reshape", ["X", "T"], ["Y"])]
    found = _described(nodes, tmp_path, T=sizes)
    certain = found.outputs[0].shape
    assert found.faults == ()
    assert (certain and certain[:rank]) == shape
    assert found.has_inferred_shapes == (shape is not None)
    reason = "operators and output shapes not checked: they depend on weights, which are not read"
    assert found.not_checked == (() if shape else (reason,))


def _lookup(length: int) -> NodeProto:
    keys = numpy_helper.from_array(np.arange(length), "keys")
    values = numpy_helper.from_array(np.zeros(length, np.float32), "values")
    default = numpy_helper.from_array(np.zeros(1, np.float32), "default")
    attributes: dict[str, Any] = {
        "keys_tensor": keys,
        "values_tensor": values,
        "default_tensor": default,
    }
    return helper.make_node("LabelEncoder", ["I"], ["Y"], domain="ai.onnx.ml", **attributes)


def _fields_of_two_types(attribute: AttributeProto) -> None:
    attribute.t.float_data.append(1.0)


def _no_type(attribute: AttributeProto) -> None:
    attribute.t.data_type = 0


@pytest.mark.parametrize("length", [3, 9_000])
@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (None, None),
        (_fields_of_two_types, "should contain one and only one value field"),
        (_no_type, "data_type"),
    ],
)
def test_tensor_of_an_operator_is_checked_without_its_elements(
    length: int, damage: Any, message: str | None, tmp_path: Path
) -> None:
    """A large tensor has the same faults as a small one, except those of its elements."""
    lookup = _lookup(length)
    if damage is not None:
        damage(lookup.attribute[0])
    cast = helper.make_node("Cast", ["X"], ["I"], to=TensorProto.INT64)
    faults = _described([cast, lookup], tmp_path, is_large=length > 3).faults
    assert [(message or "no fault") in fault.message for fault in faults] == [True] * (
        message is not None
    )


def _sparse(length: int, width: int) -> NodeProto:
    values = numpy_helper.from_array(np.ones(length, np.float32), "S")
    indices = numpy_helper.from_array(np.arange(length), "")
    sparse = helper.make_sparse_tensor(values, indices, [4, width])
    return helper.make_node("Constant", [], ["S"], sparse_value=sparse)


@pytest.mark.parametrize("length", [4, 2_000])
@pytest.mark.parametrize(("width", "count"), [(500, 0), (-1, 1)])
def test_sparse_constant_is_checked_without_its_elements(
    length: int, width: int, count: int, tmp_path: Path
) -> None:
    """A sparse constant is valid whatever its size; a dim that is negative is a fault."""
    nodes = [_sparse(length, width), node("MatMul", ["X", "S"], ["Y"])]
    assert len(_described(nodes, tmp_path, is_large=length > 4).faults) == count


def _constant(outputs: list[str], **more: Any) -> NodeProto:
    value = numpy_helper.from_array(np.zeros((4, 400), np.float32), "C")
    return helper.make_node("Constant", [], outputs, value=value, **more)


def _damaged(change: str) -> NodeProto:
    constant = _constant(["C", "D"] if change == "outputs" else ["C"])
    if change == "dims":
        constant.attribute[0].t.dims[0] = 5
    elif change == "second attribute":
        constant.attribute.append(helper.make_attribute("value_int", 1))
    return constant


@pytest.mark.parametrize("has_onnx", [True, False])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("nothing", None),
        ("second attribute", None),
        ("dims", 'the constant "C" has 6400 bytes, but its type and dims need 8000'),
        ("outputs", 'Constant node: "" has 2 outputs, but needs one'),
    ],
)
def test_constant_is_an_initializer(
    change: str,
    message: str | None,
    has_onnx: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """ONNX Runtime reads the first attribute of a Constant as an initializer,
    and checks its size.
    """
    monkeypatch.setattr(onnx_shapes, "_is_onnx_installed", lambda: has_onnx)
    found = _described([_damaged(change), node("MatMul", ["X", "C"], ["Y"])], tmp_path)
    assert [fault.message.partition(": ")[2] for fault in found.faults] == (
        [message] if message else []
    )
