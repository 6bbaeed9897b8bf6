"""Networks that find coloured squares, in each form in which exporters write a detector.

A place is a cell of 8, 16 or 32 pixels of the input. The score of the class red is the mean of the
cell's red minus that of its green, from 0 to 1, and that of green the reverse. So the networks
really look at the picture, and anybody can say what they should find.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper
from PIL import Image, ImageDraw

SIZE = 64
STRIDES = (8, 16, 32)
LABELS = ("red", "green")
#: How many boxes a form returns that selects them in the network.
SELECTED = 20

FORMS = (
    "yolov8",
    "yolov8_rows",
    "yolov5",
    "end_to_end",
    "rtdetr",
    "rtdetr_topk",
    "queries",
    "decoded",
)


class _Graph:
    """Collects operators and constants."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def constant(self, values: object, dtype: str = "float32") -> str:
        name = f"constant{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.array(values, dtype), name))
        return name

    def add(self, operator: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        name = output or f"value{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [name], **attributes))
        return name


def places() -> npt.NDArray[np.float32]:
    """Return centre and size of each cell, in pixels of the input."""
    boxes = []
    for stride in STRIDES:
        for row in range(SIZE // stride):
            for column in range(SIZE // stride):
                boxes.append([(column + 0.5) * stride, (row + 0.5) * stride, stride, stride])
    return np.array(boxes, "float32")


def write_detector(path: Path, form: str) -> None:
    """Write a network whose outputs have a form, with the metadata that its exporter writes."""
    graph = _Graph()
    scores = _scores(graph)
    outputs = _OUTPUTS[form](graph, scores)
    inputs = [helper.make_tensor_value_info("images", TensorProto.FLOAT, ["batch", 3, SIZE, SIZE])]
    if form == "decoded":
        inputs.append(
            helper.make_tensor_value_info("orig_target_sizes", TensorProto.INT64, ["batch", 2])
        )
    declared = [helper.make_tensor_value_info(*output) for output in outputs]
    built = helper.make_graph(graph.nodes, "squares", inputs, declared, graph.constants)
    model = helper.make_model(built, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    helper.set_model_props(model, _metadata(form))
    onnx.checker.check_model(model)
    path.write_bytes(model.SerializeToString())


def _metadata(form: str) -> dict[str, str]:
    if form in ("queries", "decoded"):
        return {}
    names = {"names": str(dict(enumerate(LABELS)))}
    if form == "yolov5":
        return {"stride": "32", **names}
    described = "rtdetr-l" if form.startswith("rtdetr") else "YOLO11n"
    head = {"head": "RTDETRDecoder"} if form == "rtdetr_topk" else {}
    task = "segment" if form == "yolov8_segment" else "detect"
    return {"description": f"Ultralytics {described} model", "task": task, **head, **names}


def _scores(graph: _Graph) -> str:
    """Return the scores of both classes at each place: [batch, 2, places]."""
    red = graph.add("Gather", "images", graph.constant([0], "int64"), axis=1)
    green = graph.add("Gather", "images", graph.constant([1], "int64"), axis=1)
    classes = graph.add(
        "Concat", graph.add("Sub", red, green), graph.add("Sub", green, red), axis=1
    )
    kept = graph.add("Clip", classes, graph.constant(0.0), graph.constant(1.0), output="colours")
    levels = []
    for stride in STRIDES:
        pooled = graph.add(
            "AveragePool", kept, kernel_shape=[stride, stride], strides=[stride, stride]
        )
        levels.append(graph.add("Reshape", pooled, graph.constant([0, 2, -1], "int64")))
    return graph.add("Concat", *levels, axis=2)


def _boxes(graph: _Graph, like: str, scale: float = 1) -> str:
    """Return centre and size of each place for each picture of the batch: [batch, places, 4]."""
    constant = graph.constant(places()[None] * scale)
    first = graph.add("ReduceMax", like, axes=[1, 2], keepdims=1)
    nothing = graph.add("Mul", first, graph.constant(0.0))
    return graph.add("Add", constant, nothing)


def _rows(graph: _Graph, scores: str, scale: float = 1) -> str:
    """Return a row for each place: centre, size and scores."""
    turned = graph.add("Transpose", scores, perm=[0, 2, 1])
    return graph.add("Concat", _boxes(graph, scores, scale), turned, axis=2)


def _best(graph: _Graph, rows: str) -> str:
    """Return the rows with the best scores."""
    scores = graph.add("Slice", rows, *_slice(graph, 4, 6))
    best = graph.add("ReduceMax", scores, axes=[2], keepdims=0)
    graph.nodes.append(
        helper.make_node(
            "TopK", [best, graph.constant([SELECTED], "int64")], ["best", "chosen"], axis=1
        )
    )
    columns = graph.add("Unsqueeze", "chosen", graph.constant([2], "int64"))
    spread = graph.add("Expand", columns, graph.constant([1, 1, 6], "int64"))
    return graph.add("GatherElements", rows, spread, axis=1)


def _slice(graph: _Graph, start: int, end: int) -> Sequence[str]:
    return [graph.constant([value], "int64") for value in (start, end, 2)]


def _score_and_class(graph: _Graph, rows: str) -> tuple[str, str]:
    scores = graph.add("Slice", rows, *_slice(graph, 4, 6))
    best = graph.add("ReduceMax", scores, axes=[2], keepdims=1)
    number = graph.add("ArgMax", scores, axis=2, keepdims=1)
    return best, number


_Declared = list[tuple[str, int, list[int | str]]]
_COUNT = len(places())


def _yolov8(graph: _Graph, scores: str) -> _Declared:
    graph.add("Transpose", _rows(graph, scores), perm=[0, 2, 1], output="output0")
    return [("output0", TensorProto.FLOAT, ["batch", 6, _COUNT])]


def _yolov8_rows(graph: _Graph, scores: str) -> _Declared:
    graph.add("Identity", _rows(graph, scores), output="output0")
    return [("output0", TensorProto.FLOAT, ["batch", _COUNT, 6])]


def _yolov8_segment(graph: _Graph, scores: str) -> _Declared:
    """A prototype is how much red, or green, a pixel has above a half; places weigh them."""
    weights = graph.add("Mul", scores, graph.constant(10.0))
    columns = graph.add("Transpose", _rows(graph, scores), perm=[0, 2, 1])
    graph.add("Concat", columns, weights, axis=1, output="output0")
    pooled = graph.add("AveragePool", "colours", kernel_shape=[4, 4], strides=[4, 4])
    graph.add("Sub", pooled, graph.constant(0.5), output="output1")
    return [
        ("output0", TensorProto.FLOAT, ["batch", 8, _COUNT]),
        ("output1", TensorProto.FLOAT, ["batch", 2, SIZE // 4, SIZE // 4]),
    ]


def _yolov5(graph: _Graph, scores: str) -> _Declared:
    """The second and the third anchor of each place see no object."""
    rows = _rows(graph, scores)
    before = graph.add("Slice", rows, *_slice(graph, 0, 4))
    after = graph.add("Slice", rows, *_slice(graph, 4, 6))
    nothing = graph.add("Mul", graph.add("ReduceMax", rows, axes=[2]), graph.constant(0.0))
    anchors = []
    for objectness in (1.0, 0.0, 0.0):
        seen = graph.add("Add", nothing, graph.constant(objectness))
        anchors.append(graph.add("Concat", before, seen, after, axis=2))
    graph.add("Concat", *anchors, axis=1, output="output0")
    return [("output0", TensorProto.FLOAT, ["batch", 3 * _COUNT, 7])]


def _selected(graph: _Graph, rows: str, *, corners: bool) -> _Declared:
    best = _best(graph, rows)
    score, number = _score_and_class(graph, best)
    boxes = graph.add("Slice", best, *_slice(graph, 0, 4))
    if corners:
        boxes = _corners(graph, boxes)
    as_float = graph.add("Cast", number, to=TensorProto.FLOAT)
    graph.add("Concat", boxes, score, as_float, axis=2, output="output0")
    return [("output0", TensorProto.FLOAT, ["batch", SELECTED, 6])]


def _corners(graph: _Graph, boxes: str) -> str:
    centre = graph.add("Slice", boxes, *_slice(graph, 0, 2))
    size = graph.add("Slice", boxes, *_slice(graph, 2, 4))
    half = graph.add("Mul", size, graph.constant(0.5))
    low = graph.add("Sub", centre, half)
    high = graph.add("Add", centre, half)
    return graph.add("Concat", low, high, axis=2)


def _end_to_end(graph: _Graph, scores: str) -> _Declared:
    return _selected(graph, _rows(graph, scores), corners=True)


def _rtdetr(graph: _Graph, scores: str) -> _Declared:
    rows = _best(graph, _rows(graph, scores, 1 / SIZE))
    graph.add("Identity", rows, output="output0")
    return [("output0", TensorProto.FLOAT, ["batch", SELECTED, 6])]


def _rtdetr_topk(graph: _Graph, scores: str) -> _Declared:
    return _selected(graph, _rows(graph, scores, 1 / SIZE), corners=False)


def _queries(graph: _Graph, scores: str) -> _Declared:
    rows = _best(graph, _rows(graph, scores, 1 / SIZE))
    graph.add("Slice", rows, *_slice(graph, 0, 4), output="pred_boxes")
    chosen = graph.add("Slice", rows, *_slice(graph, 4, 6))
    inner = graph.add("Clip", chosen, graph.constant(1e-6), graph.constant(1 - 1e-6))
    odds = graph.add("Div", inner, graph.add("Sub", graph.constant(1.0), inner))
    graph.add("Log", odds, output="logits")
    return [
        ("logits", TensorProto.FLOAT, ["batch", SELECTED, 2]),
        ("pred_boxes", TensorProto.FLOAT, ["batch", SELECTED, 4]),
    ]


def _decoded(graph: _Graph, scores: str) -> _Declared:
    rows = _best(graph, _rows(graph, scores, 1 / SIZE))
    score, number = _score_and_class(graph, rows)
    boxes = _corners(graph, graph.add("Slice", rows, *_slice(graph, 0, 4)))
    size = graph.add("Cast", "orig_target_sizes", to=TensorProto.FLOAT)
    twice = graph.add(
        "Unsqueeze", graph.add("Concat", size, size, axis=1), graph.constant([1], "int64")
    )
    graph.add("Mul", boxes, twice, output="boxes")
    axis = graph.constant([2], "int64")
    graph.add("Squeeze", number, axis, output="labels")
    graph.add("Squeeze", score, axis, output="scores")
    return [
        ("labels", TensorProto.INT64, ["batch", SELECTED]),
        ("boxes", TensorProto.FLOAT, ["batch", SELECTED, 4]),
        ("scores", TensorProto.FLOAT, ["batch", SELECTED]),
    ]


_OUTPUTS = {
    "yolov8": _yolov8,
    "yolov8_rows": _yolov8_rows,
    "yolov8_segment": _yolov8_segment,
    "yolov5": _yolov5,
    "end_to_end": _end_to_end,
    "rtdetr": _rtdetr,
    "rtdetr_topk": _rtdetr_topk,
    "queries": _queries,
    "decoded": _decoded,
}


def write_classifier(path: Path) -> None:
    """Write a network whose two logits are the means of red and of green."""
    graph = _Graph()
    means = graph.add("ReduceMean", "input", axes=[2, 3], keepdims=0)
    graph.add("Gather", means, graph.constant([0, 1], "int64"), axis=1, output="logits")
    image = helper.make_tensor_value_info("input", TensorProto.FLOAT, ["batch", 3, 32, 32])
    logits = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 2])
    built = helper.make_graph(graph.nodes, "colours", [image], [logits], graph.constants)
    model = helper.make_model(built, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    path.write_bytes(model.SerializeToString())


def picture(
    *squares: tuple[str, tuple[int, int, int, int]], size: tuple[int, int] = (128, 96)
) -> bytes:
    """Return a PNG file with coloured squares on grey."""
    image = Image.new("RGB", size, (114, 114, 114))
    draw = ImageDraw.Draw(image)
    for colour, (left, top, right, bottom) in squares:
        # Not quite full: a cell of which a square fills a quarter is below the threshold of 0.25.
        rgb = {"red": (240, 0, 0), "green": (0, 240, 0)}[colour]
        draw.rectangle((left, top, right - 1, bottom - 1), fill=rgb)
    file = io.BytesIO()
    image.save(file, "PNG")
    return file.getvalue()


def without_environment(models: Path) -> None:
    """Delete the description of the environment with pillow, which this machine's Python has."""
    for name in ("triton-models.toml", "requirements.txt"):
        (models / name).unlink()
