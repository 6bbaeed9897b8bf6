"""The endpoints of a CloudFormation stack."""

from __future__ import annotations

from typing import TYPE_CHECKING

from constructs_triton.cloud_assembly.endpoints import ENDPOINT_TYPES
from constructs_triton.errors import InvalidValueError
from constructs_triton.operations.aws_reader import AwsReader

if TYPE_CHECKING:
    import boto3

__all__ = ["NoEndpointError", "endpoints_of_stack"]


class NoEndpointError(InvalidValueError):
    """A stack exists, but has no SageMaker endpoint."""


def endpoints_of_stack(session: boto3.Session, stack: str) -> list[str]:
    """Return the names of the SageMaker endpoints of a CloudFormation stack.

    Args:
        session: boto3 session with the Region and credentials.
        stack: Name or id of the stack.

    Raises:
        InvalidValueError: the stack does not exist, cannot be read, or has no endpoint.
    """
    reader = AwsReader(session)
    resources = list(
        reader.read_list("cloudformation", "list_stack_resources", "StackResourceSummaries", StackName=stack)
    )
    if reader.not_read:
        raise InvalidValueError(f"--stack: {reader.not_read[0]}; check the name and --region")
    names = [
        each["PhysicalResourceId"].rpartition("/")[2]
        for each in resources
        if each["ResourceType"] in ENDPOINT_TYPES
        and each.get("PhysicalResourceId")
        and each.get("ResourceStatus") != "DELETE_COMPLETE"
    ]
    if not names:
        raise NoEndpointError(
            f"--stack: {stack} has no SageMaker endpoint; check the name, or if its deployment failed, run "
            f"`constructs-triton diagnose --stack {stack}`"
        )
    return names
