"""What moto lacks or does otherwise than AWS: one declaration each, and the way to replace it.

A declaration names the member of moto, what AWS does instead, and since which release moto has the
code that is replaced. The table of README.md comes from the declarations, and has a digest of that
code. So a release of moto that changes it, perhaps since it now does what AWS does, fails a test.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any
from unittest import mock

from constructs_triton_core.errors import MissingDependencyError

Replacement = AbstractContextManager[Any]
"""Replaces a member while it is open."""


@dataclass(frozen=True)
class Difference:
    """One member of moto that AWS contradicts."""

    owner: Any
    """Class or module of moto."""
    name: str
    aws: str
    """What AWS does, or why moto's way cannot be used, with its source."""
    since: str = ""
    """The first release of moto that has the code that is replaced; empty if moto has none."""
    is_missing: bool = False
    """Whether moto has no such member."""

    @property
    def member(self) -> str:
        """The name of the member with its module."""
        module = getattr(self.owner, "__module__", None)
        if module is None:
            return f"{self.owner.__name__}.{self.name}"
        return f"{module}.{self.owner.__qualname__}.{self.name}"

    def code(self) -> str:
        """A digest of moto's code; empty if moto has none."""
        if not hasattr(self.owner, self.name):
            return ""
        text = inspect.getsource(inspect.unwrap(getattr(self.owner, self.name)))
        return hashlib.sha256(text.encode()).hexdigest()[:8]

    def replaced_by(self, value: Any) -> Replacement:
        """Return what sets the member, and restores the former one at the end.

        Raises:
            MissingDependencyError: the installed release of moto does not have the member.
        """
        return _replaced(self.owner, self.name, value, is_new=self.is_missing)

    def wrapped_by(self, around: Callable[..., Any]) -> Replacement:
        """Replace a method by ``around``, which gets the method and then the arguments of each
        call.
        """
        return _wrapped(self.owner, self.name, around)


def _replaced(owner: Any, name: str, value: Any, *, is_new: bool) -> Replacement:
    """Return the replacement of a member of moto, which must have it unless it is new."""
    if not is_new and not hasattr(owner, name):
        raise MissingDependencyError(
            f"cdk_rehearse: moto {version('moto')} is not supported, its "
            f"{getattr(owner, '__qualname__', owner)} has no {name}; "
            "run `pip install cdk-rehearse`, which installs a supported release"
        )
    return mock.patch.object(owner, name, value, create=is_new)


@contextmanager
def _wrapped(owner: Any, name: str, around: Callable[..., Any]) -> Iterator[None]:
    """Replace a function of moto by one that gets the original as its first argument."""
    # Another difference of the same member may be replaced already: it is read when this one is.
    original = getattr(owner, name, None)

    def call(*given: Any, **named: Any) -> Any:
        return around(original, *given, **named)

    with _replaced(owner, name, call, is_new=False):
        yield
