"""Reads what an update would replace: the template and the parameters of a deployed stack."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from constructs_triton_core.aws.aws_reader import AwsError, AwsReader

if TYPE_CHECKING:
    import boto3


def read_parameters(session: boto3.Session, stack: str) -> dict[str, str]:
    """Read the values of a deployed stack's parameters with ``cloudformation:DescribeStacks``.

    Of a parameter with ``NoEcho``, AWS returns asterisks.

    Args:
        session: boto3 session with the Region and credentials.
        stack: Name or ARN of the stack.

    Returns:
        The values by name; none if the credentials may not read them.

    Raises:
        AwsError: AWS cannot be reached.
    """
    try:
        found = AwsReader(session).require("cloudformation", "describe_stacks", StackName=stack)["Stacks"][0]
    except AwsError as error:
        if error.code:
            return {}
        raise
    return {each["ParameterKey"]: each["ParameterValue"] for each in found.get("Parameters", ())}


def read_template_text(session: boto3.Session, stack: str) -> str:
    """Read the template of a deployed stack with ``cloudformation:GetTemplate``, after its transforms.

    Args:
        session: boto3 session with the Region and credentials.
        stack: Name or ARN of the stack.

    Raises:
        AwsError: the stack does not exist, the credentials may not read it, or AWS cannot be reached.
    """
    request = {"StackName": stack, "TemplateStage": "Processed"}
    found = AwsReader(session).describe(f"stack {stack}", "cloudformation", "get_template", **request)
    body = found["TemplateBody"]
    return body if isinstance(body, str) else json.dumps(body)  # boto3 has parsed what is JSON
