"""The options of ``trtexec`` by the version of TensorRT,
and the facts about jobs that build plans.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import botocore.session
import pytest

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts.instance_types import InstanceType, instance_type_names
from constructs_triton_tools.building.plans.compile_jobs import (
    job_kind,
    regions_without_processing,
    smallest_with_gpu,
)
from constructs_triton_tools.building.plans.options import BuildOptions
from constructs_triton_tools.building.plans.plan_build import group_by_gpu

T4, A10G = InstanceType.of("ml.g4dn.xlarge"), InstanceType.of("ml.g5.xlarge")


def arguments(tensorrt: str | None, gpu: InstanceType = T4, **options: Any) -> list[str]:
    return list(BuildOptions(**options).arguments(tensorrt, gpu, "image 26.05"))


@pytest.mark.parametrize(
    ("tensorrt", "precision", "expected"),
    [
        ("8.6.1", "file", []),
        ("10.16.1", "file", ["--stronglyTyped"]),
        ("11.1", "file", ["--stronglyTyped"]),
        (None, "file", []),
        ("8.6.1", "fp16", ["--fp16"]),
        ("10.16.1", "fp16", ["--fp16"]),
    ],
)
def test_precision_by_version(tensorrt: str | None, precision: str, expected: list[str]) -> None:
    """The types of the file are kept where TensorRT can; half precision is an option before 11."""
    assert arguments(tensorrt, precision=precision) == [*expected, "--skipInference"]


def test_all_options() -> None:
    """Memory and effort of the build, and options of the user."""
    options = {
        "workspace_mib": 4096,
        "optimization_level": 5,
        "more": ("--profilingVerbosity=detailed",),
    }
    assert arguments("10.0", A10G, precision="bf16", **options) == [
        "--bf16",
        "--memPoolSize=workspace:4096",
        "--builderOptimizationLevel=5",
        "--skipInference",
        "--profilingVerbosity=detailed",
    ]


@pytest.mark.parametrize(
    ("tensorrt", "options", "message"),
    [
        (
            "11.1",
            {"precision": "fp16"},
            r"11 of image 26.05 has no --fp16.*single precision; convert",
        ),
        (
            None,
            {"precision": "fp16"},
            r"the TensorRT of image 26.05 is not known.*; set --tensorrt",
        ),
        (
            "10.0",
            {"precision": "bf16"},
            r"the T4 of ml.g4dn.xlarge .* has no bfloat16; use --precision fp16",
        ),
        ("10.0", {"more": ("fp8",)}, r"must be one option of trtexec, got 'fp8'"),
        ("10.0", {"more": ("--onnx=x",)}, r"--onnx is set by this command"),
        ("11.0", {"more": ("--int8",)}, r"TensorRT 11 of image 26.05 has no --int8; remove it"),
    ],
)
def test_option_that_does_not_exist(
    tensorrt: str | None, options: dict[str, Any], message: str
) -> None:
    """An option that the image's TensorRT or the GPU does not have is refused
    before anything is paid for.
    """
    with pytest.raises(InvalidValueError, match=message):
        arguments(tensorrt, **options)


def test_one_plan_for_each_model_of_gpu() -> None:
    """Sizes of a family share a plan; an L4 and an L40S, of the same compute capability, do not."""
    names = ["ml.g6.12xlarge", "ml.g6e.4xlarge", "ml.g6.xlarge", "ml.g6.xlarge"]
    assert {gpu.name: types for gpu, types in group_by_gpu(names, None).items()} == {
        "ml.g6.xlarge": ("ml.g6.12xlarge", "ml.g6.xlarge"),
        "ml.g6e.xlarge": ("ml.g6e.4xlarge",),
    }
    assert [each.name for each in group_by_gpu(["ml.g5.xlarge"], "ml.g5.2xlarge")] == [
        "ml.g5.2xlarge"
    ]


@pytest.mark.parametrize(
    ("name", "build_on", "message"),
    [
        ("ml.c5.large", None, r'TensorRT needs an NVIDIA GPU, got "ml.c5.large", which has none'),
        ("ml.g9.xlarge", None, r'the GPU of the type is not known, got "ml.g9.xlarge"'),
        ("ml.p6e-gb200.36xlarge", None, r"builds its Triton images for x86_64 only"),
        (
            "ml.g5.xlarge",
            "ml.g4dn.xlarge",
            r"--build-on: must have the GPU of ml.g5.xlarge \(A10G\)",
        ),
    ],
)
def test_type_that_cannot_build(name: str, build_on: str | None, message: str) -> None:
    """Only known types with NVIDIA GPUs and x86_64 processors have plans."""
    with pytest.raises(InvalidValueError, match=message):
        group_by_gpu([name], build_on)


def gpu_types() -> Iterator[InstanceType]:
    for name in instance_type_names():
        instance = InstanceType.of(name)
        if instance.gpus and instance.gpu_model:
            yield instance


@cache
def published(kind: str) -> dict[str, list[str]]:
    """Return the types of a kind of job in each Region, by cfn-lint."""
    # Found and not imported: importing cfn-lint takes seconds.
    found = find_spec("cfnlint")
    assert found is not None
    assert found.origin is not None
    schemas = Path(found.origin).parent / "data" / "schemas" / "extensions"
    folder = schemas / f"aws_sagemaker_{kind}"
    content = json.loads((folder / "instancetype_enum.json").read_text())
    return {
        region: schema["enum"] for region, schema in content.items() if isinstance(schema, dict)
    }


def families(types: Iterable[str]) -> set[str]:
    return {name.split(".")[1] for name in types}


@cache
def hosted_only() -> dict[str, set[str]]:
    """Return the families that a Region has for endpoints and not for processing jobs."""
    processing = published("processing")
    return {
        region: families(types) - families(processing.get(region, ()))
        for region, types in published("hosting").items()
    }


def test_jobs_have_the_types_that_build() -> None:
    """Of each GPU the type that builds is one that botocore allows for its kind of job."""
    model: Any = botocore.session.get_session().get_service_model("sagemaker")
    allowed = {
        "processing": set(model.shape_for("ProcessingInstanceType").enum),
        "training": set(model.shape_for("TrainingInstanceType").enum),
    }
    for instance in gpu_types():
        assert (instance.name in allowed["processing"]) == (job_kind(instance) == "processing")
        assert instance.gpu_model is not None
        builder = smallest_with_gpu(instance.gpu_model)
        assert builder.name in allowed[job_kind(builder)]
    for instance in gpu_types():
        if job_kind(instance) == "processing":
            absent = {region for region, only in hosted_only().items() if instance.family in only}
            assert set(regions_without_processing(instance)) == absent
    assert smallest_with_gpu("H100").name == "ml.p5.4xlarge"
    with pytest.raises(
        InvalidValueError, match=r'^gpu_model: no instance type has it, got "H1000"'
    ):
        smallest_with_gpu("H1000")
