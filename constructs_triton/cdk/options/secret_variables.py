"""Secrets among the environment variables of a container.

CloudFormation replaces a dynamic reference of Secrets Manager in any property when it creates the
model; ``ssm-secure`` works only in properties of a list that has no property of SageMaker (AWS
CloudFormation user guide, "Get a secret or secret value from Secrets Manager" and "Get a secure
string value from Systems Manager Parameter Store").
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from aws_cdk import SecretValue, Stack
from constructs import Construct

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.findings import Finding, Severity
from constructs_triton_core.tokens import is_token

_EXAMPLE = 'SecretValue.secrets_manager("NAME")'
_SSM_SECURE = "{{resolve:ssm-secure:"
_SOURCE = "SageMaker API reference: DescribeModel, Environment of the container"


def variable_text(path: str, value: object) -> str:
    """Return the value of a variable, which may be a secret, as a string of a template.

    Raises:
        InvalidValueError: it is no string, or a secret whose value would be in the template.
    """
    if isinstance(value, str):
        return value
    if not isinstance(value, SecretValue):
        raise InvalidValueError(
            f'{path}: must be a string, got {value!r}; write "{str(value).lower()}"'
        )
    text = value.unsafe_unwrap()
    if not is_token(text) and "{{resolve:" not in text:
        raise InvalidValueError(
            f"{path}: must not be a secret in plain text, which everybody who reads the template "
            f"sees; write {_EXAMPLE}"
        )
    return text


def secret_findings(scope: Construct, variables: Mapping[str, str]) -> Iterator[Finding]:
    """Yield a warning for each variable whose value looks like a secret.

    Raises:
        InvalidValueError: a variable refers to a secure string of Parameter Store.
    """
    for name, value in variables.items():
        path = f'environment["{name}"]'
        if _SSM_SECURE in _resolved(scope, value):
            raise InvalidValueError(
                f"{path}: CloudFormation does not resolve secure strings of Parameter Store for "
                f"SageMaker; store the value in Secrets Manager, and write {_EXAMPLE}"
            )
        if _looks_secret(name, value):
            yield Finding(
                "environment-secret",
                Severity.WARNING,
                path,
                "the value looks like a secret, and the template contains it as plain text",
                f"store it in Secrets Manager, and write {_EXAMPLE} in place of the value; copy a "
                "gated model of Hugging Face with `constructs-triton models copy`, so that the "
                "container needs no token",
                source=_SOURCE,
            )


def _looks_secret(name: str, value: str) -> bool:
    # Compiling its patterns takes 6 ms, and most endpoints have no variables of their own.
    from constructs_triton_core.untrusted.secrets import holds_secret

    return not is_token(value) and holds_secret(name, value)


def _resolved(scope: Construct, value: str) -> str:
    """Return what the template will contain; an empty string if it is not known yet."""
    if not is_token(value):
        return value
    try:
        return json.dumps(Stack.of(scope).resolve(value))
    except RuntimeError:  # a Lazy whose value another construct sets later
        return ""
