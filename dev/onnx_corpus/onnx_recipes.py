"""Models that onnxscript, ONNX Runtime's quantizer and the helpers of onnx write.

They have what the other exporters write seldom: local functions, sequences, sparse constants, 4-bit
weights, constants in subgraphs, and weights that are all Constant nodes, as older versions of
paddle2onnx write them.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper, version_converter
from onnxruntime import quantization
from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer
from onnxruntime.transformers.float16 import convert_float_to_float16
from onnxscript import FLOAT, script
from onnxscript import opset18 as op
from onnxscript.values import Opset

OPSETS = (7, 9, 11, 13, 16, 19, 21, 22, 23, 24, 25, 26)
own = Opset("my.functions", 1)


def _even(*shape: int, dtype: Any = np.float32) -> Any:
    """Return weights that compress well."""
    return (np.arange(int(np.prod(shape))) % 16 / 64 + 0.01).reshape(shape).astype(dtype)


def _tensor(name: str, values: Any) -> Any:
    return numpy_helper.from_array(np.asarray(values), name)


def _model(nodes: list[Any], width: int, weights: list[Any], opset: int = 17, **more: Any) -> Any:
    """Return a model with the input x and the output y, of the type FLOAT and
    the dims batch, ``width``.
    """
    ends = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", width])]
    outputs = more.pop(
        "outputs", [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", None])]
    )
    graph = helper.make_graph(nodes, "graph", ends, outputs, weights)
    return helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", opset), *more.pop("domains", [])],
        ir_version=8,
        **more,
    )


def _layers(width: int, opset: int = 17) -> Any:
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["product"], "multiply"),
        helper.make_node("Add", ["product", "b"], ["sum"], "add"),
        helper.make_node("Relu", ["sum"], ["positive"], "relu"),
        helper.make_node("MatMul", ["positive", "v"], ["y"], "last"),
    ]
    weights = [
        _tensor("w", _even(width, width)),
        _tensor("b", _even(width)),
        _tensor("v", _even(width, width)),
    ]
    return _model(nodes, width, weights, opset)


def _as_constants(model: Any) -> Any:
    """Turn each initializer into a Constant node."""
    graph = model.graph
    constants = [
        helper.make_node("Constant", [], [each.name], value=each) for each in graph.initializer
    ]
    operators = list(graph.node)
    del graph.initializer[:], graph.node[:]
    graph.node.extend(constants + operators)
    return model


def _in_typed_fields(model: Any) -> Any:
    """Store weights as lists of numbers in place of bytes."""
    for each in model.graph.initializer:
        values = numpy_helper.to_array(each)
        each.CopyFrom(
            helper.make_tensor(each.name, each.data_type, each.dims, values.flatten().tolist())
        )
    return model


def _functions(width: int) -> Any:
    """Two local functions, one of which calls the other; the weights are Constant nodes of one."""
    constant = helper.make_node("Constant", [], ["c"], value=_tensor("c", _even(width, width)))
    inner = helper.make_function(
        "my.functions",
        "Multiply",
        ["a"],
        ["d"],
        [constant, helper.make_node("MatMul", ["a", "c"], ["d"])],
        [helper.make_opsetid("", 17)],
    )
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("my.functions", 1)]
    calls = [
        helper.make_node("Multiply", ["a"], ["b"], domain="my.functions"),
        helper.make_node("Relu", ["b"], ["d"]),
    ]
    outer = helper.make_function("my.functions", "Layer", ["a"], ["d"], calls, imports)
    nodes = [helper.make_node("Layer", ["x"], ["y"], domain="my.functions")]
    domains = [helper.make_opsetid("my.functions", 1)]
    return _model(nodes, width, [], domains=domains, functions=[inner, outer])


def _float8(width: int) -> Any:
    """Weights of 8-bit floats, of operator set 19."""
    weights = helper.make_tensor(
        "w",
        TensorProto.FLOAT8E4M3FN,
        [width, width],
        bytes(each % 16 for each in range(width**2)),
        raw=True,
    )
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "scale"], ["v"]),
        helper.make_node("MatMul", ["x", "v"], ["y"]),
    ]
    return _model(nodes, width, [weights, _tensor("scale", np.float32(0.5))], 19)


@script(own, default_opset=op)
def layer(a, w):  # type: ignore[no-untyped-def]
    """Compute a layer; onnxscript makes a local function of it."""
    return op.Relu(op.MatMul(a, w))


small_weights, large_weights = _tensor("w", _even(8, 8)), _tensor("w", _even(320, 320))


@script(default_opset=op)
def small(x: FLOAT[None, 8]) -> FLOAT[None, 8]:  # type: ignore[valid-type]
    """Compute two layers."""
    w = op.Constant(value=small_weights)
    return layer(layer(x, w), w)


@script(default_opset=op)
def large(x: FLOAT[None, 320]) -> FLOAT[None, 320]:  # type: ignore[valid-type]
    """Compute two layers."""
    w = op.Constant(value=large_weights)
    return layer(layer(x, w), w)


def _sequences(width: int) -> Any:
    """Split into a sequence, process each part and concatenate;
    the mapped function reads a weight.
    """
    part = helper.make_tensor_value_info("part", TensorProto.FLOAT, None)
    result = helper.make_tensor_value_info("result", TensorProto.FLOAT, None)
    body = helper.make_graph(
        [helper.make_node("MatMul", ["part", "w"], ["result"])], "body", [part], [result]
    )
    nodes = [
        helper.make_node("SplitToSequence", ["x", "one"], ["parts"], axis=0),
        helper.make_node("SequenceMap", ["parts"], ["results"], body=body),
        helper.make_node("ConcatFromSequence", ["results"], ["y"], axis=0),
    ]
    return _model(nodes, width, [_tensor("w", _even(width, width)), _tensor("one", np.int64(1))])


def _sparse(width: int) -> Any:
    count = width * 2
    indices = _tensor("", np.arange(count, dtype=np.int64) * (width // 2))
    sparse = helper.make_sparse_tensor(_tensor("s", _even(count)), indices, [width, width])
    nodes = [
        helper.make_node("Constant", [], ["s"], sparse_value=sparse),
        helper.make_node("MatMul", ["x", "s"], ["product"]),
        helper.make_node("MatMul", ["product", "w"], ["y"]),
    ]
    return _model(nodes, width, [_tensor("w", _even(width, width))])


def _branches(width: int) -> Any:
    """Constants in the branches of If, in the body of Loop and in that of Scan."""

    def constant(name: str) -> Any:
        return helper.make_node("Constant", [], [name], value=_tensor(name, _even(width, width)))

    def branch(name: str) -> Any:
        nodes = [constant(f"{name}_w"), helper.make_node("MatMul", ["x", f"{name}_w"], [name])]
        return helper.make_graph(
            nodes, name, [], [helper.make_tensor_value_info(name, TensorProto.FLOAT, None)]
        )

    infos = [("step", TensorProto.INT64, []), ("go", TensorProto.BOOL, [])]
    inputs = [helper.make_tensor_value_info(*each) for each in infos]
    inputs.append(helper.make_tensor_value_info("value", TensorProto.FLOAT, ["batch", width]))
    outputs = [helper.make_tensor_value_info("go_on", TensorProto.BOOL, [])]
    outputs.append(helper.make_tensor_value_info("next", TensorProto.FLOAT, ["batch", width]))
    body_nodes = [
        constant("body_w"),
        helper.make_node("MatMul", ["value", "body_w"], ["next"]),
        helper.make_node("Identity", ["go"], ["go_on"]),
    ]
    body = helper.make_graph(body_nodes, "body", inputs, outputs)
    branches = {"then_branch": branch("left"), "else_branch": branch("right")}
    nodes = [
        helper.make_node("ReduceSum", ["x"], ["total"], keepdims=0),
        helper.make_node("Greater", ["total", "zero"], ["is_positive"]),
        helper.make_node("If", ["is_positive"], ["chosen"], **branches),
        helper.make_node("Loop", ["three", "yes", "chosen"], ["y"], body=body),
    ]
    weights = [
        _tensor("zero", np.float32(0)),
        _tensor("three", np.int64(3)),
        _tensor("yes", np.bool_(True)),
    ]
    return _model(nodes, width, weights)


def _strings(width: int) -> Any:
    """Map integers to strings, and measure the strings' constant beside a weight."""
    keys = _tensor("keys", np.arange(width * 40, dtype=np.int64))
    values = _tensor("values", _even(width * 40))
    lookup = helper.make_node(
        "LabelEncoder",
        ["ids"],
        ["y"],
        domain="ai.onnx.ml",
        keys_tensor=keys,
        values_tensor=values,
        default_tensor=_tensor("default", np.zeros(1, np.float32)),
    )
    nodes = [helper.make_node("Cast", ["x"], ["ids"], to=TensorProto.INT64), lookup]
    return _model(nodes, width, [], 18, domains=[helper.make_opsetid("ai.onnx.ml", 4)])


