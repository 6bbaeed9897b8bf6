"""Reads the stack as it is during the deployment."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..retries import make_client
from ..scaling import call


def stack_status(stack_id: str) -> str:
    """The status of the stack, such as ``UPDATE_IN_PROGRESS``."""
    (stack,) = call(make_client("cloudformation").describe_stacks, StackName=stack_id)["Stacks"]
    status: str = stack["StackStatus"]
    return status


def stack_resources(stack_id: str) -> Iterator[dict[str, Any]]:
    """All resources of the stack; DescribeStackResources would return only the first hundred."""
    cloudformation = make_client("cloudformation")
    token: dict[str, str] = {}
    while True:
        page = call(cloudformation.list_stack_resources, StackName=stack_id, **token)
        yield from page["StackResourceSummaries"]
        if "NextToken" not in page:
            return
        token = {"NextToken": page["NextToken"]}


def endpoint_name(stack_id: str, logical_id: str) -> str | None:
    """The name of the stack's endpoint, or ``None`` if it has not been created yet.

    The ARN has the name in lower case. SageMaker finds it in any case, and returns it as it was
    given, as the identifiers of scalable targets contain it. Source: API reference, CreateEndpoint,
    EndpointName.
    """
    for each in stack_resources(stack_id):
        if each["LogicalResourceId"] == logical_id and each.get("PhysicalResourceId"):
            name = each["PhysicalResourceId"].rpartition("/")[2]
            described = call(make_client("sagemaker").describe_endpoint, EndpointName=name)
            return str(described["EndpointName"])
    return None
