"""Names and ARNs of SageMaker resources that another stack or another tool has created."""

from __future__ import annotations

import re

from aws_cdk import ArnFormat, Stack
from constructs import Construct

from constructs_triton.cdk.permissions.statements import arn_in_stack
from constructs_triton.cdk.validation.property_types import shown
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts import limits
from constructs_triton_core.limit_checks import check_name
from constructs_triton_core.tokens import is_token


def arn_of(scope: Construct, resource: str, name: str) -> str:
    """Return the ARN of a resource of this account and Region, such as an ``endpoint``.

    Raises:
        InvalidValueError: the name is not a string.
    """
    if not isinstance(name, str):
        raise InvalidValueError(
            f"{resource.replace('-', '_')}_name: must be a string, "
            f'got {shown(name)}; write for example "digits"'
        )
    return arn_in_stack(scope, "sagemaker", resource, name)


def name_in_arn(scope: Construct, resource: str, arn: str) -> str:
    """Return the name in the ARN of a resource, such as an ``inference-component``.

    Raises:
        InvalidValueError: the ARN is not that of such a resource.
    """
    form = f"arn:[^:]+(:[^:]*){{3}}:{resource}/.+"
    if not is_token(arn) and not (isinstance(arn, str) and re.fullmatch(form, arn)):
        raise InvalidValueError(
            f"{resource.replace('-', '_')}_arn: must be the ARN of an "
            f"{resource.replace('-', ' ')}, got {shown(arn)}; write for example "
            f'"arn:aws:sagemaker:eu-west-1:123456789012:{resource}/digits"'
        )
    name = Stack.of(scope).split_arn(arn, ArnFormat.SLASH_RESOURCE_NAME).resource_name
    assert name is not None  # the format says that there is one
    return name


def endpoint_name_and_arn(scope: Construct, name: str | None, arn: str | None) -> tuple[str, str]:
    """Return name and ARN of an endpoint by one of the two.

    Raises:
        InvalidValueError: both or neither are given, or one of them is not that of an endpoint.
    """
    if (name is None) == (arn is None):
        problem = (
            "is required; set it, or set endpoint_arn"
            if name is None
            else "cannot be combined with endpoint_arn; remove one of them"
        )
        raise InvalidValueError(f"endpoint_name: {problem}")
    if arn is None:
        assert name is not None
        arn = arn_of(scope, "endpoint", name)
    else:
        name = name_in_arn(scope, "endpoint", arn)
    check_name("endpoint_name", name, limits.ENDPOINT_NAME)
    return name, arn