def _long_shapes(width: int) -> Any:
    """Lists of integers: the parts of a split, and a table from which a shape is taken."""
    parts = width // 2
    names = [f"part{index}" for index in range(parts)]
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["product"]),
        helper.make_node("Split", ["product", "sizes"], names, axis=1),
        helper.make_node("Sum", names, ["sum"]),
        helper.make_node("Gather", ["table", "places"], ["shape"]),
        helper.make_node("Reshape", ["sum", "shape"], ["y"]),
    ]
    table = np.full(width, 2, np.int64)
    table[0] = -1
    weights = [
        _tensor("w", _even(width, width)),
        _tensor("sizes", np.full(parts, 2, np.int64)),
        _tensor("table", table),
        _tensor("places", np.array([0, 1], np.int64)),
    ]
    return _model(nodes, width, weights)


class _Samples(quantization.CalibrationDataReader):  # type: ignore[misc]
    def __init__(self, width: int) -> None:
        self.left = [{"x": _even(2, width)}]

    def get_next(self) -> Any:
        return self.left.pop() if self.left else None


def _quantized(width: int, **settings: Any) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        source, target = f"{folder}/model.onnx", f"{folder}/quantized.onnx"
        onnx.save(_layers(width, 21), source)
        quantization.quantize_static(source, target, _Samples(width), **settings)
        return onnx.load(target)


