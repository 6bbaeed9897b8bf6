"""Statements of policies, and the ARNs in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aws_cdk import ArnFormat, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from constructs import Construct

Conditions = Mapping[str, Mapping[str, object]]
# Their ARNs have a colon before the name, as in ``alarm:name``.
_WITH_COLON = ("cloudwatch", "logs")


def allow(
    sid: str | None,
    actions: Sequence[str],
    resources: Sequence[str],
    conditions: Conditions | None = None,
) -> iam.PolicyStatement:
    """Return a statement that allows actions on resources; one without ``sid`` has no id."""
    return iam.PolicyStatement(sid=sid, actions=[*actions], resources=[*resources], conditions=conditions)


def allow_to_list(sid: str, bucket: s3.IBucket, prefix: str) -> iam.PolicyStatement:
    """Return a statement that allows to list the objects under a prefix."""
    return allow(sid, ["s3:ListBucket"], [bucket.bucket_arn], {"StringLike": {"s3:prefix": [f"{prefix}*"]}})


def arn_in_stack(scope: Construct, service: str, resource: str, name: str) -> str:
    """Return the ARN of a resource in the account and Region of the stack of ``scope``."""
    colon = ArnFormat.COLON_RESOURCE_NAME if service in _WITH_COLON else None
    return Stack.of(scope).format_arn(
        service=service, resource=resource, resource_name=name, arn_format=colon
    )
