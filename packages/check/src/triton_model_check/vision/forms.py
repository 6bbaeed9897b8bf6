"""Recognizes what the outputs of a detector mean, from their shapes, names and metadata.

A shape alone is often no proof: what had to be assumed is part of the result, so that a user reads
it, and every form can be set with ``--form``. The layouts were read in the sources of the
exporters: ``Detect`` and ``RTDETRDecoder`` of ultralytics 8.4.190, ``Detect`` of yolov5 7.0.14 and
``export`` of rfdetr 1.11.2, from PyPI. That of RT-DETR, D-FINE and DEIM (labels, boxes, scores)
and that of transformers (logits, pred_boxes) are as their documentation and users describe them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.spelling import quoted
from triton_model_check.model_files.model_file import ModelTensor
from triton_model_check.vision.onnx_network import Network

__all__ = ["FORM_NAMES", "Form", "FormName", "recognize"]

FormName = Literal[
    "yolov8", "yolov8_rows", "yolov5", "end_to_end", "rtdetr", "rtdetr_topk", "queries", "decoded"
]
FORM_NAMES: tuple[FormName, ...] = get_args(FormName)
SegmentFormName = Literal["yolov8_segment"]

_DESCRIPTIONS: dict[FormName | SegmentFormName, str] = {
    "yolov8_segment": "a column for each place: x, y, width, height, score of each class, weight "
    "of each prototype; and the prototypes of masks (YOLOv8, v9, v11 of the task segment)",
    "yolov8": "a column for each place: x, y, width, height, score of each class "
    "(YOLOv8, v9, v11, v12)",
    "yolov8_rows": "a row for each place: x, y, width, height, score of each class "
    "(YOLOv8 and its successors, transposed)",
    "yolov5": "a row for each place: x, y, width, height, score of any object, score of each class "
    "(YOLOv5, v7)",
    "end_to_end": "a row for each box: two corners, score, class (YOLOv10, nms=True)",
    "rtdetr": "a row for each query: x, y, width, height from 0 to 1, score of each class "
    "(RT-DETR of older versions of Ultralytics)",
    "rtdetr_topk": "a row for each box: x, y, width, height from 0 to 1, score, class "
    "(RT-DETR of newer versions of Ultralytics)",
    "queries": "logits of each class, and a box from 0 to 1, for each query "
    "(RT-DETR of transformers, RF-DETR)",
    "decoded": "classes, boxes and scores in pixels of the picture (RT-DETR, D-FINE, DEIM)",
}
#: The arrays that a form reads. The network's outputs are given these names.
_ARRAYS: dict[FormName, tuple[str, ...]] = {
    "yolov8": ("predictions",),
    "yolov8_rows": ("predictions",),
    "yolov5": ("predictions",),
    "end_to_end": ("predictions",),
    "rtdetr": ("predictions",),
    "rtdetr_topk": ("predictions",),
    "queries": ("logits", "boxes"),
    "decoded": ("classes", "boxes", "scores"),
}
# The other tasks of Ultralytics have further columns or outputs, which these forms do not read.
_OTHER_TASKS = ("pose", "obb", "semantic", "depth")
_STRIDES = (8, 16, 32)
_STRIDES_OF_LARGE_MODELS = (8, 16, 32, 64)
_ANCHORS_OF_YOLOV5 = 3
_BOX = 4
# RT-DETR has 100 to 900 queries, and up to 601 classes in public models.
_MOST_CLASSES_OF_A_QUERY = 3
_COLUMNS_OF_SELECTED_BOXES = 6


@dataclass(frozen=True, slots=True)
class Form:
    """What the outputs of a detector mean.

    Args:
        name: Name of the form.
        outputs: The output of the network for each array that the form reads, by the array's name.
        classes: Number of classes; ``None`` if the file does not say it.
        assumption: What was assumed, as a sentence; empty if the metadata or the sizes say it.
    """

    name: FormName | SegmentFormName
    outputs: Mapping[str, str]
    classes: int | None
    assumption: str = ""

    @property
    def description(self) -> str:
        """What the outputs have."""
        return _DESCRIPTIONS[self.name]

    @property
    def selects(self) -> bool:
        """Whether several boxes may show one object, so that the best must be selected."""
        return self.name in ("yolov8", "yolov8_rows", "yolov5", "yolov8_segment")

    @property
    def keeps_proportions(self) -> bool:
        """Whether such networks are trained with padded pictures. RT-DETR stretches them."""
        return self.selects or self.name == "end_to_end"


def recognize(network: Network, width: int, height: int, name: FormName | None = None) -> Form:
    """Return the form of a detector whose input has ``width`` and ``height`` pixels.

    ``name`` is the user's own answer.

    Raises:
        InvalidValueError: it is another kind of network, or the form is not certain enough.
    """
    _refuse_other_tasks(network)
    if name is not None:
        return _named(network, name)
    if len(network.outputs) == 1:
        return _of_one_output(network, network.outputs[0], _places(width, height))
    return _of_several_outputs(network)


def recognize_segments(network: Network) -> Form:
    """Return the form of a network that finds objects and their masks, as Ultralytics exports it.

    Raises:
        InvalidValueError: it is another kind of network.
    """
    shapes = {output.name: output.shape or () for output in network.outputs}
    predictions = [name for name, shape in shapes.items() if len(shape) == 3]
    prototypes = [name for name, shape in shapes.items() if len(shape) == 4]
    if len(shapes) != 2 or len(predictions) != 1 or len(prototypes) != 1:
        raise InvalidValueError(
            f"{network.path}: --task segment reads two outputs, of three and of four dimensions: "
            f"{_DESCRIPTIONS['yolov8_segment']}; got {_shapes(network)}"
        )
    columns, masks = shapes[predictions[0]][1], shapes[prototypes[0]][1]
    classes = columns - _BOX - masks
    if -1 in (columns, masks) or classes < 1:
        raise InvalidValueError(
            f"{network.path}: --task segment needs a column for each of 4 numbers of the box, the "
            f"classes and the {masks} prototypes, got {_shapes(network)}; export it with "
            "Ultralytics, without nms=True"
        )
    outputs = {"predictions": predictions[0], "prototypes": prototypes[0]}
    return Form("yolov8_segment", outputs, classes)


def _refuse_other_tasks(network: Network) -> None:
    """Raise ``InvalidValueError`` for a network that is no detector."""
    task = network.metadata.get("task", "")
    if task in ("classify", "segment"):
        kind = "a classifier" if task == "classify" else "a model that finds masks"
        raise InvalidValueError(
            f"{network.path}: is {kind}, as its metadata says; write --task {task}"
        )
    if task in _OTHER_TASKS:
        raise InvalidValueError(
            f"{network.path}: is a model for {task!r}, as its metadata says; --task detect reads "
            "models that find upright boxes: export such a model, or write the last step yourself, "
            "with --backend python"
        )


def _places(width: int, height: int) -> tuple[int, int]:
    """Return at how many places a YOLO of three strides looks, and one of four."""
    three = sum((width // stride) * (height // stride) for stride in _STRIDES)
    four = sum((width // stride) * (height // stride) for stride in _STRIDES_OF_LARGE_MODELS)
    return three, four


# --- one output -----------------------------------------------------------------------------------


def _of_one_output(network: Network, output: ModelTensor, places: tuple[int, int]) -> Form:
    """Return the form of a detector with one output, from its shape."""
    shape = output.shape or ()
    if len(shape) != 3:
        raise _unknown(network, "the output of a detector has three dimensions")
    rows, columns = shape[1:]
    outputs = {"predictions": output.name}
    if rows == columns == -1 and network.metadata.get("task") == "detect":
        return _of_ultralytics(network, outputs)
    dense = _of_all_places(network, outputs, (rows, columns), places)
    if dense is not None:
        return dense
    if columns == _COLUMNS_OF_SELECTED_BOXES:
        return _of_selected_boxes(network, outputs)
    # With more columns than that, they are places of a YOLO with other strides.
    if 0 < rows < places[0] and _BOX < columns <= _BOX + _MOST_CLASSES_OF_A_QUERY * rows:
        return _rtdetr(network, outputs, columns - _BOX)
    if columns == -1 and rows > _BOX:
        return _assumed(network, "yolov8", outputs, rows - _BOX)
    raise _unknown(network, "no form is known whose output has this shape")


def _of_all_places(
    network: Network,
    outputs: Mapping[str, str],
    shape: tuple[int, int],
    places: tuple[int, int],
) -> Form | None:
    """Return the form of an output with something for each place, if it has as many."""
    rows, columns = shape
    named = len(network.labels())
    has_named = rows == _BOX + named and (columns == -1 or columns > rows)
    if rows > _BOX and (columns in places or has_named):
        return Form("yolov8", outputs, rows - _BOX)
    if columns <= _BOX + 1:
        return None
    if rows in places:
        raise _unknown(
            network,
            f"a row for each of {rows} places is what YOLOX writes, whose boxes must be decoded "
            "first, or a YOLOv8 that was transposed: --form yolov8_rows",
        )
    if rows in [_ANCHORS_OF_YOLOV5 * count for count in places]:
        return Form("yolov5", outputs, columns - _BOX - 1)
    if rows != -1:
        return None
    if columns == _BOX + 1 + named:
        return Form("yolov5", outputs, named)
    return _assumed(network, "yolov5", outputs, columns - _BOX - 1)


def _of_ultralytics(network: Network, outputs: Mapping[str, str]) -> Form:
    """Its exporter with dynamic=True may leave all sizes open; its metadata has names and head."""
    classes = len(network.labels()) or None
    if network.metadata.get("end2end") == "True":
        return Form("end_to_end", outputs, classes)
    name: FormName = "rtdetr_topk" if _is_rtdetr(network) else "yolov8"
    if network.metadata.get("end2end") == "False" and name == "yolov8":
        return Form(name, outputs, classes)
    return _assumed(network, name, outputs, classes)


def _of_selected_boxes(network: Network, outputs: Mapping[str, str]) -> Form:
    """Six columns are corners or centre and size, score and class, or the scores of two classes."""
    classes = len(network.labels()) or None
    if not _is_rtdetr(network):
        name: FormName = "end_to_end"
        # Only the metadata of Ultralytics says that it is no RT-DETR.
        is_certain = bool(network.metadata.get("description"))
    elif classes == _COLUMNS_OF_SELECTED_BOXES - _BOX:
        name = "rtdetr_topk" if "head" in network.metadata else "rtdetr"
        is_certain = False
    else:
        name = "rtdetr_topk"
        is_certain = classes is not None
    if is_certain:
        return Form(name, outputs, classes)
    return _assumed(network, name, outputs, classes)


def _rtdetr(network: Network, outputs: Mapping[str, str], classes: int) -> Form:
    if _is_rtdetr(network) or len(network.labels()) == classes:
        return Form("rtdetr", outputs, classes)
    return _assumed(network, "rtdetr", outputs, classes)


def _is_rtdetr(network: Network) -> bool:
    """Whether the metadata names it, as "Ultralytics rtdetr-l model trained on ..." does."""
    described = network.metadata.get("description", "") + network.metadata.get("head", "")
    return "rtdetr" in described.lower().replace("-", "")


def _assumed(
    network: Network, name: FormName, outputs: Mapping[str, str], classes: int | None
) -> Form:
    others = [other for other in FORM_NAMES if _ARRAYS[other] == _ARRAYS[name] and other != name]
    assumption = (
        f"{_shapes(network)} is {_DESCRIPTIONS[name]}; if it is not, write --form with one of "
        f"{', '.join(others)}"
    )
    return Form(name, outputs, classes, assumption)


# --- several outputs ------------------------------------------------------------------------------


def _of_several_outputs(network: Network) -> Form:
    """Return the form of a detector with several outputs, from their names."""
    shapes = {output.name: output.shape or () for output in network.outputs}
    if shapes.keys() == {"labels", "boxes", "scores"} and len(network.inputs) == 2:
        outputs = {"classes": "labels", "boxes": "boxes", "scores": "scores"}
        return Form("decoded", outputs, len(network.labels()) or None)
    for logits, boxes in (("logits", "pred_boxes"), ("labels", "dets")):
        if {logits, boxes} <= shapes.keys():
            columns = shapes[logits][-1] if shapes[logits] else -1
            assumption = (
                f'"{logits}" has a logit of each class for the sigmoid; a DETR with a class for '
                "no object, for the softmax, is not read"
            )
            classes = columns if columns > 0 else None
            return Form("queries", {"logits": logits, "boxes": boxes}, classes, assumption)
    raise _unknown(network, "no form is known that has these outputs")


# --- the user's answer ----------------------------------------------------------------------------


def _named(network: Network, name: FormName) -> Form:
    """Return the form that ``--form`` names."""
    arrays = _ARRAYS[name]
    if len(network.outputs) != len(arrays):
        raise InvalidValueError(
            f"{network.path}: --form {name} reads {len(arrays)} outputs, {quoted(arrays)}, got "
            f"{_shapes(network)}; choose another form, or export the network again"
        )
    _refuse_transposed(network, name)
    outputs = {array: _output_for(network, array, arrays) for array in arrays}
    return Form(name, outputs, _named_classes(network, name))


def _refuse_transposed(network: Network, name: FormName) -> None:
    """Raise ``InvalidValueError`` for a YOLOv8 with more classes than places: it is the other way
    around, and each place would be taken for a class.
    """
    shape = network.outputs[0].shape or ()
    other = {"yolov8": "yolov8_rows", "yolov8_rows": "yolov8"}.get(name)
    if other is None or len(shape) != 3 or -1 in shape[1:]:
        return
    columns, places = shape[1:] if name == "yolov8" else shape[:0:-1]
    if columns > places:
        raise InvalidValueError(
            f"{network.path}: --form {name} would have {columns - _BOX} classes at {places} "
            f"places, got {_shapes(network)}; the axes are the other way around: "
            f"write --form {other}"
        )


def _output_for(network: Network, array: str, arrays: tuple[str, ...]) -> str:
    """Return the output with boxes by its four columns, and the others in their order."""
    boxes = [output.name for output in network.outputs if (output.shape or (0,))[-1] == _BOX]
    if array == "boxes" and len(boxes) == 1:
        return boxes[0]
    others = [output.name for output in network.outputs if output.name not in boxes]
    without_boxes = [other for other in arrays if other != "boxes"]
    if array == "boxes" or len(others) != len(without_boxes):
        raise _unknown(network, "exactly one output must have four columns, the boxes")
    return others[without_boxes.index(array)]


def _named_classes(network: Network, name: FormName) -> int | None:
    """Return the number of classes of a network of this form; ``None`` if not known."""
    shape = network.outputs[0].shape or ()
    if len(shape) != 3:
        return None
    first_score = {
        "yolov8": (1, _BOX),
        "yolov8_rows": (2, _BOX),
        "yolov5": (2, _BOX + 1),
        "rtdetr": (2, _BOX),
    }
    if name not in first_score:
        return len(network.labels()) or None
    axis, before = first_score[name]
    return shape[axis] - before if shape[axis] > before else None


# --- words ----------------------------------------------------------------------------------------


def _unknown(network: Network, reason: str) -> InvalidValueError:
    forms = "".join(f"\n    {name}: {_DESCRIPTIONS[name]}" for name in FORM_NAMES)
    return InvalidValueError(
        f"{network.path}: {reason}, got {_shapes(network)}; if its outputs are one of these forms, "
        f"write --form NAME, otherwise write the last step yourself, with --backend python:{forms}"
    )


def _shapes(network: Network) -> str:
    return ", ".join(f'"{output.name}" {list(output.shape or ())}' for output in network.outputs)
