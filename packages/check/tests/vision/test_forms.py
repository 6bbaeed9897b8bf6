"""What the outputs of a detector mean is recognized, assumed aloud, or asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from constructs_triton_core.errors import InvalidValueError
from triton_model_check.model_files.model_file import ModelTensor
from triton_model_check.vision.forms import FORM_NAMES, FormName, recognize, recognize_segments
from triton_model_check.vision.onnx_network import Network

# The places of a network of 640 x 640 pixels: strides 8, 16 and 32, and 64 of large models.
PLACES = 8400
PLACES_OF_LARGE_MODELS = 8500
ULTRALYTICS = {"description": "Ultralytics YOLO11n model", "task": "detect"}
RTDETR = {"description": "Ultralytics rtdetr-l model", "task": "detect"}
TWO = {"names": "{0: 'cat', 1: 'dog'}"}
THREE = {"names": "{0: 'cat', 1: 'dog', 2: 'fox'}"}


def network(
    outputs: dict[str, list[int]],
    metadata: dict[str, str] | None = None,
    other_inputs: tuple[str, ...] = (),
) -> Network:
    """A network with outputs of these shapes."""
    picture = ModelTensor("images", "TYPE_FP32", (-1, 3, 640, 640))
    others = tuple(ModelTensor(name, "TYPE_INT64", (-1, 2)) for name in other_inputs)
    written = tuple(ModelTensor(name, "TYPE_FP32", tuple(sizes)) for name, sizes in outputs.items())
    return Network(Path("detector.onnx"), (picture, *others), written, metadata or {}, {})


@pytest.mark.parametrize(
    ("shape", "metadata", "name", "classes"),
    [
        ([-1, 84, PLACES], {}, "yolov8", 80),
        ([1, 5, PLACES_OF_LARGE_MODELS], {}, "yolov8", 1),
        ([-1, 6, -1], {**ULTRALYTICS, **TWO}, "yolov8", 2),
        # A network with other strides: its labels say how many classes it has.
        ([1, 7, 20400], {**ULTRALYTICS, **THREE}, "yolov8", 3),
        ([-1, 3 * PLACES, 85], {}, "yolov5", 80),
        ([-1, 3 * PLACES_OF_LARGE_MODELS, 6], {}, "yolov5", 1),
        ([-1, -1, 8], THREE, "yolov5", 3),
        ([-1, 300, 6], {**ULTRALYTICS, **THREE}, "end_to_end", 3),
        ([-1, 300, 6], {**ULTRALYTICS, **TWO}, "end_to_end", 2),
        ([-1, -1, -1], {**ULTRALYTICS, **TWO, "end2end": "False"}, "yolov8", 2),
        ([-1, -1, -1], {**ULTRALYTICS, **TWO, "end2end": "True"}, "end_to_end", 2),
        ([-1, 300, 84], RTDETR, "rtdetr", 80),
        ([-1, 300, 7], THREE, "rtdetr", 3),
        ([-1, 300, 6], {**RTDETR, **THREE}, "rtdetr_topk", 3),
    ],
)
def test_certain_forms(shape: list[int], metadata: dict[str, str], name: str, classes: int) -> None:
    """Sizes that only one exporter writes, and metadata, need no assumption."""
    form = recognize(network({"output0": shape}, metadata), 640, 640)
    assert (form.name, form.classes, form.assumption) == (name, classes, "")


@pytest.mark.parametrize(
    ("shape", "metadata", "name"),
    [
        ([-1, 300, 6], {}, "end_to_end"),
        ([-1, 300, 6], {**RTDETR, **TWO}, "rtdetr"),
        ([-1, 300, 6], {**RTDETR, **TWO, "head": "RTDETRDecoder"}, "rtdetr_topk"),
        ([-1, 300, 84], {}, "rtdetr"),
        ([-1, 84, -1], {}, "yolov8"),
        ([-1, -1, 85], {}, "yolov5"),
        ([-1, -1, -1], {**ULTRALYTICS, **TWO}, "yolov8"),
        ([-1, -1, -1], {**RTDETR, **TWO}, "rtdetr_topk"),
    ],
)
def test_assumed_forms(shape: list[int], metadata: dict[str, str], name: str) -> None:
    """A shape that several exporters write is assumed to be the usual one, and the option named."""
    form = recognize(network({"output0": shape}, metadata), 640, 640)
    assert form.name == name
    assert "--form" in form.assumption
    assert str(shape) in form.assumption


def test_forms_of_several_outputs() -> None:
    """Outputs are found by their names, in any order."""
    queries = {"dets": [1, 300, 4], "labels": [1, 300, 91]}
    form = recognize(network(queries), 560, 560)
    assert (form.name, form.classes) == ("queries", 91)
    assert form.outputs == {"logits": "labels", "boxes": "dets"}
    decoded = {"scores": [-1, 300], "labels": [-1, 300], "boxes": [-1, 300, 4]}
    form = recognize(network(decoded, other_inputs=("orig_target_sizes",)), 640, 640)
    assert (form.name, form.classes) == ("decoded", None)
    assert form.outputs == {"classes": "labels", "boxes": "boxes", "scores": "scores"}


@pytest.mark.parametrize(
    ("outputs", "metadata", "expected"),
    [
        ({"output": [-1, PLACES, 85]}, {}, "YOLOX"),
        ({"output": [-1, PLACES, 84]}, {}, "--form yolov8_rows"),
        ({"output": [-1, 1000]}, {}, "three dimensions"),
        ({"boxes": [-1, 100, 4], "num": [-1, 1]}, {}, "no form is known that has these outputs"),
        # More classes than queries can have: places of other strides.
        ({"output0": [1, 7, 20400]}, {}, "no form is known whose output has this shape"),
        ({"output0": [-1, 56, PLACES]}, {"task": "pose"}, "for 'pose'"),
        (
            {"output0": [-1, 116, PLACES], "output1": [-1, 32, 160, 160]},
            {"task": "segment"},
            "--task segment",
        ),
        ({"output0": [-1, 1000]}, {"task": "classify"}, "--task classify"),
    ],
)
def test_other_networks_are_refused(
    outputs: dict[str, list[int]], metadata: dict[str, str], expected: str
) -> None:
    """What is no detector of these forms is named, and never read as one."""
    with pytest.raises(InvalidValueError, match=r"detector\.onnx: ") as raised:
        recognize(network(outputs, metadata), 640, 640)
    assert expected in str(raised.value)


@pytest.mark.parametrize("name", FORM_NAMES)
def test_the_answer_of_the_user_counts(name: FormName) -> None:
    """--form is taken where the number of outputs fits, and refused with the outputs where not."""
    shapes = {
        "yolov8": ([1, 9, 50],),
        "queries": ([1, 50, 4], [1, 50, 9]),
        "decoded": ([1, 50], [1, 50, 4], [1, 50]),
    }
    fitting = shapes.get(name, ([1, 50, 9],))
    outputs = {f"o{number}": sizes for number, sizes in enumerate(fitting)}
    form = recognize(network(outputs), 640, 640, name)
    assert sorted(form.outputs.values()) == sorted(outputs)
    if "boxes" in form.outputs:
        assert outputs[form.outputs["boxes"]][-1] == 4
    with pytest.raises(InvalidValueError, match=f"--form {name} reads "):
        recognize(network({**outputs, "more": [1]}), 640, 640, name)


@pytest.mark.parametrize(
    ("name", "shape", "other"),
    [("yolov8", [1, PLACES, 84], "yolov8_rows"), ("yolov8_rows", [1, 84, PLACES], "yolov8")],
)
def test_transposed_output_is_not_read_as_thousands_of_classes(
    name: FormName, shape: list[int], other: FormName
) -> None:
    """The error names the form that reads it, which counts the classes."""
    found = network({"output0": shape})
    with pytest.raises(InvalidValueError, match=f"write --form {other}$"):
        recognize(found, 640, 640, name)
    assert recognize(found, 640, 640, other).classes == 80


def test_segments_have_classes_beside_the_weights_of_the_prototypes() -> None:
    """The dimensions say which output is which, whatever their names and order are."""
    found = network({"p": [-1, 32, 160, 160], "d": [-1, 116, PLACES]}, {"task": "segment"})
    form = recognize_segments(found)
    assert (form.classes, form.assumption, form.keeps_proportions) == (80, "", True)
    assert form.outputs == {"predictions": "d", "prototypes": "p"}


@pytest.mark.parametrize(
    "outputs",
    [
        {"output0": [-1, 84, PLACES]},
        {"output0": [-1, 36, PLACES], "output1": [-1, 32, 160, 160]},
        {"output0": [-1, -1, PLACES], "output1": [-1, 32, 160, 160]},
        {"output0": [-1, 300, 38], "output1": [-1, 32, 160, 160], "more": [1]},
    ],
)
def test_networks_without_masks_are_no_segments(outputs: dict[str, list[int]]) -> None:
    """A detector, or an export with selected boxes, is refused with what is read."""
    with pytest.raises(InvalidValueError, match="--task segment "):
        recognize_segments(network(outputs))


def test_labels_are_those_of_the_metadata() -> None:
    """Names are a list or a dictionary without gaps; anything else is not taken for labels."""
    for names, labels in (
        ("{0: 'a', 1: 'b c'}", ["a", "b c"]),
        ("['a', 'b']", ["a", "b"]),
        ("{0: 'a', 2: 'b'}", []),
        ("{'a': 0}", []),
        ("__import__('os').system('true')", []),
        ("", []),
    ):
        assert network({}, {"names": names}).labels() == labels
