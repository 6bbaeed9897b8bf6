"""Statements of policies, and the ARNs in them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aws_cdk import ArnFormat
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from constructs import Construct

from constructs_triton.cdk.validation.read_once import stack_of

Conditions = Mapping[str, Mapping[str, object]]
# Their ARNs have a colon before the name, as in ``alarm:name``.
_WITH_COLON = ("cloudwatch", "logs")


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement of a policy as a value, which is finished JSON for the CDK
    and needs no call to it.
    """

    sid: str | None
    actions: Sequence[str]
    resources: Sequence[str]
    conditions: Conditions | None = None
    effect: str = "Allow"

    def to_json(self) -> dict[str, Any]:
        """Return the statement as it is in a policy, with tokens."""
        parts = {
            "Action": unlisted(self.actions),
            "Condition": self.conditions,
            "Effect": self.effect,
            "Resource": unlisted(self.resources),
            "Sid": self.sid,
        }
        return {name: value for name, value in parts.items() if value}

    def to_cdk(self) -> iam.PolicyStatement:
        """Return the CDK's statement, for methods that take no JSON."""
        return iam.PolicyStatement.from_json(self.to_json())


def unlisted(values: Iterable[Any]) -> Any:
    """Return values as the CDK writes them in a statement: each once,
    and an only one without a list.
    """
    distinct = list(dict.fromkeys(values))
    return distinct[0] if len(distinct) == 1 else distinct


def listed(value: Any) -> list[Any]:
    """Return the values of one that may be an only one, without a list."""
    return value if isinstance(value, list) else [value]


def inline_policy(
    scope: Construct, id: str, role: iam.IRole, statements: Iterable[Statement]
) -> iam.Policy:
    """Create a policy of a role."""
    document = iam.PolicyDocument.from_json({"Statement": [each.to_json() for each in statements]})
    return iam.Policy(scope, id, document=document, roles=[role])


def allow(
    sid: str | None,
    actions: Sequence[str],
    resources: Sequence[str],
    conditions: Conditions | None = None,
) -> Statement:
    """Return a statement that allows actions on resources; one without ``sid`` has no id."""
    return Statement(sid, actions, resources, conditions)


def allow_to_list(sid: str, bucket: s3.IBucket, prefix: str) -> Statement:
    """Return a statement that allows to list the objects under a prefix."""
    return allow(
        sid, ["s3:ListBucket"], [bucket.bucket_arn], {"StringLike": {"s3:prefix": [f"{prefix}*"]}}
    )


def arn_in_stack(scope: Construct, service: str, resource: str, name: str) -> str:
    """Return the ARN of a resource in the account and Region of the stack of ``scope``."""
    colon = ArnFormat.COLON_RESOURCE_NAME if service in _WITH_COLON else None
    return stack_of(scope).format_arn(
        service=service, resource=resource, resource_name=name, arn_format=colon
    )
