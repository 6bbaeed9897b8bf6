"""The check after an update that the endpoint runs the configuration of this deployment.

``constructs_triton.custom_resource_handlers.update_check.handler`` explains why it is needed.
"""

from __future__ import annotations

from aws_cdk import aws_iam as iam
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from constructs_triton.cdk.custom_resources.function import DeployFunction, FunctionDefinition
from constructs_triton.custom_resource_handlers.update_check import CHECK_TYPE

__all__ = ["UpdateCheck", "UpdateCheckFunction", "verify_update"]


class UpdateCheckFunction(DeployFunction):
    """The function. Each endpoint that is checked has its own."""

    DEFINITION = FunctionDefinition(
        description="Checks which configuration an endpoint runs after a deployment (constructs-triton)",
        folder="update_check",
        timeout_seconds=14 * 60,
        memory_mib=256,
    )


class UpdateCheck(Construct):
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
        read_endpoint = iam.PolicyStatement(
            sid="LookAtEndpoint",
            actions=["sagemaker:DescribeEndpoint"],
            resources=[endpoint.attr_endpoint_arn],
        )
        UpdateCheckFunction(self, "Function").add_custom_resource(
            self,
            resource_type=CHECK_TYPE,
            statements=[read_endpoint],
            properties={
                "EndpointName": endpoint.attr_endpoint_name,
                "EndpointConfigName": endpoint_config.attr_endpoint_config_name,
            },
        )


def verify_update(
    scope: Construct, endpoint: sagemaker.CfnEndpoint, endpoint_config: sagemaker.CfnEndpointConfig
) -> None:
    """Add the check to an endpoint that does not have it yet."""
    if scope.node.try_find_child("UpdateCheck") is None:
        UpdateCheck(scope, "UpdateCheck", endpoint=endpoint, endpoint_config=endpoint_config)
