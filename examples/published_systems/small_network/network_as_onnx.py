"""Writes the small network as an ONNX file with the tensors of ResNet-50 or Inception v3.

``python network_as_onnx.py resnet FILE.onnx`` or ``python network_as_onnx.py inception FILE.onnx``;
needs onnx. The file runs in the place of a TensorRT plan or a TensorFlow GraphDef: ``local up
--stand-in``.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import onnx
from network import COLOURS, COLUMNS, GRID, ROWS, load_weights
from onnx import TensorProto, helper, numpy_helper

HERE = Path(__file__).resolve().parent
CLASSES = len(COLOURS) * ROWS * COLUMNS
# Inception's network was trained on pixels from -1 to 1. These convert ImageNet's mean and
# deviation to them.
_MEAN, _DEVIATION = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
FROM_IMAGENET = (2 * _DEVIATION, 2 * _MEAN - 1)


class Graph:
    """Collects the nodes and constants of a graph."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def op(self, kind: str, *inputs: str, **attributes: object) -> str:
        """Add a node; return the name of its output."""
        output = f"{kind}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [output], **attributes))
        return output

    def constant(self, value: np.ndarray) -> str:
        """Add a constant; return its name."""
        name = f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(value, name))
        return name

    def numbers(self, *values: int) -> str:
        """Add a list of integers, such as axes or a shape."""
        return self.constant(np.array(values, np.int64))


def log_probabilities(graph: Graph, weights: dict[str, np.ndarray], pixels: str, side: int) -> str:
    """Add what ``network.log_probabilities`` computes; return the name of the scores [n, 1001]."""
    features = _features(graph, weights, pixels, side)
    colour, row, column = (_head(graph, weights, name, features[name]) for name in features)
    background = graph.op("Slice", colour, graph.numbers(0), graph.numbers(1), graph.numbers(1))
    colours = graph.op(
        "Slice", colour, graph.numbers(1), graph.numbers(1 + len(COLOURS)), graph.numbers(1)
    )
    parts = [
        graph.op("Unsqueeze", part, graph.numbers(*axes))
        for part, axes in ((colours, (2, 3)), (row, (1, 3)), (column, (1, 2)))
    ]
    classes = graph.op("Add", graph.op("Add", parts[0], parts[1]), parts[2])
    return graph.op("Concat", background, graph.op("Flatten", classes, axis=1), axis=1)


def _features(
    graph: Graph, weights: dict[str, np.ndarray], pixels: str, side: int
) -> dict[str, str]:
    block = -(-side // GRID)
    maps = graph.op("AveragePool", pixels, kernel_shape=[block, block], strides=[block, block])
    maps = _convolved(graph, weights["stem"], maps)
    inner = _convolved(graph, weights["residual_1"], maps)
    residual = graph.op("Conv", inner, graph.constant(weights["residual_2"]), pads=[1, 1, 1, 1])
    maps = graph.op("Relu", graph.op("Add", maps, residual))
    means = {
        name: graph.op("ReduceMean", maps, axes=axes, keepdims=0)
        for name, axes in (("colour", [2, 3]), ("row", [3]), ("column", [2]))
    }
    return {name: graph.op("Flatten", mean, axis=1) for name, mean in means.items()}


def _convolved(graph: Graph, filters: np.ndarray, maps: str) -> str:
    return graph.op("Relu", graph.op("Conv", maps, graph.constant(filters), pads=[1, 1, 1, 1]))


def _head(graph: Graph, weights: dict[str, np.ndarray], name: str, features: str) -> str:
    weight, bias = (graph.constant(weights[f"{name}_{part}"]) for part in ("weight", "bias"))
    return graph.op("LogSoftmax", graph.op("Gemm", features, weight, bias), axis=1)


def resnet() -> onnx.ModelProto:
    """Return the network with ResNet-50's tensors: input [n, 3, 224, 224] to output [n, 1000]."""
    graph, weights = Graph(), load_weights(HERE / "resnet.npz")
    scores = log_probabilities(graph, weights, "input", 224)
    first, end, axis = graph.numbers(1), graph.numbers(1 + CLASSES), graph.numbers(1)
    classes = graph.op("Slice", scores, first, end, axis)
    return _model(graph, classes, _tensor("input", 3, 224, 224), _tensor("output", CLASSES))


def inception(*, imagenet: bool = False) -> onnx.ModelProto:
    """Return the network with the tensors of Inception v3's GraphDef: [n, 299, 299, 3] to [n,
    1001].

    ``imagenet`` is for pixels with mean 0 and deviation 1 over ImageNet, in place of pixels from -1
    to 1.
    """
    graph, pixels = Graph(), "input"
    if imagenet:
        scale, shift = (graph.constant(values.astype(np.float32)) for values in FROM_IMAGENET)
        pixels = graph.op("Add", graph.op("Mul", pixels, scale), shift)
    pixels = graph.op("Transpose", pixels, perm=[0, 3, 1, 2])
    scores = log_probabilities(graph, load_weights(HERE / "inception.npz"), pixels, 299)
    wanted = _tensor("InceptionV3/Predictions/Softmax", 1 + CLASSES)
    return _model(graph, graph.op("Exp", scores), _tensor("input", 299, 299, 3), wanted)


def _tensor(name: str, *dims: int) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", *dims])


def _model(
    graph: Graph, found: str, given: onnx.ValueInfoProto, wanted: onnx.ValueInfoProto
) -> onnx.ModelProto:
    graph.nodes.append(helper.make_node("Identity", [found], [wanted.name]))
    proto = helper.make_graph(graph.nodes, "small_network", [given], [wanted], graph.constants)
    model = helper.make_model(proto, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.checker.check_model(model)
    return model


def main() -> None:
    """Read the command line and write the file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("network", choices=("resnet", "inception", "inception-imagenet"))
    parser.add_argument("target", type=Path)
    arguments = parser.parse_args()
    name = arguments.network
    model = resnet() if name == "resnet" else inception(imagenet=name.endswith("imagenet"))
    arguments.target.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, str(arguments.target))


if __name__ == "__main__":
    main()
