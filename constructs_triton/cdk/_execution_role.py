"""The role a Triton container runs with: the archives, the image, its logs and its metrics, nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from aws_cdk import ArnFormat, Stack
from aws_cdk import aws_iam as iam
from constructs import Construct, IDependable

__all__ = ["ExecutionRole", "key_statements", "network_statements", "observability_statements"]

_LOG_ACTIONS = ["logs:CreateLogGroup", "logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents"]
_METRIC_NAMESPACES = ["/aws/sagemaker/Endpoints", "AWS/SageMaker"]


@dataclass(frozen=True, slots=True)
class ExecutionRole:
    """A role, and what has to exist before the role can do what it was granted.

    SageMaker reads the image and the archive with the role while it creates the model, so that the model
    depends on ``policies``: the role alone exists before its policy does.
    """

    role: iam.IRole
    policies: tuple[IDependable, ...]

    @classmethod
    def make(cls, scope: Construct, statements: Sequence[iam.PolicyStatement]) -> ExecutionRole:
        """A role of the endpoint's own, trusted by SageMaker for resources of this account only."""
        role = iam.Role(scope, "Role", assumed_by=_trusted_service(scope))
        policy = iam.Policy(scope, "ExecutionPolicy", statements=list(statements), roles=[role])
        return cls(role, (policy,))

    @classmethod
    def extend(cls, role: iam.IRole, statements: Sequence[iam.PolicyStatement]) -> ExecutionRole:
        """A given role with the same statements; one that CDK must not change stays as it is."""
        results = [role.add_to_principal_policy(statement) for statement in statements]
        policies = [result.policy_dependable for result in results if result.policy_dependable is not None]
        return cls(role, tuple(policies))


def observability_statements(scope: Construct) -> list[iam.PolicyStatement]:
    """Write to the endpoints' log groups and publish the instance metrics that scaling is based on."""
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
            resources=["*"],  # CloudWatch knows no resource for this action, only the namespace
            conditions={"StringEquals": {"cloudwatch:namespace": _METRIC_NAMESPACES}},
        ),
    ]


def network_statements() -> list[iam.PolicyStatement]:
    """Attach the container's network interfaces to a VPC."""
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
    """Let SageMaker encrypt the instances' volumes with a key."""
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
