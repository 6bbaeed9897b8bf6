"""The VPC of a deploy-time function: its permissions, and whether it can reach the services that it calls."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import Annotations
from aws_cdk import aws_iam as iam
from constructs import Construct

from constructs_triton.cdk.custom_resources.deploy_time_functions import DeployTimeFunctionOptions
from constructs_triton.cdk.validation.subnets import selected_subnets, services_without_endpoint

__all__ = ["network_statement", "warn_without_route"]


def network_statement() -> iam.PolicyStatement:
    """Permissions to attach a function to a VPC.

    Source: AWS managed policy AWSLambdaVPCAccessExecutionRole, without its logs. Lambda creates the network
    interfaces, whose ids are not known before.
    """
    return iam.PolicyStatement(
        sid="AttachToVpc",
        actions=[
            "ec2:AssignPrivateIpAddresses",
            "ec2:CreateNetworkInterface",
            "ec2:DeleteNetworkInterface",
            "ec2:DescribeNetworkInterfaces",
            "ec2:DescribeSubnets",
            "ec2:UnassignPrivateIpAddresses",
        ],
        resources=["*"],
    )


def warn_without_route(
    function: Construct, settings: DeployTimeFunctionOptions, services: Sequence[str]
) -> None:
    """Warn about isolated subnets without a VPC endpoint of a service that the function calls.

    A function that cannot respond blocks its stack until the timeout of the custom resource.
    """
    vpc = settings["vpc"]
    selected = selected_subnets(vpc, settings.get("vpc_subnets"))
    isolated = {subnet.node.path for subnet in vpc.isolated_subnets}
    if not isolated & {subnet.node.path for subnet in selected.subnets}:
        return
    missing = services_without_endpoint(vpc, services)
    if missing:
        Annotations.of(function).add_warning_v2(
            "constructs-triton:function-without-route",
            f"vpc_subnets: these isolated subnets have no VPC endpoint in this app for {', '.join(missing)}, "
            "which the function calls, so the deployment would wait for it and fail; add the endpoints to "
            "the VPC before the construct, use subnets with a NAT gateway, or acknowledge this if there is "
            "another route",
        )
