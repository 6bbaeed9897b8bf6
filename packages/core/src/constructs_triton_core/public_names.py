"""Imports the public names of a package when they are first used (PEP 562), from the stub beside it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import lazy_loader  # type: ignore[import-untyped] # it has no types

from constructs_triton_core.keywords import check_keywords

__all__ = ["attach"]


def attach(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a package with an ``__init__.pyi``.

    The functions and classes suggest the keyword argument that was probably meant.
    """
    load, names, exported = lazy_loader.attach_stub(package, file)

    def load_checked(name: str) -> Any:
        value = vars(sys.modules[package])[name] = check_keywords(load(name))
        return value

    return load_checked, names, exported
