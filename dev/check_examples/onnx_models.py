"""Small ONNX models for the examples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper

_OPSET, _IR_VERSION = 13, 8
Dims = Sequence[int | str]


class ModelBytes(bytes):
    """The content of a model file; ``description`` is what the documentation shows of it."""

    description: str


def tensor(
    name: str, data_type: int = TensorProto.FLOAT, dims: Dims = ("batch", 4)
) -> ValueInfoProto:
    """Declare a tensor of a graph; a name in place of a size is a variable size."""
    return helper.make_tensor_value_info(name, data_type, list(dims))


def node(
    operator: str, inputs: Sequence[str], outputs: Sequence[str], domain: str = ""
) -> NodeProto:
    """Apply an operator."""
    return helper.make_node(operator, inputs, outputs, domain=domain)


def model(
    description: str,
    nodes: Sequence[NodeProto],
    inputs: Sequence[ValueInfoProto],
    outputs: Sequence[ValueInfoProto],
    *,
    initializers: Sequence[TensorProto] = (),
    opsets: Mapping[str, int] | None = None,
) -> ModelBytes:
    """Return the content of a model file."""
    graph = helper.make_graph(nodes, "g", inputs, outputs, initializers)
    imports = [helper.make_opsetid(*each) for each in (opsets or {"": _OPSET}).items()]
    proto: ModelProto = helper.make_model(graph, opset_imports=imports)
    proto.ir_version = _IR_VERSION
    content = ModelBytes(proto.SerializeToString(deterministic=True))
    content.description = description
    return content


def time_first() -> ModelBytes:
    """Y = Transpose(X). The batch is the second dimension of Y."""
    nodes = [helper.make_node("Transpose", ["X"], ["Y"], perm=[1, 0])]
    inputs = [tensor("X", dims=("batch", "time"))]
    outputs = [tensor("Y", dims=("time", "batch"))]
    return model('Y = Transpose(X), from ("batch", "time")', nodes, inputs, outputs)


def relu(
    dims: Dims = ("batch", 4),
    data_type: int = TensorProto.FLOAT,
    opset: int = _OPSET,
    weights: int = 0,
) -> ModelBytes:
    """Y = Relu(X). ``weights`` is the number of elements of an unused initializer."""
    name = helper.tensor_dtype_to_np_dtype(data_type).name
    shown = ", ".join(str(size) for size in dims)
    sized = f", {weights * 4 >> 20} MiB of weights" if weights else ""
    unused = helper.make_tensor("W", TensorProto.FLOAT, [weights], b"\0" * (4 * weights), raw=True)
    return model(
        f"ONNX, opset {opset}: Y = Relu(X), {name} [{shown}]{sized}",
        [node("Relu", ["X"], ["Y"])],
        [tensor("X", data_type, dims)],
        [tensor("Y", data_type, dims)],
        initializers=[unused] if weights else (),
        opsets={"": opset},
    )


def products(hidden: int) -> ModelBytes:
    """Y = X W V, with two matrices of weights."""
    content = b"\0" * (16 * hidden)
    shapes = {"W": [4, hidden], "V": [hidden, 4]}
    return model(
        f"ONNX, opset {_OPSET}: Y = X W V, float32 [batch, 4], {len(content) >> 19} MiB of weights",
        [node("MatMul", ["X", "W"], ["H"]), node("MatMul", ["H", "V"], ["Y"])],
        [tensor("X")],
        [tensor("Y")],
        initializers=[
            helper.make_tensor(name, TensorProto.FLOAT, shape, content, raw=True)
            for name, shape in shapes.items()
        ],
    )


def with_default(dims: Dims = ("batch", 4)) -> ModelBytes:
    """Y = X + K, where the input K has a default in the model."""
    default = helper.make_tensor("K", TensorProto.FLOAT, [1] * (len(dims) - 1) + [4], [0.0] * 4)
    shown = ", ".join(str(size) for size in dims)
    return model(
        f"ONNX: Y = X + K, X and K are [{shown}], K has a default",
        [node("Add", ["X", "K"], ["Y"])],
        [tensor("X", dims=dims), tensor("K", dims=dims)],
        [tensor("Y", dims=dims)],
        initializers=[default],
    )
