"""The service-linked role with which Application Auto Scaling changes the capacity of endpoints."""

from __future__ import annotations

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from constructs import Construct

__all__ = ["SERVICE_NAME", "service_linked_role", "service_linked_role_arn"]

SERVICE_NAME = "sagemaker.application-autoscaling.amazonaws.com"
"""The service that the role is linked to, as ``iam:AWSServiceName`` names it."""

_ROLE_NAME = "AWSServiceRoleForApplicationAutoScaling_SageMakerEndpoint"


def service_linked_role_arn(partition: str, account: str) -> str:
    """Return the role's ARN.

    Source: Application Auto Scaling user guide, "Service-linked roles for Application Auto Scaling".
    """
    return f"arn:{partition}:iam::{account}:role/aws-service-role/{SERVICE_NAME}/{_ROLE_NAME}"


def service_linked_role(scope: Construct) -> iam.IRole:
    """Return the role of the account that ``scope`` is deployed to."""
    stack = Stack.of(scope)
    arn = service_linked_role_arn(stack.partition, stack.account)
    return iam.Role.from_role_arn(scope, "ServiceLinkedRole", arn, mutable=False)
