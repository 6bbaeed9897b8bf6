"""The values of variables that a template does not contain: of Secrets Manager, and of parameters
with ``NoEcho``.

A local run does not read them from AWS: it may have no credentials, and a secret of production does
not belong on a developer's machine without being asked for. So the caller gives them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from constructs_triton_core.cloud_assembly.placeholders import NO_ECHO
from constructs_triton_core.errors import LocalEndpointError

__all__ = ["with_secrets"]

_REFERENCES = (
    "{{resolve:secretsmanager:",
    "{{resolve:ssm-secure:",
    "{{resolve:ssm:",
    NO_ECHO,
)


def with_secrets(variables: Mapping[str, str], where: str) -> tuple[dict[str, str], frozenset[str]]:
    """Return the variables of a container with the values of its secrets, and which these are.

    Each value is that of the caller's environment variable of the same name. If it is not set, a
    terminal asks for it without showing what is typed.

    Raises:
        LocalEndpointError: a value is not set, and there is no terminal.
    """
    secrets = frozenset(name for name, value in variables.items() if _is_secret(str(value)))
    given = {name: _given(name, where) for name in variables if name in secrets}
    return {**variables, **given}, secrets


def _is_secret(value: str) -> bool:
    """Return whether a value refers to a secret, which CloudFormation puts in its place."""
    return any(reference in value for reference in _REFERENCES)


def _given(name: str, where: str) -> str:
    value = os.environ.get(name) or _asked(name, where)
    if not value:
        raise LocalEndpointError(
            f"{where}: the variable {name} is a secret, whose value a local run does not have; "
            f"set {name} in your environment"
        )
    return value


def _asked(name: str, where: str) -> str | None:
    if not sys.stdin.isatty():
        return None
    from getpass import getpass  # noqa: PLC0415 - only for a secret

    return getpass(f"{where}: value of {name}: ", stream=sys.stderr)
