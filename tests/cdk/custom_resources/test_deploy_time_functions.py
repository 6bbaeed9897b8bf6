"""The settings of all functions that run during a deployment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from aws_cdk.assertions import Annotations, Match
from cdk_apps import (
    ENVIRONMENT,
    add_endpoint,
    add_many,
    make_app,
    resources,
    synthesize,
    write_model,
)

from constructs_triton import CompressionType
from constructs_triton.cdk import DeployTimeFunctions
from constructs_triton_client.recorded_requests import RecordedRequest, RecordedRequests
from constructs_triton_core.errors import InvalidValueError

ISOLATED = ec2.SubnetSelection(subnet_type=ec2.SubnetType.PRIVATE_ISOLATED)


def add_functions(stack: cdk.Stack, path: Path) -> None:
    """Add endpoints with a sync, a guard and a check."""
    add_endpoint(stack, path / "models", scaling_guard=True, verify_update=True)
    write_model(path / "others", "other")
    add_many(stack, path / "others", "Many")


def of_functions(template: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    """The properties of the functions' resources of a type."""
    return [
        each["Properties"] for name, each in resources(template, kind).items() if "Function" in name
    ]


def test_settings_reach_every_function(tmp_path: Path) -> None:
    """Network, logs, concurrency and boundary are on each function,
    and inner scopes take precedence.
    """
    app = make_app()
    network = cdk.Stack(app, "Network", env=ENVIRONMENT)
    vpc, key = ec2.Vpc(network, "Vpc", nat_gateways=1, max_azs=2), kms.Key(network, "Key")
    DeployTimeFunctions.of(app).configure(
        vpc=vpc,
        log_encryption_key=key,
        log_retention=logs.RetentionDays.ONE_YEAR,
        reserved_concurrent_executions=2,
        permissions_boundary=iam.ManagedPolicy.from_managed_policy_name(
            network, "Boundary", "boundary"
        ),
    )
    stack = cdk.Stack(app, "Models", env=ENVIRONMENT)
    DeployTimeFunctions.of(stack).configure(reserved_concurrent_executions=5)
    add_functions(stack, tmp_path)
    template = synthesize(stack)
    functions = of_functions(template, "AWS::Lambda::Function")
    assert len(functions) == 3
    for each in functions:
        assert each["ReservedConcurrentExecutions"] == 5
        assert len(each["VpcConfig"]["SubnetIds"]) == 2
    for group in of_functions(template, "AWS::Logs::LogGroup"):
        assert group["RetentionInDays"] == 365
        assert "KmsKeyId" in group
    assert all("PermissionsBoundary" in each for each in of_functions(template, "AWS::IAM::Role"))
    for policy in resources(template, "AWS::IAM::Policy").values():
        if policy["Properties"]["PolicyName"].find("RoleDefault") > 0:
            sids = [each.get("Sid") for each in policy["Properties"]["PolicyDocument"]["Statement"]]
            assert "AttachToVpc" in sids
    (created,) = resources(synthesize(network), "AWS::KMS::Key").values()
    assert "EncryptLogs" in [
        each.get("Sid") for each in created["Properties"]["KeyPolicy"]["Statement"]
    ]


def test_every_custom_resource_has_a_timeout(stack: cdk.Stack, tmp_path: Path) -> None:
    """CloudFormation waits longer than the function may run,
    and never its default of an hour by accident.
    """
    requests = tmp_path / "requests.json"
    RecordedRequests([RecordedRequest("one", {}, {})]).save(requests)
    options: dict[str, Any] = {
        "scaling_guard": True,
        "verify_update": True,
        "verify_responses": requests,
    }
    endpoint = add_endpoint(
        stack, tmp_path / "models", compression_type=CompressionType.NONE, **options
    )
    endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=2).scale_on_gpu_utilization(
        "Gpu"
    )
    add_many(stack, tmp_path / "models", "Many")
    template = synthesize(stack)
    functions = resources(template, "AWS::Lambda::Function")
    found = {
        each["Type"].removeprefix("Custom::Triton"): each["Properties"]
        for each in template["Resources"].values()
        if each["Type"].startswith("Custom::")
    }
    scaling = {"ScalingSweeper", "ScalingGate", "ScalableTarget", "ScalingPolicy"}
    assert found.keys() == scaling | {"UpdateCheck", "Verification", "ModelSync", "ModelFiles"}
    for name, properties in found.items():
        function = functions[properties["ServiceToken"]["Fn::GetAtt"][0]]["Properties"]
        assert function["Timeout"] < int(properties["ServiceTimeout"]) <= 3600, name


def test_subnets_without_a_route_are_reported(tmp_path: Path) -> None:
    """The warning names each service that a function calls and that has no VPC endpoint."""
    stack = cdk.Stack(make_app(), "Test", env=ENVIRONMENT)
    subnets = [ec2.SubnetConfiguration(name="own", subnet_type=ec2.SubnetType.PRIVATE_ISOLATED)]
    vpc = ec2.Vpc(stack, "Vpc", nat_gateways=0, subnet_configuration=subnets)
    vpc.add_gateway_endpoint("S3", service=ec2.GatewayVpcEndpointAwsService.S3)
    vpc.add_interface_endpoint("Lambda", service=ec2.InterfaceVpcEndpointAwsService.LAMBDA_)
    DeployTimeFunctions.of(stack).configure(vpc=vpc, vpc_subnets=ISOLATED)
    add_functions(stack, tmp_path)
    found = Annotations.from_stack(stack).find_warning(
        "*", Match.string_like_regexp("function-without-route")
    )
    missing = {
        each.id: str(each.entry.data).partition(" for ")[2].partition(", which")[0]
        for each in found
    }
    assert missing == {
        "/Test/Endpoint/ScalingGuard/Function": (
            "application-autoscaling, cloudformation, sagemaker.api, ssm"
        ),
        "/Test/Endpoint/UpdateCheck/Function": "sagemaker.api",
    }


def test_settings_come_before_the_functions(stack: cdk.Stack, tmp_path: Path) -> None:
    """Settings after a function was created are refused,
    and so are values that would block a stack.
    """
    functions = DeployTimeFunctions.of(stack)
    with pytest.raises(
        InvalidValueError, match="reserved_concurrent_executions: must be at least 1"
    ):
        functions.configure(reserved_concurrent_executions=0)
    with pytest.raises(InvalidValueError, match="vpc: is required with vpc_subnets"):
        functions.configure(vpc_subnets=ISOLATED)
    with pytest.raises(TypeError, match="log_retention"):
        functions.configure(log_retentoin=logs.RetentionDays.ONE_DAY)  # type: ignore[call-arg]
    add_endpoint(stack, tmp_path, verify_update=True)
    with pytest.raises(InvalidValueError, match="Endpoint/UpdateCheck/Function was created before"):
        functions.configure(log_retention=logs.RetentionDays.ONE_DAY)
