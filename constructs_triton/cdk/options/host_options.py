"""The properties that all endpoints have: network, role and encryption, name and instance type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, TypedDict

from aws_cdk import RemovalPolicy
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms

from constructs_triton.cdk.metrics.metrics_config import MetricsConfig
from constructs_triton.cdk.options.instance_pool import (
    INSTANCE_POOL_EXAMPLE,
    INSTANCE_TYPE_EXAMPLE,
    InstancePool,
)
from constructs_triton_core.declared_values import Value
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts import limits
from constructs_triton_core.facts.instance_types import InstanceType


class HostOptions(TypedDict, total=False):
    """Network, role and encryption of an endpoint."""

    vpc: Annotated[
        ec2.IVpc | None,
        Value(
            "VPC that the containers are attached to.",
            example='ec2.Vpc.from_lookup(self, "Vpc", vpc_id="...")',
        ),
    ]
    vpc_subnets: Annotated[
        ec2.SubnetSelection | None,
        Value(
            "Subnets of the VPC.",
            default_text="those that ``vpc.select_subnets()`` returns",
            example="ec2.SubnetSelection(subnet_type=ec2.SubnetType.PRIVATE_WITH_EGRESS)",
        ),
    ]
    security_groups: Annotated[
        Sequence[ec2.ISecurityGroup] | None,
        Value(
            "Up to 5 security groups of the containers.",
            default_text="with a ``vpc``, a new security group",
            example='ec2.SecurityGroup.from_security_group_id(self, "SecurityGroup", "...")',
            limit=limits.SECURITY_GROUPS,
        ),
    ]
    enable_network_isolation: Annotated[
        bool | None,
        Value(
            "Whether the containers have no network access. SageMaker still downloads the models.",
            default_text="``False``",
            example="True",
        ),
    ]
    role: Annotated[
        iam.IRole | None,
        Value(
            "Execution role. It is granted the permissions that the endpoint needs.",
            default_text="a new role with least privilege",
            example='iam.Role.from_role_arn(self, "Role", "...")',
        ),
    ]
    encryption_key: Annotated[
        kms.IKey | None,
        Value(
            "KMS key of the storage volume. "
            "The hardware encrypts local NVMe storage with its own key.",
            example='kms.Key.from_key_arn(self, "Key", "...")',
        ),
    ]


def check_subnets_need_vpc(options: HostOptions) -> None:
    """Check that subnets and security groups are given only with a VPC."""
    subnets, groups = options["vpc_subnets"], options["security_groups"]
    if options["vpc"] is None and (subnets is not None or groups is not None):
        raise InvalidValueError(
            "vpc: is required with vpc_subnets or security_groups; "
            "set vpc to the VPC that contains them"
        )


class InstanceOptions(TypedDict, total=False):
    """The instance type of an endpoint, or several in order of priority."""

    instance_type: Annotated[
        InstanceType | None,
        Value(
            "Instance type of the endpoint. Not required with ``instance_pools``, "
            "or if each variant sets its own.",
            example=INSTANCE_TYPE_EXAMPLE,
        ),
    ]
    instance_pools: Annotated[
        Sequence[InstancePool] | None,
        Value(
            "Up to 5 instance types in order of priority, in place of ``instance_type``. If "
            "SageMaker has no capacity for one, it uses the next. "
            "Not supported on multi-model endpoints.",
            example=INSTANCE_POOL_EXAMPLE,
            limit=limits.INSTANCE_POOLS,
        ),
    ]


class ResourceOptions(TypedDict, total=False):
    """Name, metrics and removal of an endpoint."""

    endpoint_name: Annotated[
        str | None,
        Value(
            "Name of the endpoint.",
            default_text=(
                "a name that CloudFormation generates, so that the endpoint can be replaced"
            ),
            limit=limits.ENDPOINT_NAME,
        ),
    ]
    metrics_config: Annotated[
        MetricsConfig | None,
        Value(
            "How often and in what detail SageMaker publishes metrics.",
            default_text="SageMaker's",
            example="MetricsConfig(enable_enhanced_metrics=True)",
        ),
    ]
    removal_policy: Annotated[
        RemovalPolicy | None,
        Value(
            "``RETAIN_ON_UPDATE_OR_DELETE`` keeps the endpoint and everything it needs when it is "
            "removed from the stack. ``RETAIN`` also keeps it if its creation fails. Inference "
            "components have their own.",
            default_text="``DESTROY``",
            example="RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE",
        ),
    ]
