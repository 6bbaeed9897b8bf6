"""The values of variables that a template takes from Secrets Manager.

A local run does not read them from AWS: it may have no credentials, and a secret of production does
not belong on a developer's machine without being asked for. So the caller gives them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from constructs_triton_core.errors import LocalEndpointError

__all__ = ["with_secrets"]

_REFERENCES = ("{{resolve:secretsmanager:", "{{resolve:ssm-secure:", "{{resolve:ssm:")


def with_secrets(variables: Mapping[str, str], where: str) -> dict[str, str]:
    """Return the variables of a container with the values of its secrets.

    Each value is that of the caller's environment variable of the same name. If it is not set, a
    terminal asks for it without showing what is typed.

    Raises:
        LocalEndpointError: a value is not set, and there is no terminal.
    """
    found = dict(variables)
    for name, value in variables.items():
        if any(reference in str(value) for reference in _REFERENCES):
            found[name] = _given(name, where)
    return found


def _given(name: str, where: str) -> str:
    value = os.environ.get(name) or _asked(name, where)
    if not value:
        raise LocalEndpointError(
            f"{where}: the variable {name} is a secret in AWS, which a local run does not read; "
            f"set {name} in your environment"
        )
    return value


def _asked(name: str, where: str) -> str | None:
    if not sys.stdin.isatty():
        return None
    from getpass import getpass  # noqa: PLC0415 - only for a secret

    return getpass(f"{where}: value of {name}: ", stream=sys.stderr)
