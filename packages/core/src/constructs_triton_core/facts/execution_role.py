"""Actions that SageMaker calls with an execution role, for endpoints and for jobs.

Source: SageMaker developer guide, execution role permissions of CreateModel, processing and
training jobs.
"""

from __future__ import annotations

__all__ = ["LOG_ACTIONS", "NETWORK_ACTIONS", "PULL_ACTIONS"]

PULL_ACTIONS = (
    "ecr:BatchCheckLayerAvailability",
    "ecr:BatchGetImage",
    "ecr:GetDownloadUrlForLayer",
)
"""To pull an image. ``ecr:GetAuthorizationToken`` supports no resource and is needed too."""
LOG_ACTIONS = (
    "logs:CreateLogGroup",
    "logs:CreateLogStream",
    "logs:DescribeLogStreams",
    "logs:PutLogEvents",
)
NETWORK_ACTIONS = (
    *(
        "ec2:CreateNetworkInterface",
        "ec2:CreateNetworkInterfacePermission",
        "ec2:DeleteNetworkInterface",
    ),
    *(
        "ec2:DeleteNetworkInterfacePermission",
        "ec2:DescribeDhcpOptions",
        "ec2:DescribeNetworkInterfaces",
    ),
    *("ec2:DescribeSecurityGroups", "ec2:DescribeSubnets", "ec2:DescribeVpcs"),
)
"""To attach containers to a VPC. AWS lists them without a resource, and the role of a model needs
all of them (SageMaker developer guide, "Give batch transform jobs access to resources in your
Amazon VPC")."""
