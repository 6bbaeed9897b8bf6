"""Ensembles around networks that take a picture are complete, or the reason names the fix."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from onnx import TensorProto, checker, helper

from constructs_triton_core.errors import InvalidValueError
from triton_model_check.model_config.text import parse_model_config
from triton_model_check.model_repository import ModelRepository
from triton_model_check.model_repository.new_model import write_together
from triton_model_check.vision.picture_models import TaskModels
from triton_model_check.vision.task_models import Task, task_models

Sizes = Sequence[int | str]


def write_network(
    folder: Path,
    picture: Sizes = ("batch", 3, 640, 640),
    output: Sizes = ("batch", 84, 8400),
    *,
    data_type: int = TensorProto.FLOAT,
    metadata: dict[str, str] | None = None,
    operator: str = "Identity",
    ends_with_identity: bool = False,
) -> Path:
    """Write an ONNX file whose output is zeros; named sizes of it come from the picture's."""
    nodes = [helper.make_node("Shape", ["images"], ["shape"])]
    constants = []
    for axis, size in enumerate(output):
        number = size if isinstance(size, int) else min(2 * axis, 2)
        constants.append(helper.make_tensor(f"number{axis}", TensorProto.INT64, [1], [number]))
        if isinstance(size, int):
            nodes.append(helper.make_node("Identity", [f"number{axis}"], [f"size{axis}"]))
        else:
            nodes.append(helper.make_node("Gather", ["shape", f"number{axis}"], [f"size{axis}"]))
    zeros = helper.make_tensor("zero", data_type, [1], [0.0])
    sizes = [f"size{axis}" for axis in range(len(output))]
    nodes += [
        helper.make_node("Concat", sizes, ["sizes"], axis=0),
        helper.make_node("ConstantOfShape", ["sizes"], ["zeros"], value=zeros),
        helper.make_node(operator, ["zeros"], ["last" if ends_with_identity else "output0"]),
    ]
    if ends_with_identity:
        nodes.append(helper.make_node("Identity", ["last"], ["output0"]))
    inputs = [helper.make_tensor_value_info("images", data_type, picture)]
    outputs = [helper.make_tensor_value_info("output0", data_type, output)]
    graph = helper.make_graph(nodes, "network", inputs, outputs, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    helper.set_model_props(model, metadata or {})
    checker.check_model(model)
    path = folder / "detector.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def plan(path: Path, task: Task = "detect", **options: object) -> TaskModels:
    """Plan the folders of the ensemble ``eye``."""
    return task_models(task, path, "eye", **options)  # type: ignore[arg-type]


def configs(planned: TaskModels) -> dict[str, Any]:
    """Return the message of each config.pbtxt by the name of its model."""
    return {model.name: parse_model_config(model.config_text) for model in planned.models}


def test_the_repository_is_complete(tmp_path: Path) -> None:
    """The folders pass all checks of a repository, and only pillow is missing in the image."""
    planned = plan(write_network(tmp_path))
    folders = write_together(planned.models, tmp_path / "models")
    assert [folder.name for folder in folders] == [
        "eye_decode",
        "eye_network",
        "eye_select",
        "eye",
    ]
    report = ModelRepository.from_directory(tmp_path / "models").check()
    assert not report.errors, report.errors
    assert {finding.code for finding in report.warnings} <= {"python-import-missing"}


def test_a_network_of_one_picture_has_a_batch_of_one(tmp_path: Path) -> None:
    """If the network's batch is fixed, no model batches, and the tensors keep the dimension."""
    planned = plan(write_network(tmp_path, (1, 3, 320, 256), (1, 84, 1680)))
    messages = configs(planned)
    assert [message.max_batch_size for message in messages.values()] == [0, 0, 0, 0]
    assert list(messages["eye_decode"].output[0].dims) == [1, 3, 320, 256]
    assert "network_size" in messages["eye_select"].parameters
    assert messages["eye_select"].parameters["network_size"].string_value == "256 320"


@pytest.mark.parametrize(
    ("picture", "layout", "dims"),
    [
        (("batch", 3, 64, 96), "NCHW", [3, 64, 96]),
        (("batch", 64, 96, 3), "NHWC", [64, 96, 3]),
    ],
)
def test_layouts(tmp_path: Path, picture: Sizes, layout: str, dims: list[int]) -> None:
    """The axis of size three decides where the channels are."""
    path = write_network(tmp_path, picture, ("batch", 10))
    decode = configs(plan(path, "classify"))["eye_decode"]
    assert decode.parameters["layout"].string_value == layout
    assert list(decode.output[0].dims) == dims


def test_a_variable_size_is_that_of_the_training(tmp_path: Path) -> None:
    """The size comes from the metadata; without it the error has the option to write."""
    picture = ("batch", 3, "height", "width")
    output = ("batch", 6, "anchors")
    names = {"names": "{0: 'cat', 1: 'dog'}"}
    path = write_network(tmp_path, picture, output, metadata={"imgsz": "[320, 480]", **names})
    decode = configs(plan(path))["eye_decode"]
    assert list(decode.output[0].dims)[-3:] == [3, 320, 480]
    with pytest.raises(InvalidValueError, match="--input images:FP32:3,640,640"):
        plan(write_network(tmp_path, picture, output, metadata=names))


def test_a_softmax_is_not_taken_twice(tmp_path: Path) -> None:
    """Whether a classifier writes probabilities is what its last operator says."""
    for operator, ends_with_identity, activation in (
        ("Softmax", False, "none"),
        ("Softmax", True, "none"),
        ("Identity", False, "softmax"),
    ):
        path = write_network(
            tmp_path,
            ("batch", 3, 8, 8),
            ("batch", 10),
            operator=operator,
            ends_with_identity=ends_with_identity,
        )
        top = configs(plan(path, "classify"))["eye_top"]
        assert top.parameters["activation"].string_value == activation


@pytest.mark.parametrize(
    ("picture", "output", "expected"),
    [
        ((4, 3, 640, 640), (4, 84, 8400), "takes exactly 4 pictures"),
        (("batch", 1, 640, 640), ("batch", 84, 8400), "with three channels"),
        (("batch", 16), ("batch", 84, 8400), "with three channels"),
    ],
)
def test_what_takes_no_picture_is_refused(
    tmp_path: Path, picture: Sizes, output: Sizes, expected: str
) -> None:
    """The error names the input and what to export instead."""
    with pytest.raises(InvalidValueError, match=expected):
        plan(write_network(tmp_path, picture, output))


def test_labels_must_be_those_of_the_network(tmp_path: Path) -> None:
    """A file with another number of lines is refused before anything is written."""
    labels = tmp_path / "labels.txt"
    labels.write_text("cat\ndog\n")
    with pytest.raises(InvalidValueError, match="has 80 classes as yolov8, got 2 labels"):
        plan(write_network(tmp_path), labels=labels)
    labels.write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidValueError, match="is not UTF-8"):
        plan(write_network(tmp_path), labels=labels)


def test_nothing_is_left_if_one_folder_exists(tmp_path: Path) -> None:
    """All folders are written, or none."""
    models = tmp_path / "models"
    (models / "eye_select").mkdir(parents=True)
    planned = plan(write_network(tmp_path))
    with pytest.raises(InvalidValueError, match="eye_select: already exists"):
        write_together(planned.models, models)
    assert [path.name for path in models.iterdir()] == ["eye_select"]
