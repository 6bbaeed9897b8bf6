"""The members of the public classes: what users look for,
and nothing that exists for other modules.
"""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import constructs_triton

PROJECT = Path(__file__).resolve().parents[2]
# Members that every construct of the CDK has, or that it names in the same way.
CONVENTIONS = re.compile(
    r"(from|grant|metric|add|scale_on)_\w+|cfn_\w+|(grant|metric|role|connections|grant_principal|endpoint_ref|node)"
)
CLASSES = [
    name
    for name in constructs_triton.__all__
    if getattr(constructs_triton, name).__module__.startswith("constructs_triton.cdk.")
    and not typing.is_typeddict(getattr(constructs_triton, name))
]


@cache
def pages() -> str:
    """The pages, the README and the examples as one string."""
    folders = [(PROJECT / "docs", "md"), (PROJECT / "examples", "md"), (PROJECT / "examples", "py")]
    paths = [
        PROJECT / "README.md",
        *(path for folder, suffix in folders for path in folder.rglob(f"*.{suffix}")),
    ]
    return "\n".join(path.read_text() for path in paths)


def members(cls: Any) -> Iterator[str]:
    """Yield the public members that the classes of this package define,
    without constructor parameters.
    """
    given = inspect.signature(cls).parameters
    for base in inspect.getmro(cls):
        if base.__module__.startswith("constructs_triton"):
            names = {*vars(base), *getattr(base, "__annotations__", {})}
            yield from (name for name in names if name[0] != "_" and name not in given)


@pytest.mark.parametrize("name", CLASSES)
def test_public_members_are_documented(name: str) -> None:
    """Every public member follows a convention of the CDK, or a page or an example uses it."""
    cls = getattr(constructs_triton, name)
    unknown = sorted({each for each in members(cls) if not CONVENTIONS.fullmatch(each)})
    assert [each for each in unknown if not re.search(rf"[.`]{each}\b|\b{each}\(", pages())] == []


def test_public_names_are_used() -> None:
    """A page or an example uses every name of the root."""
    assert [
        name for name in constructs_triton.__all__ if not re.search(rf"\b{name}\b", pages())
    ] == []
