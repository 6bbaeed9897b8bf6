"""What ``grant_operate`` allows: the calls of the commands status, diagnose, logs and warm."""

from __future__ import annotations

from collections.abc import Iterator

from aws_cdk import ArnFormat, Stack
from aws_cdk import aws_iam as iam

from constructs_triton.cdk.endpoint.log_group import component_log_group_name, log_group_name
from constructs_triton.cdk.repository.contents import RepositoryContents
from constructs_triton_functions.model_sync.properties import INDEX_FILE

_READ_LOGS = ["logs:DescribeLogStreams", "logs:FilterLogEvents", "logs:GetLogEvents"]


def operating_statements(
    stack: Stack, endpoint_name: str, endpoint_arn: str, *, is_imported: bool
) -> Iterator[iam.PolicyStatement]:
    """Yield the permissions to read the state and the logs of an endpoint.

    The stack of an imported endpoint is not known, so its events cannot be granted.
    """
    # Statements about one endpoint have no id: a principal may have them for several endpoints.
    yield _allow(None, ["DescribeEndpoint", "ListTags"], [endpoint_arn])
    # Each deployment creates a configuration and models with new names.
    yield _allow("ReadEndpointConfigs", ["DescribeEndpointConfig"], [_any(stack, "endpoint-config")])
    yield _allow("ReadModels", ["DescribeModel"], [_any(stack, "model")])
    yield _allow("ListComponents", ["ListInferenceComponents"], ["*"])
    yield _allow("ReadComponents", ["DescribeInferenceComponent"], [_any(stack, "inference-component")])
    yield _log_statement(stack, log_group_name(endpoint_name))
    yield from _scaling_statements(stack)
    if not is_imported:
        yield iam.PolicyStatement(
            actions=["cloudformation:DescribeStackEvents", "cloudformation:ListStackResources"],
            resources=[_stack_arn(stack)],
        )


def component_log_statement(stack: Stack, inference_component_name: str) -> iam.PolicyStatement:
    """Return the permission to read the logs of an inference component, or of all with ``*``."""
    return _log_statement(stack, component_log_group_name(inference_component_name))


def warming_statements(
    contents: RepositoryContents | None, endpoint_arn: str
) -> Iterator[iam.PolicyStatement]:
    """Yield the permissions to call the models of a multi-model endpoint and to read their names."""
    yield _allow(None, ["InvokeEndpoint"], [endpoint_arn])
    if contents is None:
        return
    bucket = contents.prefix.bucket
    index = bucket.arn_for_objects(f"{contents.prefix.prefix}{INDEX_FILE}")
    yield iam.PolicyStatement(actions=["s3:GetObject"], resources=[index])
    if bucket.encryption_key is not None:
        yield iam.PolicyStatement(actions=["kms:Decrypt"], resources=[bucket.encryption_key.key_arn])


def _allow(sid: str | None, actions: list[str], resources: list[str]) -> iam.PolicyStatement:
    return iam.PolicyStatement(
        sid=sid, actions=[f"sagemaker:{action}" for action in actions], resources=resources
    )


def _any(stack: Stack, resource: str) -> str:
    return stack.format_arn(service="sagemaker", resource=resource, resource_name="*")


def _log_statement(stack: Stack, log_group_name: str) -> iam.PolicyStatement:
    group = stack.format_arn(
        service="logs",
        resource="log-group",
        resource_name=f"{log_group_name}:*",
        arn_format=ArnFormat.COLON_RESOURCE_NAME,
    )
    return iam.PolicyStatement(actions=_READ_LOGS, resources=[group])


def _scaling_statements(stack: Stack) -> Iterator[iam.PolicyStatement]:
    described = ("ScalableTargets", "ScalingActivities", "ScalingPolicies")
    yield iam.PolicyStatement(
        sid="ReadScaling",
        actions=[f"application-autoscaling:Describe{what}" for what in described],
        resources=["*"],
    )
    alarms = stack.format_arn(
        service="cloudwatch", resource="alarm", resource_name="*", arn_format=ArnFormat.COLON_RESOURCE_NAME
    )
    yield iam.PolicyStatement(sid="ReadAlarms", actions=["cloudwatch:DescribeAlarms"], resources=[alarms])


def _stack_arn(stack: Stack) -> str:
    name = f"{stack.stack_name}/*"
    return stack.format_arn(service="cloudformation", resource="stack", resource_name=name)
