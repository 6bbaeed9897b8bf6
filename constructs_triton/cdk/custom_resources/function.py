"""The AWS Lambda functions that handle custom resources during a deployment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from aws_cdk import Annotations, CustomResource, Duration, IgnoreMode
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

from constructs_triton.cdk.custom_resources.deploy_time_functions import (
    DeployTimeFunctionOptions,
    settings_of,
)
from constructs_triton.cdk.permissions.encrypted_data import DataUnderKeys, check_regions
from constructs_triton.cdk.permissions.nag_findings import mark_as_own
from constructs_triton.cdk.permissions.places import check_places, network_places
from constructs_triton.cdk.permissions.statements import Statement, allow, inline_policy
from constructs_triton.cdk.validation.subnets import selected_subnets, services_without_endpoint
from constructs_triton.cdk.validation.synthesis_warning import add_warning
from constructs_triton_functions import CODE_DIRECTORY, CODE_FOLDER, PYTHON_VERSION


def network_statement() -> Statement:
    """Permissions to attach a function to a VPC.

    Source: AWS managed policy AWSLambdaVPCAccessExecutionRole, without its logs. Lambda creates the
    network interfaces, whose ids are not known before.
    """
    return allow(
        "AttachToVpc",
        [
            "ec2:AssignPrivateIpAddresses",
            "ec2:CreateNetworkInterface",
            "ec2:DeleteNetworkInterface",
            "ec2:DescribeNetworkInterfaces",
            "ec2:DescribeSubnets",
            "ec2:UnassignPrivateIpAddresses",
        ],
        ["*"],
    )


def check_network(function: Construct, settings: DeployTimeFunctionOptions) -> None:
    """Warn about a VPC of another account.

    Raises:
        InvalidValueError: the VPC is in another Region.
    """
    subnets, groups = settings.get("vpc_subnets"), settings.get("security_groups")
    for finding in check_places(function, network_places(settings["vpc"], subnets, groups)):
        Annotations.of(function).add_warning_v2(
            f"constructs-triton:{finding.code}", finding.one_line
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
            "vpc_subnets: these isolated subnets have no VPC endpoint in this app for "
            f"{', '.join(missing)}, which the function calls, so the deployment would wait for it "
            "and fail; add the endpoints to the VPC before the construct, use subnets with a NAT "
            "gateway, or acknowledge this if there is another route",
        )


def python_runtime() -> lambda_.Runtime:
    """Return the runtime of all functions."""
    return cast(
        lambda_.Runtime, getattr(lambda_.Runtime, f"PYTHON_{PYTHON_VERSION.replace('.', '_')}")
    )


@dataclass(frozen=True, slots=True)
class FunctionDefinition:
    """What a function consists of.

    ``folder`` is the name of the function's folder in ``constructs_triton_functions``. ``services``
    are the AWS services that it calls, as in the names of VPC endpoints. Every function responds to
    CloudFormation through S3.
    """

    description: str
    folder: str
    timeout_seconds: int
    memory_mib: int
    services: tuple[str, ...] = ()


class DeployFunction(Construct):
    """A Lambda function that belongs to one construct, which adds permissions to its role.

    One function for a whole stack would need the permissions of all constructs, and its role would
    exceed IAM's quotas in ordinary stacks. A function is deleted together with its construct.
    """

    def __init__(self, scope: Construct, id: str, definition: FunctionDefinition) -> None:
        super().__init__(scope, id)
        mark_as_own(self)
        settings = settings_of(self)
        key = settings.get("log_encryption_key")
        for finding in check_regions(self, [DataUnderKeys("logs", [("log_encryption_key", key)])]):
            add_warning(self, finding)
        self.log_group = logs.LogGroup(
            self,
            "LogGroup",
            retention=settings.get("log_retention", logs.RetentionDays.ONE_MONTH),
            encryption_key=key,
        )
        self.role = iam.Role(
            self,
            "Role",
            assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"),
            permissions_boundary=settings.get("permissions_boundary"),
        )
        self.log_group.grant_write(self.role)
        if "vpc" in settings:
            self.role.add_to_policy(network_statement().to_cdk())
            check_network(self, settings)
            warn_without_route(self, settings, ("s3", *definition.services))
        self.function = lambda_.Function(
            self,
            "Resource",
            description=definition.description,
            runtime=python_runtime(),
            handler=f"{CODE_FOLDER}.{definition.folder}.handler.handler",
            code=_code(definition.folder),
            timeout=Duration.seconds(definition.timeout_seconds),
            memory_size=definition.memory_mib,
            role=self.role,
            log_group=self.log_group,
            vpc=settings.get("vpc"),
            vpc_subnets=settings.get("vpc_subnets"),
            security_groups=settings.get("security_groups"),
            reserved_concurrent_executions=settings.get("reserved_concurrent_executions"),
        )

    def add_custom_resource(
        self,
        scope: Construct,
        id: str,
        resource_type: str,
        properties: Mapping[str, object],
        timeout: Duration,
    ) -> CustomResource:
        """Let CloudFormation call the function with ``properties``, and wait for its answer."""
        return CustomResource(
            scope,
            id,
            resource_type=resource_type,
            service_token=self.function.function_arn,
            service_timeout=timeout,
            properties=properties,
        )


class ContinuedFunction(DeployFunction):
    """A function that invokes itself for the rest of a request that takes longer than one run."""

    def __init__(self, scope: Construct, id: str, definition: FunctionDefinition) -> None:
        super().__init__(scope, id, definition)
        # A policy of its own: the role's default policy comes before the function and cannot name
        # it.
        itself = allow("ContinueItself", ["lambda:InvokeFunction"], [self.function.function_arn])
        self.continuation_policy = inline_policy(self, "Continuation", self.role, [itself])


def _code(folder: str) -> lambda_.AssetCode:
    """The shared modules and those of the function's folder.

    Bytecode and the rest of the package are left out: they would change the asset's hash.
    """
    shipped = (CODE_FOLDER, f"{CODE_FOLDER}/{folder}")
    included = [f"!/{pattern}" for each in shipped for pattern in (each, f"{each}/*.py")]
    return lambda_.Code.from_asset(
        str(CODE_DIRECTORY),
        display_name=folder.title().replace("_", ""),
        exclude=["*", *included],
        ignore_mode=IgnoreMode.GIT,
    )
