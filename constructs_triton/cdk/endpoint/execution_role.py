"""The execution role: permissions for archives, image, logs, metrics and the features in use."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from aws_cdk import ArnFormat, Stack
from aws_cdk import aws_iam as iam
from constructs import Construct

__all__ = [
    "ExecutionRole",
    "key_statements",
    "merge_statements",
    "network_statements",
    "observability_statements",
]

_LOG_ACTIONS = ["logs:CreateLogGroup", "logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents"]
_METRIC_NAMESPACES = ["/aws/sagemaker/Endpoints", "AWS/SageMaker"]


@dataclass(frozen=True, slots=True)
class ExecutionRole:
    """A role and its policy.

    SageMaker reads image and archive with the role while it creates the model. The model therefore depends
    on ``policy``, which is created after the role.
    """

    role: iam.IRole
    policy: iam.Policy

    @classmethod
    def make(
        cls, scope: Construct, statements: Sequence[iam.PolicyStatement], given: iam.IRole | None
    ) -> ExecutionRole:
        """Create a role that trusts SageMaker for this account only, or use ``given``, and add a policy.

        The policy is a child of the endpoint and not of ``given``, which may belong to several endpoints or
        to another stack. An immutable role gets no policy.
        """
        role = iam.Role(scope, "Role", assumed_by=_trusted_service(scope)) if given is None else given
        policy = iam.Policy(scope, "ExecutionPolicy", statements=merge_statements(statements))
        role.attach_inline_policy(policy)
        return cls(role, policy)


def merge_statements(statements: Sequence[iam.PolicyStatement]) -> list[iam.PolicyStatement]:
    """Merge statements that differ in their resources only, and give each statement its own id.

    IAM refuses a policy in which two statements have the same id.
    """
    merged: dict[str, iam.PolicyStatement] = {}
    for statement in statements:
        allowed = json.dumps([statement.sid, sorted(statement.actions), statement.conditions], sort_keys=True)
        if allowed in merged:
            known = merged[allowed]
            resources = [
                *known.resources,
                *(each for each in statement.resources if each not in known.resources),
            ]
            merged[allowed] = known.copy(resources=resources)
        else:
            merged[allowed] = statement
    return _with_distinct_ids(list(merged.values()))


def _with_distinct_ids(statements: Sequence[iam.PolicyStatement]) -> list[iam.PolicyStatement]:
    counts: Counter[str] = Counter()
    result = []
    for statement in statements:
        sid = statement.sid
        if sid is not None:
            counts[sid] += 1
            statement = statement if counts[sid] == 1 else statement.copy(sid=f"{sid}{counts[sid]}")  # noqa: PLW2901
        result.append(statement)
    return result


def observability_statements(scope: Construct) -> list[iam.PolicyStatement]:
    """Permissions to write logs and to publish the instance metrics that scaling uses."""
    log_groups = Stack.of(scope).format_arn(
        service="logs",
        resource="log-group",
        resource_name="/aws/sagemaker/Endpoints/*",
        arn_format=ArnFormat.COLON_RESOURCE_NAME,
    )
    return [
        iam.PolicyStatement(sid="WriteLogs", actions=_LOG_ACTIONS, resources=[log_groups]),
        iam.PolicyStatement(
            sid="PublishMetrics",
            actions=["cloudwatch:PutMetricData"],
            resources=["*"],  # This action supports the namespace as a condition, but no resource.
            conditions={"StringEquals": {"cloudwatch:namespace": _METRIC_NAMESPACES}},
        ),
    ]


def network_statements() -> list[iam.PolicyStatement]:
    """Permissions to attach the network interfaces of the containers to a VPC."""
    return [
        iam.PolicyStatement(
            sid="AttachToVpc",
            actions=[
                "ec2:CreateNetworkInterface",
                "ec2:CreateNetworkInterfacePermission",
                "ec2:DeleteNetworkInterface",
                "ec2:DeleteNetworkInterfacePermission",
                "ec2:DescribeDhcpOptions",
                "ec2:DescribeNetworkInterfaces",
                "ec2:DescribeSecurityGroups",
                "ec2:DescribeSubnets",
                "ec2:DescribeVpcs",
            ],
            # AWS documentation (CreateModel API: execution role permissions) lists them without a resource.
            resources=["*"],
        )
    ]


def key_statements(key_arn: str) -> list[iam.PolicyStatement]:
    """Permissions to encrypt the storage volumes with a key."""
    return [
        iam.PolicyStatement(
            sid="EncryptVolume",
            actions=["kms:CreateGrant"],
            resources=[key_arn],
            conditions={"Bool": {"kms:GrantIsForAWSResource": "true"}},
        ),
        iam.PolicyStatement(sid="SeeKey", actions=["kms:DescribeKey"], resources=[key_arn]),
    ]


def _trusted_service(scope: Construct) -> iam.ServicePrincipal:
    # Against the confused deputy: SageMaker may assume the role only on behalf of this account's resources.
    stack = Stack.of(scope)
    own_resources = f"arn:{stack.partition}:sagemaker:{stack.region}:{stack.account}:*"
    return iam.ServicePrincipal(
        "sagemaker.amazonaws.com",
        conditions={
            "StringEquals": {"aws:SourceAccount": stack.account},
            "ArnLike": {"aws:SourceArn": own_resources},
        },
    )
