"""Reads what an update would replace: the template and the parameters of a deployed stack."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from constructs_triton_core.aws.aws_reader import AwsError, AwsReader

if TYPE_CHECKING:
    import boto3


def read_deployed(session: boto3.Session, stack: str) -> tuple[str, dict[str, str]]:
    """Read the template of a stack after its transforms, and the values of its parameters by name.

    It uses ``cloudformation:GetTemplate`` and ``DescribeStacks``. Without permission for the second there are
    no values. Of a parameter with ``NoEcho``, AWS returns asterisks.

    Args:
        session: boto3 session with the Region and credentials.
        stack: Name or ARN of the stack.

    Raises:
        AwsError: the stack does not exist, the credentials may not read it, or AWS cannot be reached.
    """
    reader, request = AwsReader(session), {"StackName": stack, "TemplateStage": "Processed"}
    body = reader.describe(f"stack {stack}", "cloudformation", "get_template", **request)["TemplateBody"]
    text = body if isinstance(body, str) else json.dumps(body)  # boto3 has parsed what is JSON
    try:
        found = reader.require("cloudformation", "describe_stacks", StackName=stack)["Stacks"][0]
    except AwsError as error:
        if error.code:
            return text, {}
        raise
    return text, {each["ParameterKey"]: each["ParameterValue"] for each in found.get("Parameters", ())}
