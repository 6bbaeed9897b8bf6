"""``TritonModel``: a SageMaker model without an endpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import aws_cdk as cdk
import botocore.session
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from aws_cdk.assertions import Annotations, Match
from cdk_apps import (
    add_repository,
    archived_models,
    flat,
    only,
    resources,
    statements,
    synthesize,
    warnings,
    write_repository,
)

from constructs_triton import CompressionType, InstanceType, TritonImage, TritonModel
from constructs_triton_core.errors import InvalidValueError
from triton_model_check.facts.published import load

CPU = InstanceType.of("ml.c5.xlarge")


def add(stack: cdk.Stack, tmp_path: Path, **props: Any) -> TritonModel:
    repository = add_repository(stack, write_repository(tmp_path / "models"))
    return TritonModel(
        stack, "Batch", **{"model_repository": repository, "instance_type": CPU, **props}
    )


def test_model_is_that_of_an_endpoint(stack: cdk.Stack, tmp_path: Path) -> None:
    """Archive, image and variables are those that an endpoint gets, and there is no endpoint."""
    model = add(stack, tmp_path, ensemble="pipeline")
    template = synthesize(stack)
    found = only(template, "AWS::SageMaker::Model")
    container = found["PrimaryContainer"]
    assert container["Environment"]["SAGEMAKER_TRITON_DEFAULT_MODEL_NAME"] == "pipeline"
    assert flat(container["ModelDataUrl"]).endswith(".tar.gz")
    models = stack.node.find_child("Models")
    archived = archived_models(models, "pipeline")  # type: ignore[arg-type]
    assert archived == ("pipeline", "scale", "shift")
    assert resources(template, "AWS::SageMaker::Endpoint") == {}
    assert stack.resolve(model.model_name)["Fn::GetAtt"][1] == "ModelName"


def test_job_may_write_its_log_and_use_its_bucket(stack: cdk.Stack, tmp_path: Path) -> None:
    """The role writes the logs of transform jobs, and a grant reaches it through the model."""
    bucket = s3.Bucket(stack, "Data")
    bucket.grant_read_write(add(stack, tmp_path, model="other"))
    template = synthesize(stack)
    found = statements(template)
    assert any(
        "log-group:/aws/sagemaker/TransformJobs*" in flat(each)
        for each in found["WriteLogs"]["Resource"]
    )
    assert "/aws/sagemaker/TransformJobs" in flat(found["PublishMetrics"]["Condition"])
    policies = resources(template, "AWS::IAM::Policy")
    assert any("s3:PutObject" in flat(each) and "Data" in flat(each) for each in policies.values())


def test_uncompressed_models_are_reported(stack: cdk.Stack, tmp_path: Path) -> None:
    """Batch transform refuses ModelDataSource, so a model with it has a warning."""
    add(stack, tmp_path, model="other", compression_type=CompressionType.NONE)
    found = Annotations.from_stack(stack).find_warning(
        "*", Match.string_like_regexp("batch transform refuses")
    )
    assert len(found) == 1


def _machine(stack: cdk.Stack, tmp_path: Path, name: str, image: TritonImage | None = None) -> str:
    """What is said about the machine of the job."""
    add(stack, tmp_path, model="other", instance_type=InstanceType.of(name), image=image)
    return " ".join(each for each in warnings(stack) if "batch transform" in each)


@pytest.mark.parametrize(
    ("name", "image"),
    [
        ("ml.g5.xlarge", None),
        ("ml.g6e.xlarge", TritonImage.dlc("25.09")),
        ("ml.g4dn.xlarge", TritonImage.from_registry("own:1", triton_version="26.02")),
    ],
)
def test_image_without_a_driver_is_reported(
    stack: cdk.Stack, tmp_path: Path, name: str, image: TritonImage | None
) -> None:
    """Batch transform has drivers for CUDA 12, so an image with CUDA 13 on a GPU has a warning."""
    found = _machine(stack, tmp_path, name, image)
    assert "CUDA 13" in found
    assert (
        'TritonImage.dlc("25.04") with TransformAmiVersion "al2-ami-sagemaker-batch-gpu-535"'
        in found
    )
    assert found.endswith("[ack: constructs-triton:batch-transform-driver]")


@pytest.mark.parametrize(
    ("name", "image"),
    [
        ("ml.g5.xlarge", TritonImage.dlc("25.04")),  # what the warning says
        ("ml.c5.xlarge", None),
        ("ml.g5.xlarge", TritonImage.from_registry("own:1")),
        ("ml.g5.xlarge", TritonImage.from_registry("own:1", triton_version="24.05")),
        pytest.param(
            cdk.Aws.REGION, None, id="token"
        ),  # an id with its number differs between processes
    ],
)
def test_no_warning_where_the_driver_is_right_or_not_known(
    stack: cdk.Stack, tmp_path: Path, name: str, image: TritonImage | None
) -> None:
    """CUDA 12, CPUs, your own image of no known release and a token have no
    warning about the machine.
    """
    assert _machine(stack, tmp_path, name, image) == ""
    assert not any("inference_ami" in each for each in warnings(stack))


@pytest.mark.parametrize(
    ("name", "is_reported"), [("ml.p4d.24xlarge", True), ("ml.g77.xlarge", False)]
)
def test_types_that_only_endpoints_have_are_reported(
    stack: cdk.Stack, tmp_path: Path, name: str, is_reported: bool
) -> None:
    """A known type that batch transform lacks has one warning,
    and a type newer than the library none.
    """
    found = _machine(stack, tmp_path, name, TritonImage.dlc("24.05"))
    assert ("batch transform does not have this type" in found) == is_reported
    assert found.count("[ack:") == is_reported


def test_batch_types_and_drivers_are_those_of_the_service_model() -> None:
    """The instance types are those of botocore, which also names each driver."""
    shapes: Any = botocore.session.get_session().get_service_model("sagemaker")
    facts = load("batch_transform")
    assert facts["instance_types"] == shapes.shape_for("TransformInstanceType").enum
    described = shapes.shape_for("TransformResources").members["TransformAmiVersion"].documentation
    for name, row in facts["amis"].items():
        after = (
            described.partition(f"<dt>{name}</dt>")[2].partition("</dl>")[0].partition("<dt>")[0]
        )
        assert f"driver version: {row['driver']}" in after


def test_vpc_and_role_are_used(stack: cdk.Stack, tmp_path: Path) -> None:
    """The containers are attached to the VPC, and a given role gets the permissions."""
    vpc = ec2.Vpc(stack, "Vpc", max_azs=2)
    role = iam.Role(stack, "Own", assumed_by=iam.ServicePrincipal("sagemaker.amazonaws.com"))
    model = add(stack, tmp_path, model="other", vpc=vpc, role=role, enable_network_isolation=True)
    assert model.role is role
    assert model.connections is not None
    found = only(synthesize(stack), "AWS::SageMaker::Model")
    assert len(found["VpcConfig"]["Subnets"]) == 2
    assert found["EnableNetworkIsolation"] is True


@pytest.mark.parametrize(
    ("props", "message"),
    [
        ({"model": "other", "ensemble": "pipeline"}, "model: cannot be combined with ensemble"),
        ({"model": "none"}, 'model: .*"none"'),
        ({"model": "other", "instance_type": "ml.c5.xlarge"}, "instance_type: must be"),
        ({"model": "other", "image": "26.05"}, "image: must be"),
        ({"model": "other", "vpc_subnets": ec2.SubnetSelection()}, "vpc: is required"),
    ],
)
def test_wrong_properties_leave_nothing_behind(
    stack: cdk.Stack, tmp_path: Path, props: dict[str, Any], message: str
) -> None:
    """An error names the property, and nothing is added to the stack."""
    with pytest.raises(InvalidValueError, match=message):
        add(stack, tmp_path, **props)
    assert stack.node.try_find_child("Batch") is None
