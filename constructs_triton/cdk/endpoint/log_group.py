"""The CloudWatch log group of an endpoint."""

from __future__ import annotations

from aws_cdk import RemovalPolicy
from aws_cdk import aws_logs as logs
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from constructs_triton.cdk.endpoint.properties import EndpointOptions

__all__ = ["component_log_group_name", "log_group_name", "make_log_group"]


def log_group_name(endpoint_name: str) -> str:
    """Return the log group that the containers of an endpoint write to.

    Source: AWS documentation, "Log groups and streams that Amazon SageMaker AI sends to CloudWatch Logs".
    """
    return f"/aws/sagemaker/Endpoints/{endpoint_name}"


def component_log_group_name(inference_component_name: str) -> str:
    """Return the log group that the containers of an inference component write to."""
    return f"/aws/sagemaker/InferenceComponents/{inference_component_name}"


def make_log_group(scope: Construct, options: EndpointOptions, endpoint: sagemaker.CfnEndpoint) -> None:
    """Create the log group with its retention before the endpoint, because SageMaker sets no retention."""
    retention, name = options["log_retention"], options["endpoint_name"]
    if retention is None or name is None:
        return
    group = logs.LogGroup(
        scope,
        "LogGroup",
        log_group_name=log_group_name(name),
        retention=retention,
        # A log group that is kept would fail the next deployment of an endpoint of the same name.
        removal_policy=options["removal_policy"] or RemovalPolicy.DESTROY,
    )
    endpoint.node.add_dependency(group)
