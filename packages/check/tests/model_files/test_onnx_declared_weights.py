"""The copy of a model without its weights, compared with the model in ONNX Runtime."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from check_examples.onnx_models import model, node, tensor
from onnx import TensorProto, external_data_helper, helper, numpy_helper

from triton_model_check.model_files.onnx_declared_weights import without_weights
from triton_model_check.model_files.protobuf_wire import MessageFile
from triton_model_check.onnx_runtimes.loading_process import load_model

UNKNOWN = [helper.make_tensor_value_info("Y", TensorProto.FLOAT, None)]


def _copy(path: Path) -> tuple[onnx.ModelProto, bool]:
    with path.open("rb") as file:
        content, has_declared = without_weights(MessageFile(file).root(), path.parent)
    return onnx.load_from_string(content), has_declared


def _large(name: str = "W") -> TensorProto:
    return numpy_helper.from_array(np.ones((64, 64), np.float32), name)


def _written(folder: Path, content: bytes) -> Path:
    path = folder / "model.onnx"
    path.write_bytes(content)
    return path


def test_large_weights_become_inputs(tmp_path: Path) -> None:
    """An initializer and a Constant become inputs; a small tensor and a shape are kept."""
    constant = helper.make_node("Constant", [], ["V"], value=_large(""))
    nodes = [
        constant,
        node("MatMul", ["X", "W"], ["A"]),
        node("MatMul", ["A", "V"], ["B"]),
        node("Reshape", ["B", "S"], ["Y"]),
    ]
    sizes = numpy_helper.from_array(np.array([-1, *[1] * 200, 64]), "S")
    inputs = [tensor("X", dims=("b", 64))]
    weights = [_large(), sizes]
    path = _written(tmp_path, model("", nodes, inputs, UNKNOWN, initializers=weights))
    copy, has_declared = _copy(path)
    assert has_declared
    assert {each.name for each in copy.graph.input} == {"X", "W", "V"}
    assert [each.name for each in copy.graph.initializer] == ["S"]
    assert len(copy.SerializeToString()) < 3_000


@pytest.mark.parametrize("ir_version", [3, 8])
def test_weight_that_is_an_input_already_is_declared_once(ir_version: int, tmp_path: Path) -> None:
    """An initializer that is also an input, as before IR version 4, has one declaration."""
    inputs = [tensor("X", dims=("b", 64)), tensor("W", dims=(64, 64))]
    nodes = [node("MatMul", ["X", "W"], ["Y"])]
    given = onnx.load_from_string(model("", nodes, inputs, UNKNOWN, initializers=[_large()]))
    given.ir_version = ir_version
    copy, _ = _copy(_written(tmp_path, given.SerializeToString()))
    assert [each.name for each in copy.graph.input] == ["X", "W"]
    assert not copy.graph.initializer


def test_small_external_data_is_read(tmp_path: Path) -> None:
    """A shape in another file is part of the copy, which then needs no other file."""
    sizes = numpy_helper.from_array(np.array([-1, 2]), "S")
    (tmp_path / "w.bin").write_bytes(b"\0" * 8 + sizes.raw_data)
    external_data_helper.set_external_data(sizes, "w.bin", 8, 16)
    sizes.ClearField("raw_data")
    sizes.data_location = TensorProto.EXTERNAL
    nodes = [node("Reshape", ["X", "S"], ["Y"])]
    path = _written(tmp_path, model("", nodes, [tensor("X")], UNKNOWN, initializers=[sizes]))
    copy, has_declared = _copy(path)
    assert not has_declared
    line = json.dumps({"path": "", "level": 0}).encode() + b"\n"
    answer = json.loads(load_model(line + copy.SerializeToString()))
    assert [dims for _, _, dims in answer["outputs"]] == [[-1, 2]]
