"""Ensembles that `constructs-triton model new --task` writes find what a picture shows."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import numpy as np
import pytest
from aws_cdk.assertions import Template
from local_assembly import AssemblyBuilder
from PIL import Image, ImageDraw
from square_detectors import (
    FORMS,
    LABELS,
    picture,
    without_environment,
    write_classifier,
    write_detector,
)
from triton_server import needs_server

from constructs_triton import (
    InstanceType,
    ModelSource,
    TritonEnsembleEndpoint,
    TritonModelRepository,
    TritonMultiModelEndpoint,
)
from constructs_triton.cli import main
from constructs_triton_client import InferenceResult, TritonClient
from constructs_triton_core.errors import InvocationError
from constructs_triton_tools.local import LocalEndpoint
from triton_model_check.model_repository import ModelRepository

BUDGET_MINUTES = 2
pytestmark = needs_server

# The network's input has 64 x 64 pixels. A picture of 128 x 96 is shown at half the size, with 8
# rows of grey above: these squares are whole cells of 8 and 16 pixels there, and of stretched ones.
RED = (32, 16, 48, 32)
GREEN = (64, 48, 96, 80)
# Stretched, each pixel of the input is 2 x 1.5 pixels of the picture.
RED_STRETCHED = (32, 12, 48, 24)
GREEN_STRETCHED = (64, 48, 96, 72)
STRETCHED = ("rtdetr", "rtdetr_topk", "queries", "decoded")


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalEndpoint]:
    """An endpoint of a detector in each form, and of a classifier."""
    folder = tmp_path_factory.mktemp("pictures")
    labels = folder / "labels.txt"
    labels.write_text("red\ngreen\n")
    new = ["model", "new", "-o", str(folder / "models"), "--labels", str(labels)]
    for form in FORMS:
        file = folder / f"{form}.onnx"
        write_detector(file, form)
        given = ["--form", form] if form == "yolov8_rows" else []
        assert main([*new, str(file), "--task", "detect", *given]) == 0
    write_detector(folder / "masks.onnx", "yolov8_segment")
    assert main([*new, str(folder / "masks.onnx"), "--task", "segment"]) == 0
    write_classifier(folder / "colours.onnx")
    assert main([*new, str(folder / "colours.onnx"), "--task", "classify"]) == 0

    without_environment(folder / "models")
    repository = ModelRepository.from_directory(folder / "models")
    builder = AssemblyBuilder(folder / "cdk.out")
    for name in (*FORMS, "masks", "colours"):
        builder.serve_packed(repository, name)
    with LocalEndpoint.from_assembly(builder.write()) as local:
        yield local


def ask(local: LocalEndpoint, name: str, *pictures: bytes) -> InferenceResult:
    """Send pictures as one batch."""
    client = TritonClient.for_endpoint(name, endpoint_url=local.endpoint_url)
    return client.infer({"image": np.array([[content] for content in pictures], object)})


def found(answer: InferenceResult, number: int) -> list[tuple[str, list[float]]]:
    """Return the label and the box of each detection of a picture with a score above 0.9."""
    count = answer["num_detections"][number, 0]
    return [
        (answer["labels"][number, each].decode(), answer["boxes"][number, each].tolist())
        for each in range(count)
        if answer["scores"][number, each] > 0.9
    ]


@pytest.mark.parametrize("form", FORMS)
def test_a_detector_finds_the_squares(local: LocalEndpoint, form: str) -> None:
    """Each picture of a batch gets the boxes of its own squares, in its own pixels."""
    red, green = (RED_STRETCHED, GREEN_STRETCHED) if form in STRETCHED else (RED, GREEN)
    pictures = [picture(("red", red), ("green", green)), picture(), picture(("green", red))]
    answer = ask(local, form, *pictures)
    for number, expected in enumerate(([("red", red), ("green", green)], [], [("green", red)])):
        boxes = found(answer, number)
        for label, box in expected:
            near = [
                each for each in boxes if each[0] == label and np.allclose(each[1], box, atol=1)
            ]
            assert near, (label, box, boxes)
        assert {label for label, _ in boxes} == {label for label, _ in expected}
    assert set(answer["labels"][1].tolist()) == {b""}
    assert set(answer["classes"][1].tolist()) == {-1}


def test_a_mask_covers_the_object_in_its_box(local: LocalEndpoint) -> None:
    """Stretched to its box in the picture, the mask is the half of the square that is red."""
    width, height = 128, 96
    drawn = Image.new("RGB", (width, height))
    left, top, right, bottom = GREEN
    corners = [(left, top), (right - 1, top), (left, bottom - 1)]
    ImageDraw.Draw(drawn).polygon(corners, fill=(255, 0, 0))
    file = io.BytesIO()
    drawn.save(file, "PNG")
    answer = ask(local, "masks", file.getvalue(), picture())
    assert answer["masks"].shape == (2, 100, 56, 56)
    assert not answer["masks"][1].any()

    seen = np.zeros((height, width), bool)
    for number in range(answer["num_detections"][0, 0]):
        left, top, right, bottom = answer["boxes"][0, number].round().astype(int)
        mask = Image.fromarray(answer["masks"][0, number] * 255)
        stretched = np.asarray(mask.resize((right - left, bottom - top)))
        seen[top:bottom, left:right] |= stretched > 127
    red = np.asarray(drawn)[:, :, 0] > 127
    assert (seen & red).sum() / (seen | red).sum() > 0.85
    assert set(answer["labels"][0].tolist()) == {b"red", b""}


def test_a_classifier_names_the_colour(local: LocalEndpoint) -> None:
    """The best class comes first, with its label and its share of the softmax."""
    middle = (16, 0, 112, 96)
    answer = ask(local, "colours", picture(("green", middle)), picture(("red", middle)))
    assert answer["labels"].tolist() == [[b"green", b"red"], [b"red", b"green"]]
    np.testing.assert_allclose(answer["scores"].sum(axis=1), 1, atol=1e-5)


def test_a_picture_is_turned_as_its_camera_says(local: LocalEndpoint) -> None:
    """Boxes are those of the picture as viewers show it, with its EXIF orientation."""
    shown = Image.open(io.BytesIO(picture(("red", RED))))
    stored = shown.transpose(Image.Transpose.ROTATE_90)
    exif = Image.Exif()
    exif[0x0112] = 6  # to show it, turn it clockwise by 90 degrees
    file = io.BytesIO()
    stored.save(file, "PNG", exif=exif)
    boxes = found(ask(local, "yolov8", file.getvalue()), 0)
    assert any(np.allclose(box, RED, atol=1) for _, box in boxes), boxes


def test_a_picture_of_16_bits_has_the_boxes_of_one_of_8(local: LocalEndpoint) -> None:
    """Its values are scaled: cutting them off would make it white."""
    grey = np.asarray(Image.open(io.BytesIO(picture(("red", RED)))).convert("L"))
    answers = []
    for values in (grey, grey.astype("uint16") * 257):
        file = io.BytesIO()
        Image.fromarray(values).save(file, "PNG")
        answers.append(ask(local, "colours", file.getvalue())["scores"])
    np.testing.assert_allclose(answers[0], answers[1], atol=1e-6)


def test_bytes_that_are_no_picture_are_named(local: LocalEndpoint) -> None:
    """The error says which picture of the batch is wrong, and the next call works."""
    with pytest.raises(InvocationError, match="image 1: cannot be decoded"):
        ask(local, "yolov8", picture(), b"GIF89a but not really")
    assert ask(local, "yolov8", picture())["num_detections"].tolist() == [[0]]


def test_labels_are_those_of_the_file(local: LocalEndpoint) -> None:
    """A class has the label of its number."""
    answer = ask(local, "yolov8", picture(("red", RED)))
    assert answer["labels"][0, 0].decode() == LABELS[answer["classes"][0, 0]]


def test_a_detector_scales_behind_both_constructs(tmp_path: Path) -> None:
    """As an ensemble, and as an archive of a multi-model endpoint: both find the squares, and both
    scale on the utilization of the GPU.
    """
    write_detector(tmp_path / "squares.onnx", "yolov8")
    models = tmp_path / "models"
    assert (
        main(
            ["model", "new", str(tmp_path / "squares.onnx"), "--task", "detect", "-o", str(models)]
        )
        == 0
    )
    without_environment(models)

    app = cdk.App(outdir=str(tmp_path / "cdk.out"))
    stack = cdk.Stack(app, "Vision")
    common: dict[str, Any] = {
        "model_repository": TritonModelRepository(
            stack, "Models", source=ModelSource.from_directory(models)
        ),
        "instance_type": InstanceType.of("ml.g5.xlarge"),
    }
    endpoints = (
        TritonEnsembleEndpoint(stack, "One", ensemble="squares", endpoint_name="one", **common),
        TritonMultiModelEndpoint(stack, "Many", endpoint_name="many", **common),
    )
    for endpoint in endpoints:
        count = endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=3)
        count.scale_on_gpu_utilization("Gpu", target_utilization_percent=60)
    Template.from_stack(stack).resource_count_is("AWS::ApplicationAutoScaling::ScalingPolicy", 2)

    pictures = np.array([[picture(("red", RED))]], object)
    with LocalEndpoint.from_assembly(app.synth().directory) as local:
        for name, target in (("one", None), ("many", "squares")):
            client = TritonClient.for_endpoint(
                name, endpoint_url=local.endpoint_url, target_model=target
            )
            boxes = found(client.infer({"image": pictures}), 0)
            assert any(np.allclose(box, RED, atol=1) for _, box in boxes), (name, boxes)
