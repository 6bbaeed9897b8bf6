"""Replaces attributes of moto's classes and environment variables while a context is open."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib.metadata import version
from typing import Any
from unittest import mock

from constructs_triton_core.errors import MissingDependencyError


def replaced(
    owner: Any, name: str, value: Any, *, is_new: bool = False
) -> AbstractContextManager[Any]:
    """Return what sets an attribute, and restores the former one at the end."""
    if not is_new and not hasattr(owner, name):
        raise MissingDependencyError(
            f"cdk_rehearse: moto {version('moto')} is not supported, its "
            f"{getattr(owner, '__qualname__', owner)} has no {name}; "
            "run `pip install cdk-rehearse`, which installs a supported release"
        )
    return mock.patch.object(owner, name, value, create=is_new)


@contextmanager
def wrapped(owner: Any, name: str, around: Callable[..., Any]) -> Iterator[None]:
    """Replace a method by ``around``, which gets the method and then the arguments of each call."""
    original = getattr(owner, name, None)
    with replaced(owner, name, lambda *given, **named: around(original, *given, **named)):
        yield


@contextmanager
def environment(**values: str) -> Iterator[None]:
    """Set environment variables, and restore the former ones at the end."""
    former = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in former.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
