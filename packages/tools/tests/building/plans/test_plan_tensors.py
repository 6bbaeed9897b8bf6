"""The tensors of a plan, from a real ONNX file and the arguments of ``trtexec``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from onnx import TensorProto
from simulated_jobs import write_onnx

from constructs_triton_core.facts.instance_types import InstanceType
from constructs_triton_tools.building.plans.onnx_model import OnnxModelFile
from constructs_triton_tools.building.plans.plan_build import BuildImage, PlanBuild
from constructs_triton_tools.building.plans.plan_tensors import with_tensors
from constructs_triton_tools.building.plans.shapes import (
    input_ranges,
    read_input_ranges,
    shape_arguments,
)
from triton_model_check.model_config.text import parse_model_config
from triton_model_check.model_files.plan_manifest import PlanManifest

INPUTS: dict[str, list[Any]] = {"ids": ["batch", "length"], "offset": ["batch", 3], "size": [2]}


def tensors(
    folder: Path, tensorrt: str, *arguments: str, data_type: int = TensorProto.INT64
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The entries of the inputs and outputs in the manifest of a plan."""
    file = OnnxModelFile.read(write_onnx(folder / "m.onnx", inputs=INPUTS, data_type=data_type))
    given = read_input_ranges(["ids=1..4..8,1..16..128", "offset=1..4..8,3"])
    ranges = input_ranges(file.described, parse_model_config(""), given, 4)
    build = PlanBuild(
        file,
        (*shape_arguments(ranges), *arguments),
        BuildImage("image", "image", tensorrt),
        InstanceType.of("ml.g4dn.xlarge"),
        ranges=ranges,
    )
    texts: dict[str, Any] = dict.fromkeys(
        (
            "key",
            "gpu_model",
            "compute_capability",
            "built_on",
            "image",
            "driver",
            "model_sha256",
            "job",
        ),
        "",
    )
    manifest = PlanManifest(
        **texts,
        tensorrt=tensorrt,
        arguments=build.arguments,
        plan_bytes=1,
        plan_sha256="",
        build_seconds=1,
        log_group="",
    )
    document = with_tensors(manifest, build).to_dict()
    sides = ({each["name"]: each for each in document[side]} for side in ("inputs", "outputs"))
    return next(sides), next(sides)


@pytest.mark.filterwarnings("ignore")
def test_inputs_have_the_shapes_of_the_arguments(tmp_path: Path) -> None:
    """Names and shapes are those of the ONNX file, profiles those of trtexec;
    a shape tensor has neither.
    """
    inputs, outputs = tensors(tmp_path, "10.16.1.11")
    assert inputs["ids"] == {
        "name": "ids",
        "data_type": "TYPE_INT64",
        "shape": (-1, -1),
        "min": (1, 1),
        "opt": (4, 16),
        "max": (8, 128),
    }
    assert (inputs["offset"]["min"], inputs["offset"]["max"]) == ((1, 3), (8, 3))
    assert inputs["size"] == {"name": "size", "data_type": "TYPE_INT64", "shape": None}
    assert outputs == {
        "OUTPUT__0": {"name": "OUTPUT__0", "data_type": "TYPE_FP32", "shape": (-1, 2)}
    }


@pytest.mark.parametrize(
    ("data_type", "tensorrt", "expected"),
    [
        (TensorProto.INT64, "8.6.1.6", "TYPE_INT32"),
        (TensorProto.DOUBLE, "8.6.1.6", "TYPE_FP32"),
        (TensorProto.INT64, "10.16.1.11", "TYPE_INT64"),
        (TensorProto.FLOAT16, "10.16.1.11", "TYPE_FP16"),
        (TensorProto.DOUBLE, "10.16.1.11", ""),
        (TensorProto.INT8, "8.6.1.6", ""),
        (TensorProto.FLOAT, "11.1.0.106", ""),
        (TensorProto.FLOAT, "", ""),
    ],
)
def test_only_settled_types_are_written(
    data_type: int, tensorrt: str, expected: str, tmp_path: Path
) -> None:
    """A data type that the version of TensorRT may change is not known."""
    inputs, _ = tensors(tmp_path, tensorrt, "--fp16", data_type=data_type)
    assert inputs["ids"]["data_type"] == expected


@pytest.mark.parametrize("option", ["--inputIOFormats=fp16:chw", "--outputIOFormats=fp32:hwc"])
def test_other_formats_are_not_described(option: str, tmp_path: Path) -> None:
    """With an option that changes types and the order of values, no tensor is written."""
    assert tensors(tmp_path, "10.16.1.11", option) == ({}, {})
