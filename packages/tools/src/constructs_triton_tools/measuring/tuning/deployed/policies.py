"""The IAM policies of a search in AWS: the user who runs it, and the role of the models.

Source: service authorization reference; AWS SageMaker developer guide, execution role of CreateModel.
"""

from __future__ import annotations

from typing import Any, Literal

from constructs_triton_tools.measuring.tuning.deployed.run_stack import NAME_PREFIX

__all__ = ["PolicyKind", "policy_document"]

PolicyKind = Literal["caller", "models"]

_NAMES = f"{NAME_PREFIX}*"
_KINDS = {"Model": "model", "EndpointConfig": "endpoint-config", "Endpoint": "endpoint"}
_ROLE_ACTIONS = "CreateRole GetRole DeleteRole PutRolePolicy GetRolePolicy DeleteRolePolicy TagRole"


def policy_document(kind: PolicyKind, role: str, bucket: str) -> dict[str, Any]:
    """Return a policy with the least that is needed.

    Args:
        kind: ``caller`` for the user of the command, ``models`` for the role of the models.
        role: ARN of the role of the models.
        bucket: Bucket of the archives.
    """
    partition = role.split(":iam:", 1)[0]
    statements = _caller(partition, role, bucket) if kind == "caller" else _models(partition, bucket)
    return {"Version": "2012-10-17", "Statement": statements}


def _models(partition: str, bucket: str) -> list[dict[str, Any]]:
    layers = "BatchCheckLayerAvailability BatchGetImage GetDownloadUrlForLayer"
    logs = "CreateLogGroup CreateLogStream DescribeLogStreams PutLogEvents"
    return [
        _allow("s3", "GetObject", f"{partition}:s3:::{bucket}/{_NAMES}"),
        _allow("s3", "ListBucket", f"{partition}:s3:::{bucket}"),
        _allow("ecr", "GetAuthorizationToken", "*"),
        _allow("cloudwatch", "PutMetricData", "*"),
        _allow("ecr", layers, f"{partition}:ecr:*:*:repository/*"),
        _allow("logs", logs, f"{partition}:logs:*:*:log-group:/aws/sagemaker/*"),
    ]


def _caller(partition: str, role: str, bucket: str) -> list[dict[str, Any]]:
    expiry_role = f"{partition}:iam::*:role/{_NAMES}"
    sagemaker = " ".join(f"{verb}{kind}" for kind in _KINDS for verb in ("Create", "Describe", "Delete"))
    resources = [f"{partition}:sagemaker:*:*:{kind}/{_NAMES}" for kind in _KINDS.values()]
    stacks = f"{partition}:cloudformation:*:*:stack/{_NAMES}"
    schedules = f"{partition}:scheduler:*:*:schedule/default/{_NAMES}"
    return [
        _allow("sagemaker", f"{sagemaker} AddTags InvokeEndpoint", *resources),
        _allow("sagemaker", "ListEndpoints", "*"),
        _allow("cloudformation", "CreateStack DescribeStackEvents DeleteStack", stacks),
        _allow("cloudformation", "DescribeStacks", "*"),
        _allow("iam", _ROLE_ACTIONS, expiry_role),
        _allow("scheduler", "CreateSchedule GetSchedule DeleteSchedule", schedules),
        _allow("s3", "PutObject DeleteObject AbortMultipartUpload", f"{partition}:s3:::{bucket}/{_NAMES}"),
        _allow("s3", "ListBucket", f"{partition}:s3:::{bucket}"),
        _allow("pricing", "GetProducts", "*"),
        _allow("servicequotas", "ListServiceQuotas", "*"),
        _pass_role(role, "sagemaker.amazonaws.com"),
        _pass_role(expiry_role, "scheduler.amazonaws.com"),
    ]


def _pass_role(role: str, service: str) -> dict[str, Any]:
    condition = {"StringEquals": {"iam:PassedToService": service}}
    return {**_allow("iam", "PassRole", role), "Condition": condition}


def _allow(service: str, actions: str, *resources: str) -> dict[str, Any]:
    names = [f"{service}:{each}" for each in actions.split()]
    return {"Effect": "Allow", "Action": names, "Resource": list(resources)}
