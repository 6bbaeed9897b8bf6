"""The IAM policies of a search in AWS: the user who runs it, and the role of the models.

Source: service authorization reference; AWS SageMaker developer guide, execution role of CreateModel.
"""

from __future__ import annotations

from typing import Any, Literal

from constructs_triton.measuring.tuning.deployed.run_stack import NAME_PREFIX

__all__ = ["PolicyKind", "policy_document"]

PolicyKind = Literal["caller", "models"]


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
    layers = ["ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"]
    logs = ["logs:CreateLogGroup", "logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents"]
    return [
        _allow(["s3:GetObject"], f"{partition}:s3:::{bucket}/{NAME_PREFIX}*"),
        _allow(["s3:ListBucket"], f"{partition}:s3:::{bucket}"),
        _allow(["ecr:GetAuthorizationToken", "cloudwatch:PutMetricData"], "*"),
        _allow(layers, f"{partition}:ecr:*:*:repository/*"),
        _allow(logs, f"{partition}:logs:*:*:log-group:/aws/sagemaker/*"),
    ]


def _caller(partition: str, role: str, bucket: str) -> list[dict[str, Any]]:
    names = f"{NAME_PREFIX}*"
    verbs = ("Create", "Describe", "Delete")
    sagemaker = [
        f"sagemaker:{verb}{kind}" for kind in ("Model", "EndpointConfig", "Endpoint") for verb in verbs
    ]
    kinds = ("model", "endpoint-config", "endpoint")
    objects = ["s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload"]
    stacks = ["CreateStack", "DescribeStackEvents", "DeleteStack"]
    roles = [
        "CreateRole",
        "GetRole",
        "DeleteRole",
        "PutRolePolicy",
        "GetRolePolicy",
        "DeleteRolePolicy",
        "TagRole",
    ]
    schedules = ["CreateSchedule", "GetSchedule", "DeleteSchedule"]
    expiry_role = f"{partition}:iam::*:role/{names}"
    return [
        _allow(
            [*sagemaker, "sagemaker:AddTags", "sagemaker:InvokeEndpoint"],
            *(f"{partition}:sagemaker:*:*:{kind}/{names}" for kind in kinds),
        ),
        _allow(
            [f"cloudformation:{each}" for each in stacks], f"{partition}:cloudformation:*:*:stack/{names}"
        ),
        _allow([f"iam:{each}" for each in roles], expiry_role),
        _allow(
            [f"scheduler:{each}" for each in schedules], f"{partition}:scheduler:*:*:schedule/default/{names}"
        ),
        _allow(objects, f"{partition}:s3:::{bucket}/{names}"),
        _allow(["s3:ListBucket"], f"{partition}:s3:::{bucket}"),
        _pass_role(role, "sagemaker.amazonaws.com"),
        _pass_role(expiry_role, "scheduler.amazonaws.com"),
        _allow(
            [
                "cloudformation:DescribeStacks",
                "pricing:GetProducts",
                "sagemaker:ListEndpoints",
                "servicequotas:ListServiceQuotas",
            ],
            "*",
        ),
    ]


def _pass_role(role: str, service: str) -> dict[str, Any]:
    condition = {"StringEquals": {"iam:PassedToService": service}}
    return {**_allow(["iam:PassRole"], role), "Condition": condition}


def _allow(actions: list[str], *resources: str) -> dict[str, Any]:
    return {"Effect": "Allow", "Action": actions, "Resource": list(resources)}
