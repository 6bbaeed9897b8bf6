"""An endpoint that existed before the stack: a Lambda function updates it in place of
CloudFormation.

``constructs_triton_functions.adoption.handler`` describes what it does, and what a rollback
and a deletion do.
"""

from __future__ import annotations

from aws_cdk import Aws
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from constructs_triton.cdk.custom_resources.function import ContinuedFunction, FunctionDefinition
from constructs_triton.cdk.endpoint.resource_arn import endpoint_arn_of
from constructs_triton.cdk.permissions.nag_findings import mark_as_own
from constructs_triton.cdk.permissions.role_permissions import RolePermissions
from constructs_triton.cdk.permissions.statements import Statement, allow, arn_in_stack
from constructs_triton.cdk.scaling.scaling_guard import (
    after_statements,
    look_at_scaling,
    scaling_statement,
)
from constructs_triton_functions import FUNCTION_TIMEOUT_SECONDS, SERVICE_TIMEOUT_SECONDS
from constructs_triton_functions.adoption import ADOPTED_TYPE, PARAMETER_FOLDER

ADOPTION_FUNCTION = FunctionDefinition(
    description="Updates an endpoint that existed before the stack (constructs-triton)",
    folder="adoption",
    timeout_seconds=FUNCTION_TIMEOUT_SECONDS,
    memory_mib=256,
    services=("application-autoscaling", "lambda", "sagemaker.api", "ssm"),
)
"""The function. Each adopted endpoint has its own."""


class EndpointAdoption(Construct):
    """Lets a function take the place of CloudFormation for one ``AWS::SageMaker::Endpoint``.

    The resource gets another type and keeps its properties. ``endpoint_name`` is the name of the
    existing endpoint, and ``key`` encrypts its storage volumes.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        endpoint: sagemaker.CfnEndpoint,
        endpoint_name: str,
        key: kms.IKey | None,
    ) -> None:
        super().__init__(scope, id)
        mark_as_own(self)
        function = ContinuedFunction(self, "Function", ADOPTION_FUNCTION)
        arns = [endpoint_arn_of(self, endpoint_name)]
        statements = [
            *_endpoint_statements(self, arns),
            *([] if key is None else [_key_statement(self)]),
            look_at_scaling(),
            scaling_statement("Deregister", ["DeregisterScalableTarget"]),
            *after_statements(arns),
            allow(
                "RememberEndpoint",
                ["ssm:GetParameter", "ssm:PutParameter", "ssm:DeleteParameter"],
                [arn_in_stack(self, "ssm", "parameter", f"{PARAMETER_FOLDER}/{endpoint_name}")],
            ),
        ]
        permissions = RolePermissions(self, "Policy", role=function.role, statements=statements)
        endpoint.add_override("Type", ADOPTED_TYPE)
        endpoint.add_property_override("ServiceToken", function.function.function_arn)
        endpoint.add_property_override("ServiceTimeout", str(SERVICE_TIMEOUT_SECONDS))
        endpoint.node.add_dependency(permissions, function.continuation_policy)


def _endpoint_statements(scope: Construct, arns: list[str]) -> list[Statement]:
    """Statements for the function that updates the endpoint and returns it to its configuration."""
    configs = arn_in_stack(scope, "sagemaker", "endpoint-config", "*")
    return [
        # UpdateEndpoint is authorized for the configuration too, also for the previous one.
        allow(
            "AdoptEndpoint",
            ["sagemaker:DescribeEndpoint", "sagemaker:UpdateEndpoint"],
            [*arns, configs],
        ),
        allow(
            "TagEndpoint", ["sagemaker:AddTags", "sagemaker:DeleteTags", "sagemaker:ListTags"], arns
        ),
        allow(
            "LookAtPrevious",
            ["sagemaker:DescribeEndpointConfig", "sagemaker:DescribeModel"],
            [configs, arn_in_stack(scope, "sagemaker", "model", "*")],
        ),
    ]


def _key_statement(scope: Construct) -> Statement:
    """Permission to encrypt the volumes of a fleet, also with the key of the previous
    configuration.

    Source: SageMaker API permissions reference, CreateEndpoint with a ``KmsKeyId``.
    """
    return allow(
        "EncryptFleet",
        ["kms:CreateGrant"],
        [arn_in_stack(scope, "kms", "key", "*")],
        {
            "Bool": {"kms:GrantIsForAWSResource": "true"},
            "StringEquals": {"kms:ViaService": f"sagemaker.{Aws.REGION}.{Aws.URL_SUFFIX}"},
        },
    )
