"""The packages that are released: the members of the workspace, and the root."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from packaging.specifiers import SpecifierSet

PROJECT = Path(__file__).resolve().parents[1]
#: How the ``__init__.py`` of a package has its version: group 2.
WRITTEN = re.compile(r'^(__version__ = (?:same_version\("[\w-]+", )?")([^"]+)(?=")', re.MULTILINE)
_REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)(\[[\w,-]+\])?(?P<version>[^;]*)")


class Member(NamedTuple):
    """A package that is released: its distribution, and its folder relative to the project's."""

    name: str
    folder: str
    settings: dict[str, Any]
    """The table ``project`` of its ``pyproject.toml``."""

    @property
    def module(self) -> str:
        """The package that it is imported as."""
        return self.name.replace("-", "_")

    @property
    def file(self) -> str:
        """Its ``pyproject.toml``, relative to the project's folder."""
        return (Path(self.folder) / "pyproject.toml").as_posix()

    @property
    def version(self) -> str:
        """Its version."""
        return str(self.settings["version"])

    def allows(self, python: str) -> bool:
        """Return whether it can be installed on a Python version, such as ``3.12``."""
        return SpecifierSet(self.settings["requires-python"]).contains(f"{python}.0")

    @property
    def requirements(self) -> Iterator[str]:
        """What it requires, and what its extras require."""
        yield from self.settings["dependencies"]
        for lines in self.settings.get("optional-dependencies", {}).values():
            yield from lines


def document_of(folder: Path) -> dict[str, Any]:
    """Return the content of a folder's ``pyproject.toml``."""
    return tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))


def members_of(project: Path = PROJECT) -> list[Member]:
    """Return the packages, each after those that it requires; the root is the last."""
    folders = [*document_of(project)["tool"]["uv"]["workspace"]["members"], "."]
    tables = {folder: document_of(project / folder)["project"] for folder in folders}
    return [Member(table["name"], folder, table) for folder, table in tables.items()]


def own_requirements(member: Member, names: set[str]) -> Iterator[tuple[str, str]]:
    """Yield the requirements of other packages in ``names``, each with its version,
    such as ``==0.1.0``.
    """
    for requirement in member.requirements:
        match = _REQUIREMENT.match(requirement)
        if match is not None and match["name"] in names - {member.name}:
            yield requirement, match["version"].strip()


def written_versions(project: Path = PROJECT) -> dict[str, str]:
    """Return the version in the ``__init__.py`` of each package, by the path of this file."""
    files = [
        *project.glob("packages/*/src/*/__init__.py"),
        project / "constructs_triton/__init__.py",
    ]
    found = {
        path.relative_to(project).as_posix(): WRITTEN.search(path.read_text()) for path in files
    }
    return {name: match[2] for name, match in sorted(found.items()) if match is not None}
