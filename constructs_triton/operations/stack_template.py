"""The template of a deployed stack."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from constructs_triton.cloud_assembly.shapes import TEMPLATE, check_shape
from constructs_triton.cloud_assembly.template import Template
from constructs_triton.errors import TemplateError
from constructs_triton.operations.aws_reader import AwsReader

if TYPE_CHECKING:
    import boto3

__all__ = ["read_template"]

_HINT = "keep the folder that `npx cdk synth` wrote, and pass it as OLD"


def read_template(session: boto3.Session, stack: str) -> Template:
    """Read the template of a deployed stack with ``cloudformation:GetTemplate``.

    Args:
        session: boto3 session with the Region and credentials.
        stack: Name or ARN of the stack.

    Raises:
        TemplateError: the stack does not exist, cannot be read, or its template is not JSON.
        InvalidValueError: AWS cannot be reached.
    """
    reader = AwsReader(session)
    body = reader.read("cloudformation", "get_template", StackName=stack).get("TemplateBody")
    if reader.not_read:
        raise TemplateError(f"stack {stack}: {reader.not_read[0]}; check its name and --region")
    if not isinstance(body, Mapping):
        raise TemplateError(f"stack {stack}: its template is not JSON; {_HINT}")
    check_shape(body, TEMPLATE, f"stack {stack}", _HINT)
    return Template(body)
