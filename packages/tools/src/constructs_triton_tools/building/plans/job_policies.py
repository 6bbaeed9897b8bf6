"""The IAM policies of the two sides: the role of the job, and the user who starts it.

Source: AWS SageMaker developer guide, execution roles of processing and training jobs; service
authorization reference.
"""

from __future__ import annotations

from typing import Any, Literal

from constructs_triton_core.facts.execution_role import LOG_ACTIONS, NETWORK_ACTIONS, PULL_ACTIONS
from constructs_triton_tools.building.plans.job_request import JobSettings

PolicyKind = Literal["job", "caller"]


def policy_document(kind: PolicyKind, settings: JobSettings) -> dict[str, Any]:
    """Return a policy with the least that is needed."""
    statements = _job(settings) if kind == "job" else _caller(settings)
    return {"Version": "2012-10-17", "Statement": statements}


def _job(settings: JobSettings) -> list[dict[str, Any]]:
    arn = _arn_start(settings)
    statements = [
        *_bucket(settings, ["s3:GetObject", "s3:PutObject"]),
        _allow(["ecr:GetAuthorizationToken", "cloudwatch:PutMetricData"], ["*"]),
        _allow([*PULL_ACTIONS], [f"{arn}:ecr:*:*:repository/*"]),
        _allow([*LOG_ACTIONS], [f"{arn}:logs:*:*:log-group:/aws/sagemaker/*"]),
    ]
    if settings.subnets:
        statements.append(_allow([*NETWORK_ACTIONS], ["*"]))
    return [*statements, *_key(settings)]


def _caller(settings: JobSettings) -> list[dict[str, Any]]:
    arn = _arn_start(settings)
    actions = [
        f"sagemaker:{verb}{kind}Job"
        for kind in ("Processing", "Training")
        for verb in ("Create", "Describe", "Stop")
    ]
    jobs = [f"{arn}:sagemaker:*:*:{kind}-job/plan-*" for kind in ("processing", "training")]
    pass_role = _allow(["iam:PassRole"], [settings.role])
    pass_role["Condition"] = {"StringEquals": {"iam:PassedToService": "sagemaker.amazonaws.com"}}
    return [
        *_bucket(settings, ["s3:GetObject", "s3:PutObject", "s3:AbortMultipartUpload"]),
        _allow([*actions, "sagemaker:AddTags"], jobs),
        _allow(["logs:FilterLogEvents"], [f"{arn}:logs:*:*:log-group:/aws/sagemaker/*"]),
        _allow(["pricing:GetProducts"], ["*"]),
        pass_role,
        *_key(settings),
    ]


def _bucket(settings: JobSettings, actions: list[str]) -> list[dict[str, Any]]:
    arn = f"{_arn_start(settings)}:s3:::{settings.bucket}"
    # Not limited to the prefix: without s3:ListBucket, S3 answers 403 in place of 404 to
    # HeadObject.
    return [_allow(actions, [f"{arn}/{settings.prefix}*"]), _allow(["s3:ListBucket"], [arn])]


def _key(settings: JobSettings) -> list[dict[str, Any]]:
    if not settings.kms_key:
        return []
    return [_allow(["kms:Decrypt", "kms:GenerateDataKey"], [settings.kms_key])]


def _allow(actions: list[str], resources: list[str]) -> dict[str, Any]:
    return {"Effect": "Allow", "Action": actions, "Resource": resources}


def _arn_start(settings: JobSettings) -> str:
    """``arn:aws``, or that of the partition of the role."""
    return settings.role.split(":iam:", 1)[0]
