"""The packages of the workspace: where their modules are,
and from which packages they may import.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

PROJECT = Path(__file__).resolve().parents[1]


class Package(NamedTuple):
    """A package.

    ``floors`` are the packages from which it imports. ``others`` are those of other projects that
    its modules import, at the top of a module or in a function.
    """

    name: str
    source: str
    floors: tuple[str, ...]
    others: frozenset[str]

    @property
    def root(self) -> Path:
        """The folder of its modules."""
        return PROJECT / self.source / self.name

    @property
    def modules(self) -> list[Path]:
        """Its modules, without the files of users' projects."""
        return sorted(path for path in self.root.rglob("*.py") if not is_template(path))

    @property
    def stubs(self) -> list[Path]:
        """The lists of public names."""
        return sorted(self.root.rglob("*.pyi"))


_AWS = {"boto3", "botocore"}
_CDK = {"aws_cdk", "constructs", "jsii"}
_CORE, _CHECK, _FUNCTIONS = (
    "constructs_triton_core",
    "triton_model_check",
    "constructs_triton_functions",
)
_CLIENT, _REHEARSE, _TOOLS = "constructs_triton_client", "cdk_rehearse", "constructs_triton_tools"
PACKAGES = {
    each.name: each
    for each in (
        Package(_CORE, "packages/core/src", (), frozenset({*_AWS, "rich"})),
        Package(
            _CHECK,
            "packages/check/src",
            (_CORE,),
            frozenset(
                {
                    "blake3",
                    "google",
                    "isal",
                    "lsprotocol",
                    "onnx",
                    "pathspec",
                    "platformdirs",
                    "pygls",
                    "rich",
                }
            ),
        ),
        Package(_FUNCTIONS, "packages/functions/src", (), frozenset(_AWS)),
        Package(
            _CLIENT,
            "packages/client/src",
            (_CORE,),
            frozenset({*_AWS, "ml_dtypes", "numpy", "urllib3"}),
        ),
        Package(
            _REHEARSE,
            "packages/rehearse/src",
            (_CORE,),
            frozenset({*_AWS, "cfnlint", "jsonschema", "moto", "regex", "werkzeug", "yaml"}),
        ),
        Package(
            _TOOLS,
            "packages/tools/src",
            (_CORE, _CHECK, _FUNCTIONS, _CLIENT),
            frozenset(
                {
                    *_AWS,
                    "aiohttp",
                    "blake3",
                    "isal",
                    "matplotlib",
                    "multidict",
                    "numpy",
                    "rich",
                    "uv",
                    "yarl",
                }
            ),
        ),
        Package(
            "constructs_triton",
            ".",
            (_CORE, _CHECK, _FUNCTIONS),
            frozenset({*_CDK, "argcomplete", "blake3", "botocore", "cfnlint", "pytest", "syrupy"}),
        ),
    )
}
"""Each package after those from which it imports."""


def all_test_files() -> list[Path]:
    """Return the files of tests: those of each package, and those of what goes through several."""
    folders = [PROJECT / "tests", *sorted(PROJECT.glob("packages/*/tests"))]
    return [path for folder in folders for path in sorted(folder.rglob("test_*.py"))]


# The files of users' projects, which nothing imports.
_TEMPLATES = [PACKAGES[_TOOLS].root / "cli" / "project" / name for name in ("template", "examples")]


def is_template(path: Path) -> bool:
    """Return whether a file belongs to a project of a user."""
    return any(map(path.is_relative_to, _TEMPLATES))


@cache
def project_of(folder: Path) -> dict[str, Any]:
    """Return the table ``[project]`` of a folder's ``pyproject.toml``."""
    content: dict[str, dict[str, Any]] = tomllib.loads((folder / "pyproject.toml").read_text())
    return content["project"]


@cache
def imports(path: Path) -> tuple[ast.Import | ast.ImportFrom, ...]:
    """Return all imports of a module, also in functions.

    Only they are kept, because trees are large.
    """
    tree = ast.walk(ast.parse(path.read_text()))
    return tuple(node for node in tree if isinstance(node, ast.Import | ast.ImportFrom))


@cache
def imported_names(path: Path) -> frozenset[str]:
    """Return what a module imports by absolute names, also in functions and for type checkers."""
    names: set[str] = set()
    for node in imports(path):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif node.module and not node.level:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return frozenset(names)


def lazy_names(stub: Path, package: str) -> Iterator[tuple[str, str]]:
    """Yield the names that a package imports on first use, and the module of each."""
    for module, name in re.findall(r"^from (\S+) import (\w+) as", stub.read_text(), re.MULTILINE):
        yield f"{package}.{name}", f"{package}{module}" if module.startswith(".") else module
