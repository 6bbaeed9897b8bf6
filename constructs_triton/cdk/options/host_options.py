"""The properties of the machines that containers run on: network, role and encryption."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, TypedDict

from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms

from constructs_triton.cdk.validation.properties import Property
from constructs_triton.errors import InvalidValueError
from constructs_triton.facts import limits

__all__ = ["HostOptions", "check_subnets_need_vpc"]


class HostOptions(TypedDict, total=False):
    """Network, role and encryption of an endpoint."""

    vpc: Annotated[
        ec2.IVpc | None,
        Property("VPC that the containers are attached to.", example="ec2.Vpc.from_lookup(...)"),
    ]
    vpc_subnets: Annotated[
        ec2.SubnetSelection | None,
        Property(
            "Subnets of the VPC.",
            default_text="those that ``vpc.select_subnets()`` returns",
            example="ec2.SubnetSelection(...)",
        ),
    ]
    security_groups: Annotated[
        Sequence[ec2.ISecurityGroup] | None,
        Property(
            "Up to 5 security groups of the containers.",
            default_text="with a ``vpc``, a new security group",
            example="ec2.SecurityGroup(...)",
            limit=limits.SECURITY_GROUPS,
        ),
    ]
    enable_network_isolation: Annotated[
        bool | None,
        Property(
            "Whether the containers have no network access. SageMaker still downloads the models.",
            default_text="``False``",
            example="True",
        ),
    ]
    role: Annotated[
        iam.IRole | None,
        Property(
            "Execution role. It is granted the permissions that the endpoint needs.",
            default_text="a new role with least privilege",
            example="iam.Role.from_role_arn(...)",
        ),
    ]
    encryption_key: Annotated[
        kms.IKey | None,
        Property(
            "KMS key of the storage volume. The hardware encrypts local NVMe storage with its own key.",
            example="kms.Key.from_key_arn(...)",
        ),
    ]


def check_subnets_need_vpc(options: HostOptions) -> None:
    """Check that subnets and security groups are given only with a VPC.

    Raises:
        InvalidValueError: there is no ``vpc``.
    """
    subnets, groups = options["vpc_subnets"], options["security_groups"]
    if options["vpc"] is None and (subnets is not None or groups is not None):
        raise InvalidValueError(
            "vpc: is required with vpc_subnets or security_groups; set vpc to the VPC that contains them"
        )
