"""Endpoints that a stack keeps when it is deleted, on a loopback AWS."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from files_app import write_models
from files_states import State

from cdk_rehearse import SimulatedAccount
from cdk_rehearse.steps import Step
from constructs_triton import (
    CompressionType,
    InstanceType,
    ModelSource,
    TritonEndpoint,
    TritonModelRepository,
    TritonMultiModelEndpoint,
)

BUDGET_MINUTES = 1

LATER = Step("end", "a week later")


def synthesize(directory: Path) -> Path:
    """Endpoints that load files, one archive and many archives, in the network of another stack."""
    app = cdk.App(outdir=str(directory / "assembly"), builtin_cloud_formation_validation=False)
    vpc = ec2.Vpc(cdk.Stack(app, "Network"), "Vpc", nat_gateways=0)
    stack = cdk.Stack(app, "Kept")
    models = ModelSource.from_directory(write_models(directory / "models", State()))
    kept: dict[str, Any] = {
        "model_repository": TritonModelRepository(stack, "Models", source=models),
        "instance_type": InstanceType.of("ml.g5.xlarge"),
        "vpc": vpc,
        "vpc_subnets": ec2.SubnetSelection(subnet_type=ec2.SubnetType.PRIVATE_ISOLATED),
        "removal_policy": cdk.RemovalPolicy.RETAIN,
    }
    TritonEndpoint(stack, "Files", model="adder", compression_type=CompressionType.NONE, **kept)
    TritonEndpoint(stack, "Archive", model="adder", **kept)
    TritonMultiModelEndpoint(stack, "Many", **kept)
    app.synth()
    return directory / "assembly"


def test_retained_endpoints_can_start_instances_after_the_stack_is_deleted(tmp_path: Path) -> None:
    """Files, archives, security groups and permissions are there,
    so a new instance reads everything.
    """
    assembly = synthesize(tmp_path)
    with SimulatedAccount() as aws:
        aws.bootstrap()
        for name in ("Network", "Kept"):
            assert aws.deploy(assembly, name).status == "CREATE_COMPLETE", aws.stack(name).reason
        bucket = _resources(aws, "AWS::S3::Bucket")[0]
        objects = set(aws.access.s3_needs.bucket(bucket).keys)
        groups = _resources(aws, "AWS::EC2::SecurityGroup")
        aws.fleets.inspect(LATER)
        before = {
            (each.endpoint, each.object) for each in aws.fleets.readings if each.moment == LATER
        }
        aws.fleets.forget()
        assert aws.destroy("Kept").status == "DELETE_COMPLETE"
        aws.fleets.inspect(LATER)
        after = {
            (each.endpoint, each.object) for each in aws.fleets.readings if each.moment == LATER
        }
        assert aws.fleets.losses == []
        assert (after, set(aws.access.s3_needs.bucket(bucket).keys)) == (before, objects)
        assert {each.rpartition(".")[2] for _, each in after if "/files/" in each} >= {
            "py",
            "bin",
            "txt",
            "pbtxt",
        }
        assert len([each for _, each in after if each.endswith(".tar.gz")]) >= 2
        found = aws.client("ec2").describe_security_groups(GroupIds=groups)["SecurityGroups"]
        assert len(found) == len(groups) == 3


def _resources(aws: SimulatedAccount, kind: str) -> list[str]:
    """The physical ids of the stack's resources of a type."""
    found = aws.stack("Kept").resources.values()
    return [each.physical.id for each in found if each.request.type == kind]
