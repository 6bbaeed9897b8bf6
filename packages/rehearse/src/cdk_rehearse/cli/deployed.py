"""Reads what an update would replace: the template and the parameters of a deployed stack."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from constructs_triton_core.aws_reader import AwsError, AwsReader

if TYPE_CHECKING:
    import boto3


def read_deployed(session: boto3.Session, stack: str) -> tuple[str, dict[str, str]]:
    """Read the template of a stack after its transforms, and the values of its parameters by name.

    It uses ``cloudformation:GetTemplate`` and ``DescribeStacks``. Without permission for the second
    there are no values. Of a parameter with ``NoEcho``, AWS returns asterisks.

    Args:
        session: boto3 session with the Region and credentials.
        stack: Name or ARN of the stack.

    Raises:
        AwsError: the stack does not exist or accepts no update, the credentials may not read it, or
            AWS cannot be reached.
    """
    reader = AwsReader(session)
    request = {"StackName": stack, "TemplateStage": "Processed"}
    body = reader.describe(f"stack {stack}", "cloudformation", "get_template", **request)[
        "TemplateBody"
    ]
    text = body if isinstance(body, str) else json.dumps(body)  # boto3 has parsed what is JSON
    try:
        found = reader.require("cloudformation", "describe_stacks", StackName=stack)["Stacks"][0]
    except AwsError as error:
        if error.code:
            return text, {}
        raise
    status = found.get("StackStatus", "")
    if re.search("^(ROLLBACK|DELETE)_|ROLLBACK_FAILED|(?<!REVIEW_IN_)PROGRESS", status):
        fix = "wait, run `npx cdk rollback`, or pass `none` as OLD if the stack was never created"
        raise AwsError(
            f"stack {stack}: CloudFormation accepts no update in the state {status}", fix
        )

    parameters = {}
    for parameter in found.get("Parameters", ()):
        parameters[parameter["ParameterKey"]] = parameter["ParameterValue"]
    return text, parameters
