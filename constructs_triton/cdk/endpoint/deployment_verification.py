"""What a deployment verifies at its end: which configuration the endpoint runs, and how it
responds.

``constructs_triton_functions`` has the functions; ``update_check.handler`` explains why the
first one is needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256

from aws_cdk import Aws, Duration, Stack
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from constructs_triton.cdk.custom_resources.function import DeployFunction, FunctionDefinition
from constructs_triton.cdk.permissions.nag_findings import mark_as_own
from constructs_triton.cdk.permissions.s3_conditions import in_own_account
from constructs_triton.cdk.permissions.statements import Statement, allow, inline_policy
from constructs_triton.cdk.repository.archive_assets import REQUESTS_LABEL, StackAssets, label_of
from constructs_triton_functions.update_check import CHECK_TYPE
from constructs_triton_functions.verification import VERIFICATION_TYPE

# CloudFormation waits a minute longer than the functions may run. Each endpoint has its own
# functions.
_RUN_SECONDS, _WAIT_MINUTES = 14 * 60, 15
UPDATE_FUNCTION = FunctionDefinition(
    description=(
        "Checks which configuration an endpoint runs after a deployment (constructs-triton)"
    ),
    folder="update_check",
    timeout_seconds=_RUN_SECONDS,
    memory_mib=256,
    services=("sagemaker.api",),
)
_RESPONSE_FUNCTION = FunctionDefinition(
    description="Sends recorded requests to an endpoint after a deployment (constructs-triton)",
    folder="verification",
    timeout_seconds=_RUN_SECONDS,
    memory_mib=512,
    services=("cloudformation", "sagemaker.runtime"),
)


class UpdateVerification(Construct):
    """A custom resource that runs after each update that gives the endpoint a new configuration."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        endpoint: sagemaker.CfnEndpoint,
        endpoint_config: sagemaker.CfnEndpointConfig,
    ) -> None:
        super().__init__(scope, id)
        mark_as_own(self)
        read_endpoint = allow(
            "LookAtEndpoint", ["sagemaker:DescribeEndpoint"], [endpoint.attr_endpoint_arn]
        )
        properties = {
            "EndpointName": endpoint.attr_endpoint_name,
            "EndpointConfigName": endpoint_config.attr_endpoint_config_name,
        }
        function = DeployFunction(self, "Function", UPDATE_FUNCTION)
        _call_with_permissions(self, function, CHECK_TYPE, properties, [read_endpoint])


def verify_update(
    scope: Construct, endpoint: sagemaker.CfnEndpoint, endpoint_config: sagemaker.CfnEndpointConfig
) -> None:
    """Add the verification of updates to an endpoint that does not have it yet."""
    if scope.node.try_find_child("UpdateCheck") is None:
        UpdateVerification(scope, "UpdateCheck", endpoint=endpoint, endpoint_config=endpoint_config)


class ResponseVerification(Construct):
    """A custom resource that sends the requests after each deployment that changes what is served.

    ``requests`` are the recorded requests as JSON. ``target_models`` maps the names of models to
    archives. They change with the models, so new content of a multi-model endpoint is verified too.
    ``decrypt`` is the permission to decrypt the requests.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        requests: str,
        endpoint: sagemaker.CfnEndpoint,
        endpoint_config: sagemaker.CfnEndpointConfig,
        variants: Sequence[str],
        target_models: Mapping[str, str],
        decrypt: Sequence[Statement] = (),
    ) -> None:
        super().__init__(scope, id)
        mark_as_own(self)
        function = DeployFunction(self, "Function", _RESPONSE_FUNCTION)
        digest = sha256(requests.encode()).hexdigest()
        asset = StackAssets(self).add_json(requests, digest, label_of(REQUESTS_LABEL, scope))
        statements = [*_statements(self, endpoint, asset.bucket_name, asset.object_key), *decrypt]
        properties = {
            "EndpointName": endpoint.attr_endpoint_name,
            "EndpointConfigName": endpoint_config.attr_endpoint_config_name,
            "RequestsBucket": asset.bucket_name,
            "RequestsKey": asset.object_key,
            "TargetModels": dict(target_models),
            "Variants": list(variants),
        }
        _call_with_permissions(self, function, VERIFICATION_TYPE, properties, statements)


def _call_with_permissions(
    scope: Construct,
    function: DeployFunction,
    resource_type: str,
    properties: Mapping[str, object],
    statements: Sequence[Statement],
) -> None:
    """Let CloudFormation call the function, after it has the permissions."""
    policy = inline_policy(scope, "Policy", function.role, statements)
    timeout = Duration.minutes(_WAIT_MINUTES)
    resource = function.add_custom_resource(scope, "Resource", resource_type, properties, timeout)
    resource.node.add_dependency(policy)


def _statements(
    scope: Construct, endpoint: sagemaker.CfnEndpoint, bucket_name: str, key: str
) -> list[Statement]:
    """Statements for the function that sends the recorded requests to the endpoint."""
    return [
        allow("CallEndpoint", ["sagemaker:InvokeEndpoint"], [endpoint.attr_endpoint_arn]),
        allow(
            "ReadRequests",
            ["s3:GetObject"],
            [f"arn:{Aws.PARTITION}:s3:::{bucket_name}/{key}"],
            in_own_account(scope, bucket_name),
        ),
        # During a rollback nothing is sent.
        allow("ReadStackStatus", ["cloudformation:DescribeStacks"], [Stack.of(scope).stack_id]),
    ]
