"""Imports the public names of a package when they are first used (PEP 562),
from the stub beside it.
"""

# pathlib takes as long to import as the rest of --help.
# ruff: noqa: PTH122, PTH123

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

from constructs_triton_core.keywords import check_keywords

__all__ = ["attach"]


def attach(
    package: str, file: str
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a package with an ``__init__.pyi``.

    The functions and classes suggest the keyword argument that was probably meant.
    """
    modules = _modules_of_names(package, f"{os.path.splitext(file)[0]}.pyi")

    def load(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found = check_keywords(getattr(import_module(modules[name]), name))
        vars(sys.modules[package])[name] = found
        return found

    names = sorted(modules)
    return load, lambda: [*names], names


def _modules_of_names(package: str, stub: str) -> dict[str, str]:
    """Return the module of each name that the stub imports, in or outside the package."""
    with open(stub, encoding="utf-8") as file:
        tree = ast.parse(file.read())

    modules = {}
    for node in tree.body:
        if not isinstance(node, ast.ImportFrom):
            continue
        is_relative = node.level > 0
        module = f"{package}.{node.module}" if is_relative else str(node.module)
        for imported in node.names:
            modules[imported.name] = module
    return modules
