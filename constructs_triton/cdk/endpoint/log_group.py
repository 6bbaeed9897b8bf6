"""The CloudWatch log groups of endpoints and of inference components."""

from __future__ import annotations

from aws_cdk import CfnResource, RemovalPolicy
from aws_cdk import aws_logs as logs
from constructs import Construct

__all__ = ["component_log_group_name", "log_group_name", "make_log_group"]


def log_group_name(endpoint_name: str) -> str:
    """Return the log group that the containers of an endpoint write to.

    Source: AWS documentation, "Log groups and streams that Amazon SageMaker AI sends to CloudWatch Logs".
    """
    return f"/aws/sagemaker/Endpoints/{endpoint_name}"


def component_log_group_name(inference_component_name: str) -> str:
    """Return the log group that the containers of an inference component write to."""
    return f"/aws/sagemaker/InferenceComponents/{inference_component_name}"


def make_log_group(
    scope: Construct,
    log_group_name: str,
    *,
    retention: logs.RetentionDays | None,
    removal_policy: RemovalPolicy | None,
    writer: CfnResource,
) -> None:
    """Create a log group with a retention before ``writer``, because SageMaker sets no retention."""
    if retention is None:
        return
    group = logs.LogGroup(
        scope,
        "LogGroup",
        log_group_name=log_group_name,
        retention=retention,
        # A log group that is kept would fail the next deployment of a resource of the same name.
        removal_policy=removal_policy or RemovalPolicy.DESTROY,
    )
    writer.node.add_dependency(group)
