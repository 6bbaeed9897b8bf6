"""Small ONNX models for tests of the local run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOAT, STRING, INT64 = TensorProto.FLOAT, TensorProto.STRING, TensorProto.INT64


def tensor(name: str, shape: Sequence[Any] | None, element: int = FLOAT) -> Any:
    """An input or output; a name in ``shape`` is a variable size."""
    return helper.make_tensor_value_info(name, element, shape)


def node(operator: str, inputs: Sequence[str], output: str, **attributes: Any) -> Any:
    """An operator with one output."""
    return helper.make_node(operator, list(inputs), [output], **attributes)


def constant(name: str, values: Any) -> Any:
    """An initializer."""
    return numpy_helper.from_array(np.asarray(values), name)


def write_onnx(
    path: Path, inputs: Sequence[Any], outputs: Sequence[Any], nodes: Sequence[Any], *constants: Any
) -> Path:
    """Write a model and return its path."""
    graph = helper.make_graph(list(nodes), "sample", list(inputs), list(outputs), list(constants))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, path)
    return path


def linear_model(path: Path, scale: float = 1.0) -> Path:
    """A model that multiplies [b, 4] with a matrix of [4, 3]."""
    weights = constant("W", np.arange(12, dtype=np.float32).reshape(4, 3) * np.float32(scale))
    return write_onnx(
        path, [tensor("X", ["b", 4])], [tensor("Y", ["b", 3])], [node("MatMul", "XW", "Y")], weights
    )
