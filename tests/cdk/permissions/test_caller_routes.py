"""Functions that call an endpoint from subnets without a route to SageMaker."""

from __future__ import annotations

from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_lambda as lambda_
from cdk_apps import ENVIRONMENT, warnings

from constructs_triton import (
    TritonComponentEndpoint,
    TritonEndpoint,
    TritonInferenceComponent,
    TritonVpcEndpoints,
)

ISOLATED, WITH_NAT = ec2.SubnetType.PRIVATE_ISOLATED, ec2.SubnetType.PRIVATE_WITH_EGRESS


def network(stack: cdk.Stack, kind: ec2.SubnetType) -> ec2.IVpc:
    subnets = [ec2.SubnetConfiguration(name="own", subnet_type=kind)]
    if kind is WITH_NAT:
        subnets.append(ec2.SubnetConfiguration(name="public", subnet_type=ec2.SubnetType.PUBLIC))
    return ec2.Vpc(stack, "Vpc", subnet_configuration=subnets)


def caller(stack: cdk.Stack, **options: Any) -> lambda_.Function:
    return lambda_.Function(
        stack,
        "Caller",
        runtime=lambda_.Runtime.PYTHON_3_12,
        handler="index.handler",
        code=lambda_.Code.from_inline("def handler(event, context): pass"),
        **options,
    )


def found(stack: cdk.Stack) -> list[str]:
    app = stack.node.root
    assert isinstance(app, cdk.App)
    app.synth()
    return [each for each in warnings(app) if "no interface endpoint of sagemaker.runtime" in each]


def grants(stack: cdk.Stack) -> dict[str, Any]:
    """The methods that let a caller call an endpoint or a component."""
    endpoint = TritonEndpoint.from_endpoint_attributes(
        stack, "E", endpoint_name="digits", is_asynchronous=False
    )
    queue = TritonEndpoint.from_endpoint_attributes(
        stack, "Q", endpoint_name="queue", is_asynchronous=True
    )
    host = TritonComponentEndpoint.from_endpoint_name(stack, "Host", "host")
    component = TritonInferenceComponent.from_inference_component_name(
        stack, "C", "digits", endpoint=host
    )
    owners = (endpoint, queue, component)
    return {
        f"{owner.node.id}.{name}": getattr(owner, name)
        for owner in owners
        for name in dir(type(owner))
        if name.startswith("grant_invoke") and ("async" in name) == (owner is queue)
    }


NAMES = list(grants(cdk.Stack(cdk.App(), "Names", env=ENVIRONMENT)))


@pytest.mark.parametrize("name", NAMES)
def test_caller_in_isolated_subnets_is_a_warning(name: str) -> None:
    """Each grant of a call warns, until the VPC has the endpoint, also if it is added later, in
    another stack.
    """
    for adds_endpoint in (False, True):
        app = cdk.App()
        shared = cdk.Stack(app, "Shared", env=ENVIRONMENT)
        stack = cdk.Stack(app, "Test", env=ENVIRONMENT)
        vpc = network(shared, ISOLATED)
        subnets = ec2.SubnetSelection(subnet_type=ISOLATED)
        grants(stack)[name](caller(stack, vpc=vpc, vpc_subnets=subnets))
        if adds_endpoint:
            TritonVpcEndpoints(shared, "Endpoints", vpc=vpc, runtime_access=True)
        assert len(found(stack)) == (0 if adds_endpoint else 1)


@pytest.mark.parametrize("place", ["no VPC", "NAT gateway", "another permission"])
def test_other_callers_are_no_warning(place: str) -> None:
    """Functions outside of a VPC, behind a NAT gateway, or without a permission to call."""
    stack = cdk.Stack(cdk.App(), "Test", env=ENVIRONMENT)
    endpoint = TritonEndpoint.from_endpoint_name(stack, "E", "digits")
    if place == "no VPC":
        endpoint.grant_invoke(caller(stack))
    elif place == "NAT gateway":
        endpoint.grant_invoke(caller(stack, vpc=network(stack, WITH_NAT)))
    else:
        subnets = ec2.SubnetSelection(subnet_type=ISOLATED)
        function = caller(stack, vpc=network(stack, ISOLATED), vpc_subnets=subnets)
        endpoint.grant(function, "sagemaker:DescribeEndpoint")
    assert found(stack) == []


def test_imported_vpc_is_followed() -> None:
    """Of an imported VPC, the CDK knows which subnets are isolated."""
    stack = cdk.Stack(cdk.App(), "Test", env=ENVIRONMENT)
    vpc = ec2.Vpc.from_vpc_attributes(
        stack, "Vpc", vpc_id="vpc-1", availability_zones=["a"], isolated_subnet_ids=["subnet-1"]
    )
    subnets = ec2.SubnetSelection(subnet_type=ISOLATED)
    endpoint = TritonEndpoint.from_endpoint_name(stack, "E", "digits")
    endpoint.grant_invoke(caller(stack, vpc=vpc, vpc_subnets=subnets))
    assert len(found(stack)) == 1
