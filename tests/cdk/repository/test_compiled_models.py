"""Repositories of compiled plans, by the GPU of the endpoint."""

from __future__ import annotations

import shutil
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk.assertions import Annotations, Match
from cdk_apps import make_app, synthesize
from check_examples import EXAMPLES, write

from constructs_triton import (
    InstancePool,
    InstanceType,
    ModelSource,
    TritonEndpoint,
    TritonImage,
    TritonModelRepository,
)
from constructs_triton_core.errors import InvalidValueError, RepositoryError


@pytest.fixture
def compiled(tmp_path: Path) -> Path:
    """What ``constructs-triton compile`` writes for a T4, an A10G, an L4 and an L40S."""
    write(EXAMPLES["plan-gpu"].failing, tmp_path / "compiled" / "A10G")
    write(EXAMPLES["plan-gpu"].fixed, tmp_path / "compiled" / "T4")
    write(EXAMPLES["plan-gpu-model"].failing, tmp_path / "compiled" / "L4")
    write(EXAMPLES["plan-gpu-model"].fixed, tmp_path / "compiled" / "L40S")
    return tmp_path / "compiled"


def types(*names: str) -> list[InstanceType]:
    return [InstanceType.of(name) for name in names]


def serve_pools(compiled: Path, plans_of: Sequence[str], pools: Sequence[str]) -> cdk.Stack:
    stack = cdk.Stack(make_app(compiled.parent / "out"), "Test")
    source = ModelSource.from_compiled(compiled, instance_type=types(*plans_of))
    TritonEndpoint(
        stack,
        "Endpoint",
        model_repository=TritonModelRepository(stack, "Models", source=source),
        instance_pools=[InstancePool(each) for each in types(*pools)],
        image=TritonImage.dlc("24.05"),
        inference_ami_version=None,
    )
    return stack


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


def test_one_archive_has_the_plans_of_several_gpus(compiled: Path) -> None:
    """Triton chooses the plan by compute capability; types with the same GPU share one."""
    synthesize(
        serve_pools(
            compiled,
            ["ml.g5.xlarge", "ml.g4dn.xlarge", "ml.g5.2xlarge"],
            ["ml.g4dn.2xlarge", "ml.g5.2xlarge", "ml.g5.4xlarge"],
        )
    )
    (archive,) = (compiled.parent / "out").glob("*.tar.gz")
    with tarfile.open(archive) as members:
        files = {each.name: members.extractfile(each) for each in members if each.isfile()}
        config = files["m/config.pbtxt"]
        assert config is not None
        text = config.read().decode()
    assert {name.removeprefix("m/") for name in files} == {
        "config.pbtxt",
        "1/A10G.plan",
        "1/T4.plan",
        "A10G.plan.json",
        "T4.plan.json",
    }
    assert 'cc_model_filenames { key: "8.6" value: "A10G.plan" }' in text
    assert 'cc_model_filenames { key: "7.5" value: "T4.plan" }' in text


def test_pool_without_a_plan_is_an_error(compiled: Path) -> None:
    """Each type of the pools is checked with the plan that its GPU would load."""
    plans = ["ml.g5.xlarge", "ml.g4dn.xlarge"]
    with pytest.raises(
        InvalidValueError, match=r"ml.g6.2xlarge: .*\n.*\n.*for the endpoint's GPU \(L4"
    ):
        serve_pools(compiled, plans, ["ml.g4dn.2xlarge", "ml.g6.2xlarge"])
    shutil.copy(compiled / "T4/m/plan.json", compiled / "A10G/m/plan.json")
    with pytest.raises(
        InvalidValueError, match=r"A10G.plan.json.*built for T4 \(compute capability 7.5\)"
    ):
        serve_pools(compiled, plans, ["ml.g4dn.2xlarge", "ml.g5.2xlarge"])


def test_gpus_that_triton_cannot_tell_apart(compiled: Path) -> None:
    """An L4 and an L40S have the same compute capability,
    so their plans cannot be in one archive.
    """
    with pytest.raises(
        InvalidValueError, match=r"ml.g6.xlarge \(L4\) and ml.g6e.xlarge \(L40S\).*8.9 for both"
    ):
        ModelSource.from_compiled(compiled, instance_type=types("ml.g6.xlarge", "ml.g6e.xlarge"))
    with pytest.raises(InvalidValueError, match="must have at least one instance type"):
        ModelSource.from_compiled(compiled, instance_type=[])


def test_models_of_several_gpus_must_be_the_same(compiled: Path) -> None:
    """Different configurations or models of two GPUs name the command that
    compiles them together.
    """
    plans = ["ml.g5.xlarge", "ml.g4dn.xlarge"]
    config = compiled / "T4" / "m" / "config.pbtxt"
    config.write_text(config.read_text() + "# other\n")
    with pytest.raises(InvalidValueError, match="compile the model again with all instance types"):
        serve_pools(compiled, plans, plans)
    config.parent.rename(compiled / "T4" / "other")
    with pytest.raises(
        InvalidValueError, match=r"--instance-type ml.g5.xlarge --instance-type ml.g4"
    ):
        serve_pools(compiled, plans, plans)


def test_missing_plan_names_the_command(compiled: Path) -> None:
    """Synthesis compiles nothing: the error has the command to run."""
    with pytest.raises(
        InvalidValueError, match=r"has no models for ml.p4d.24xlarge \(A100\); run `constructs-"
    ):
        ModelSource.from_compiled(compiled, instance_type=InstanceType.of("ml.p4d.24xlarge"))
    with pytest.raises(
        InvalidValueError, match=r"^instance_type: must be a known type with an NVIDIA GPU"
    ):
        ModelSource.from_compiled(compiled, instance_type=InstanceType.of("ml.c5.large"))