def _dynamic(width: int) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        source, target = f"{folder}/model.onnx", f"{folder}/quantized.onnx"
        onnx.save(_layers(width), source)
        quantization.quantize_dynamic(source, target)
        return onnx.load(target)


def _four_bits(width: int) -> Any:
    """4-bit weights with QuantizeLinear's counterpart of operator set 21."""
    quantizer = MatMulNBitsQuantizer(
        _layers(width, 21),
        block_size=32,
        is_symmetric=True,
        quant_format=quantization.QuantFormat.QDQ,
    )
    quantizer.process()
    return quantizer.model.model


def _of_operator_set(width: int, opset: int) -> Any:
    model = _as_constants(_layers(width, max(opset, 9)))
    return version_converter.convert_version(model, opset) if opset < 9 else model


def _exports(is_large: bool) -> Iterator[tuple[str, Callable[[], Any]]]:
    width = 320 if is_large else 8
    for opset in OPSETS:
        yield f"constants_opset_{opset}", lambda o=opset: _of_operator_set(width, o)
    yield "typed_fields", lambda: _in_typed_fields(_layers(width))
    yield "typed_constants", lambda: _as_constants(_in_typed_fields(_layers(width)))
    yield "functions", lambda: _functions(width)
    yield "onnxscript", lambda: (large if is_large else small).to_model_proto(ir_version=8)
    yield "float8", lambda: _float8(width * 2)
    yield "sequences", lambda: _sequences(width)
    yield "sparse", lambda: _sparse(width)
    yield "branches", lambda: _branches(width)
    yield "labels", lambda: _strings(width * 4)
    yield "long_shapes", lambda: _long_shapes(width)
    yield "long_shapes_as_constants", lambda: _as_constants(_long_shapes(width))
    yield "quantized", lambda: _quantized(width * 2, per_channel=True)
    operators = quantization.QuantFormat.QOperator
    yield "quantized_operators", lambda: _quantized(width * 2, quant_format=operators)
    for name in ("QInt16", "QInt4", "QUInt4"):
        kind = getattr(quantization.QuantType, name)
        yield f"quantized_{name.lower()}", lambda k=kind: _quantized(width * 3, weight_type=k)
    yield "quantized_dynamically", lambda: _dynamic(width * 2)
    yield "four_bits", lambda: _four_bits(width * 3 + 64)
    yield "float16", lambda: convert_float_to_float16(_layers(width * 2))
    yield "float16_constants", lambda: _as_constants(convert_float_to_float16(_layers(width * 2)))


def main(folder: Path) -> None:
    """Write each model to a folder of its own."""
    for size in ("small", "large"):
        for name, make in _exports(size == "large"):
            try:
                model = make()
            except Exception as error:
                print(f"{name}: {type(error).__name__}: {str(error)[:300]}", file=sys.stderr)
                continue
            to = folder / f"{name}_{size}"
            to.mkdir(parents=True)
            onnx.save(model, to / "model.onnx")
            if name in ("float16", "constants_opset_21"):
                external = folder / f"{name}_external_{size}"
                external.mkdir()
                settings = {
                    "convert_attribute": True,
                    "size_threshold": 64,
                    "location": "weights.bin",
                }
                onnx.save(model, external / "model.onnx", save_as_external_data=True, **settings)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
