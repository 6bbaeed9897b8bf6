"""Repositories of compiled plans, by the GPU of the endpoint."""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk.assertions import Annotations, Match
from cdk_apps import make_app, synthesize
from check_examples import EXAMPLES, write

from constructs_triton import InstanceType, ModelSource, TritonEndpoint, TritonImage, TritonModelRepository
from constructs_triton.errors import InvalidValueError, RepositoryError


@pytest.fixture
def compiled(tmp_path: Path) -> Path:
    """What ``constructs-triton compile`` writes for a T4 and an L4."""
    write(EXAMPLES["plan-gpu"].fixed, tmp_path / "compiled" / "T4")
    write(EXAMPLES["plan-gpu-model"].failing, tmp_path / "compiled" / "L4")
    return tmp_path / "compiled"


def serve(compiled: Path, plan_of: str, instance_type: str, **props: Any) -> cdk.Stack:
    stack = cdk.Stack(make_app(compiled.parent / "out"), "Test")
    source = ModelSource.from_compiled(compiled, instance_type=InstanceType.of(plan_of))
    TritonEndpoint(
        stack,
        "Endpoint",
        model_repository=TritonModelRepository(stack, "Models", source=source, **props),
        instance_type=InstanceType.of(instance_type),
        image=TritonImage.dlc("24.05"),
    )
    return stack


def test_plan_of_the_gpu_is_deployed(compiled: Path) -> None:
    """The archive has the plan for the GPU of the type, whatever the size of the instance."""
    stack = serve(compiled, "ml.g4dn.12xlarge", "ml.g4dn.xlarge")
    synthesize(stack)
    (archive,) = (compiled.parent / "out").glob("*.tar.gz")
    with tarfile.open(archive) as members:
        found = members.extractfile("m/plan.json")
        assert found is not None
        assert b'"gpu_model": "T4"' in found.read()


def test_plan_of_another_gpu_is_an_error(compiled: Path) -> None:
    """The endpoint's instance type is compared with the manifest at synth."""
    with pytest.raises(RepositoryError, match=r"plan-gpu.*built for T4 \(compute capability 7.5\)"):
        serve(compiled, "ml.g4dn.xlarge", "ml.g5.xlarge")


def test_plan_of_another_model_of_gpu_is_a_warning(compiled: Path) -> None:
    """An L4 and an L40S have the same compute capability, and TensorRT warns."""
    stack = serve(compiled, "ml.g6.xlarge", "ml.g6e.xlarge")
    Annotations.from_stack(stack).has_warning(
        "*", Match.string_like_regexp("plan-gpu-model.*|.*built for L4.*")
    )


def test_missing_plan_names_the_command(compiled: Path) -> None:
    """Synthesis compiles nothing: the error has the command to run."""
    with pytest.raises(
        InvalidValueError, match=r"has no models for ml.p4d.24xlarge \(A100\); run `constructs-"
    ):
        ModelSource.from_compiled(compiled, instance_type=InstanceType.of("ml.p4d.24xlarge"))
    with pytest.raises(InvalidValueError, match=r"^instance_type: must be a known type with an NVIDIA GPU"):
        ModelSource.from_compiled(compiled, instance_type=InstanceType.of("ml.c5.large"))
