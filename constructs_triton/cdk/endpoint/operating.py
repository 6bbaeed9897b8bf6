"""What ``grant_operate`` allows: the calls of the commands status, diagnose, logs and warm."""

from __future__ import annotations

from collections.abc import Iterator

from aws_cdk import Stack

from constructs_triton.cdk.endpoint.log_group import component_log_group_name, log_group_name
from constructs_triton.cdk.permissions.statements import Statement, allow, arn_in_stack
from constructs_triton.cdk.repository.contents import RepositoryContents
from constructs_triton_functions.model_sync.properties import INDEX_FILE

_READ_LOGS = ["logs:DescribeLogStreams", "logs:FilterLogEvents", "logs:GetLogEvents"]


def operating_statements(
    stack: Stack, endpoint_name: str, endpoint_arn: str, *, is_imported: bool
) -> Iterator[Statement]:
    """Yield the permissions to read the state and the logs of an endpoint.

    The stack of an imported endpoint is not known, so its events cannot be granted.
    """
    # Statements about one endpoint have no id: a principal may have them for several endpoints.
    yield _allow(None, ["DescribeEndpoint", "ListTags"], [endpoint_arn])
    # Each deployment creates a configuration and models with new names.
    yield _allow(
        "ReadEndpointConfigs", ["DescribeEndpointConfig"], [_any(stack, "endpoint-config")]
    )
    yield _allow("ReadModels", ["DescribeModel"], [_any(stack, "model")])
    yield _allow("ListComponents", ["ListInferenceComponents"], ["*"])
    yield _allow(
        "ReadComponents", ["DescribeInferenceComponent"], [_any(stack, "inference-component")]
    )
    yield _log_statement(stack, log_group_name(endpoint_name))
    yield from _scaling_statements(stack)
    if not is_imported:
        events = ["cloudformation:DescribeStackEvents", "cloudformation:ListStackResources"]
        yield allow(
            None, events, [arn_in_stack(stack, "cloudformation", "stack", f"{stack.stack_name}/*")]
        )


def component_log_statement(stack: Stack, inference_component_name: str) -> Statement:
    """Return the permission to read the logs of an inference component, or of all with ``*``."""
    return _log_statement(stack, component_log_group_name(inference_component_name))


def warming_statements(
    contents: RepositoryContents | None, endpoint_arn: str
) -> Iterator[Statement]:
    """Yield the permissions to call the models of a multi-model endpoint
    and to read their names.
    """
    yield _allow(None, ["InvokeEndpoint"], [endpoint_arn])
    if contents is None:
        return
    bucket = contents.prefix.bucket
    index = bucket.arn_for_objects(f"{contents.prefix.prefix}{INDEX_FILE}")
    yield allow(None, ["s3:GetObject"], [index])
    if bucket.encryption_key is not None:
        yield allow(None, ["kms:Decrypt"], [bucket.encryption_key.key_arn])


def _allow(sid: str | None, actions: list[str], resources: list[str]) -> Statement:
    return allow(sid, [f"sagemaker:{action}" for action in actions], resources)


def _any(stack: Stack, resource: str) -> str:
    return arn_in_stack(stack, "sagemaker", resource, "*")


def _log_statement(stack: Stack, log_group_name: str) -> Statement:
    return allow(
        None, _READ_LOGS, [arn_in_stack(stack, "logs", "log-group", f"{log_group_name}:*")]
    )


def _scaling_statements(stack: Stack) -> Iterator[Statement]:
    described = ("ScalableTargets", "ScalingActivities", "ScalingPolicies")
    yield allow(
        "ReadScaling", [f"application-autoscaling:Describe{what}" for what in described], ["*"]
    )
    alarms = arn_in_stack(stack, "cloudwatch", "alarm", "*")
    yield allow("ReadAlarms", ["cloudwatch:DescribeAlarms"], [alarms])
