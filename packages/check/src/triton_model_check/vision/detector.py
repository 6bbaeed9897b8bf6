"""A detector: boxes in the pixels of the picture, with score, class, label and perhaps a mask."""

from __future__ import annotations

from constructs_triton_core.errors import InvalidValueError
from triton_model_check.builder.config import ModelConfig
from triton_model_check.builder.tensors import ModelInput, ModelOutput
from triton_model_check.vision.forms import Form, FormName, SegmentFormName
from triton_model_check.vision.picture_models import (
    IMAGENET_MEAN,
    IMAGENET_STD,
    Parts,
    TaskModels,
    about_labels,
    assumptions_of_pictures,
    connected,
    decoder,
    folders,
    python_model,
)

__all__ = ["detector"]

#: COCO's evaluation and TensorRT's EfficientNMS take 100 boxes of a picture.
_MOST_BOXES = 100
#: Thresholds with which Ultralytics predicts; yolov5's own IoU threshold is 0.45.
_SCORE_THRESHOLD = "0.25"
_IOU_THRESHOLDS: dict[FormName | SegmentFormName, str] = {
    "yolov8": "0.7",
    "yolov8_rows": "0.7",
    "yolov5": "0.45",
    "yolov8_segment": "0.7",
}
_MASK_SIZE = 56
_KEEP_ALL = "1"
_GREY = "114"
_SIZE_INPUT = "orig_target_sizes"


def detector(parts: Parts, form: Form) -> TaskModels:
    """Return the models of an ensemble that finds objects in pictures."""
    _compare_labels(parts, form)
    _compare_inputs(parts, form)
    is_normalized = "dets" in form.outputs.values()
    settings = {
        "fit": "letterbox" if form.keeps_proportions else "stretch",
        "padding": _GREY,
        "mean": IMAGENET_MEAN if is_normalized else "0 0 0",
        "std": IMAGENET_STD if is_normalized else "1 1 1",
    }
    decode = decoder(parts, settings, with_size=form.name == "decoded")
    select = _selector(parts, form)
    inputs = {parts.picture.name: "pixels"}
    for other in parts.picture.others:
        inputs[other.name] = "size"
    network_outputs = {output: f"network_{array}" for array, output in form.outputs.items()}
    ensemble = connected(
        parts,
        decode,
        select,
        network_inputs=inputs,
        network_outputs=network_outputs,
        last_inputs={array: f"network_{array}" for array in form.outputs},
    )
    assumptions = assumptions_of_pictures(settings)
    if form.assumption:
        assumptions.append(form.assumption)
    assumptions.append(_thresholds(form, select.name))
    facts = (
        f"the form {form.name}: {form.description}",
        about_labels(parts.labels, form.classes),
    )
    models = folders(parts, decode, select, "select_boxes.py", ensemble)
    return TaskModels(models, facts, tuple(assumptions), decode.name, parts.batch > 0)


def _thresholds(form: Form, select: str) -> str:
    """Say which boxes are left out, and where to change that."""
    text = f"boxes with a score below {_SCORE_THRESHOLD} are left out"
    if form.selects:
        iou = _IOU_THRESHOLDS[form.name]
        text += f", and of two boxes of one class whose IoU is above {iou}, the lower one"
    return f"{text}: score_threshold and iou_threshold in {select}/config.pbtxt"


def _compare_labels(parts: Parts, form: Form) -> None:
    if not parts.labels or form.classes is None or len(parts.labels) == form.classes:
        return
    raise InvalidValueError(
        f"{parts.network.path}: has {form.classes} classes as {form.name}, got {len(parts.labels)} "
        "labels; write --labels with a file of one line for each class, or another --form"
    )


def _compare_inputs(parts: Parts, form: Form) -> None:
    """Raise ``InvalidValueError`` if the network has other inputs than its form."""
    names = [other.name for other in parts.picture.others]
    wanted = [_SIZE_INPUT] if form.name == "decoded" else []
    if len(names) != len(wanted):
        raise InvalidValueError(
            f"{parts.network.path}: the form {form.name} has {len(wanted)} inputs beside the "
            f"picture, got {names}; export it without them, or connect the steps yourself with "
            "--backend ensemble"
        )


def _selector(parts: Parts, form: Form) -> ModelConfig:
    """Return the configuration of the model that selects boxes."""
    inputs = []
    for array, output in form.outputs.items():
        data_type, dims = parts.output_dims(output)
        inputs.append(ModelInput(name=array, data_type=data_type, dims=dims))
    placement = ModelInput(name="placement", data_type="TYPE_FP32", dims=[6])
    outputs = [
        ModelOutput(name="num_detections", data_type="TYPE_INT32", dims=[1]),
        ModelOutput(name="boxes", data_type="TYPE_FP32", dims=[_MOST_BOXES, 4]),
        ModelOutput(name="scores", data_type="TYPE_FP32", dims=[_MOST_BOXES]),
        ModelOutput(name="classes", data_type="TYPE_INT32", dims=[_MOST_BOXES]),
        ModelOutput(name="labels", data_type="TYPE_STRING", dims=[_MOST_BOXES]),
    ]
    if form.name == "yolov8_segment":
        dims = [_MOST_BOXES, _MASK_SIZE, _MASK_SIZE]
        outputs.append(ModelOutput(name="masks", data_type="TYPE_UINT8", dims=dims))
    parameters = {
        "form": form.name,
        "score_threshold": _SCORE_THRESHOLD,
        "iou_threshold": _IOU_THRESHOLDS.get(form.name, _KEEP_ALL),
        "network_size": f"{parts.picture.width} {parts.picture.height}",
    }
    return python_model(parts, "select", [*inputs, placement], outputs, parameters)
