"""Imports packages that only an extra installs."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from constructs_triton_core.errors import MissingDependencyError


def optional_package(name: str, extra: str) -> Any:
    """Return a package.

    Raises:
        MissingDependencyError: it is not installed. The message names the extra.
    """
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != name.partition(".")[0]:
            raise
        raise MissingDependencyError(
            f"{name} is not installed; run `pip install 'constructs-triton[{extra}]'`"
        ) from None
