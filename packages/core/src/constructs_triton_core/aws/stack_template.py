"""The template of a deployed stack, and the values of its parameters."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from constructs_triton_core.aws.aws_reader import AwsReader
from constructs_triton_core.errors import TemplateError

if TYPE_CHECKING:
    import boto3

__all__ = ["read_parameters", "read_template_text"]


def read_parameters(session: boto3.Session, stack: str) -> dict[str, str]:
    """Read the values of a deployed stack's parameters with ``cloudformation:DescribeStacks``.

    Of a parameter with ``NoEcho``, AWS returns asterisks.

    Args:
        session: boto3 session with the Region and credentials.
        stack: Name or ARN of the stack.

    Returns:
        The values by name; none if the credentials may not read them.

    Raises:
        InvalidValueError: AWS cannot be reached.
    """
    (found, *_) = AwsReader(session).read("cloudformation", "describe_stacks", StackName=stack).get(
        "Stacks"
    ) or [{}]
    return {each["ParameterKey"]: each["ParameterValue"] for each in found.get("Parameters", ())}


def read_template_text(session: boto3.Session, stack: str) -> str:
    """Read the template of a deployed stack with ``cloudformation:GetTemplate``, after its transforms.

    Args:
        session: boto3 session with the Region and credentials.
        stack: Name or ARN of the stack.

    Raises:
        TemplateError: the stack does not exist, or the credentials may not read it.
        InvalidValueError: AWS cannot be reached.
    """
    from botocore.exceptions import ClientError

    request = {"StackName": stack, "TemplateStage": "Processed"}
    try:
        body = AwsReader(session).require("cloudformation", "get_template", **request)["TemplateBody"]
    except ClientError as error:
        details = error.response["Error"]
        reason = f"{details['Code']}: {details.get('Message', '')}"
        raise TemplateError(
            f"stack {stack}: cloudformation:GetTemplate failed ({reason}); "
            "check the name, --region and --profile"
        ) from None
    return body if isinstance(body, str) else json.dumps(body)  # boto3 has parsed what is JSON
