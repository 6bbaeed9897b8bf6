"""The types of construct libraries, as the JSII assemblies in their packages describe them.

JSII writes the assembly (``.jsii``) for its own generators of bindings; it has each class with its
constructor and each property with its type. Source: the JSII specification, ``@jsii/spec``.
"""

from __future__ import annotations

import gzip
import importlib
import json
import re
import tarfile
from collections.abc import Iterator
from functools import cache
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

CONSTRUCT = "constructs.Construct"
_L1 = "aws-cdk-lib.CfnElement"

Type = dict[str, Any]
"""A type, a property or a parameter of an assembly."""


class Library:
    """The types of the installed construct libraries.

    Args:
        assemblies: The assemblies, by name.
    """

    def __init__(self, assemblies: dict[str, Type]) -> None:
        self._assemblies = assemblies
        self.types: dict[str, Type] = {}
        for assembly in assemblies.values():
            self.types |= assembly.get("types", {})
        self._implementations = self._by_interface()

    def bases(self, name: str) -> Iterator[str]:
        """The class and its base classes."""
        current: str | None = name
        while current:
            yield current
            current = self.types.get(current, {}).get("base")

    def interfaces(self, name: str) -> set[str]:
        """All interfaces of a class, and those that they extend."""
        found: set[str] = set()
        waiting = [each for base in self.bases(name) for each in self._declared(base)]
        while waiting:
            interface = waiting.pop()
            if interface not in found:
                found.add(interface)
                waiting += self._declared(interface)
        return found

    def _declared(self, name: str) -> list[str]:
        declared: list[str] = self.types.get(name, {}).get("interfaces", [])
        return declared

    def properties(self, struct: str) -> dict[str, Type]:
        """The properties of a struct, with those of the structs that it extends."""
        found: dict[str, Type] = {}
        for name in (*sorted(self.interfaces(struct)), struct):
            found |= {each["name"]: each for each in self.types[name].get("properties", ())}
        return found

    def required(self, struct: str) -> dict[str, Type]:
        """The properties of a struct that have no default."""
        every = self.properties(struct)
        return {name: each for name, each in every.items() if not each.get("optional")}

    def is_construct(self, name: str) -> bool:
        """Whether it is a class of constructs."""
        return CONSTRUCT in self.bases(name)

    def is_l1(self, name: str) -> bool:
        """Whether CloudFormation's schema, and no person, wrote the class."""
        return _L1 in self.bases(name) or name.rpartition(".")[2].startswith("Cfn")

    def is_deprecated(self, name: str) -> bool:
        """Whether the type should no longer be used."""
        return is_deprecated(self.types[name])

    def subclasses(self, name: str) -> list[str]:
        """The classes of which objects can be created and that are of a class or interface."""
        return self._implementations.get(name, [])

    def _by_interface(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for name, each in self.types.items():
            if each["kind"] != "class" or each.get("abstract") or "initializer" not in each:
                continue
            for base in {*self.bases(name), *self.interfaces(name)}:
                found.setdefault(base, []).append(name)
        return found

    def constructs_of(self, package: str) -> list[str]:
        """The constructs of a Python package that a person wrote and that are not deprecated."""
        assemblies = {
            name
            for name, assembly in self._assemblies.items()
            if _normal(assembly["distribution"]) == _normal(package)
        }
        own = [each for each in self.subclasses(CONSTRUCT) if each.split(".")[0] in assemblies]
        written = [each for each in own if not self.is_l1(each)]
        return sorted(each for each in written if not self.is_deprecated(each))

    def python_class(self, name: str) -> Any:
        """Import the Python class of a type."""
        assembly = name.split(".", maxsplit=1)[0]
        submodules = self._assemblies[assembly].get("submodules", {})
        module: str = self._assemblies[assembly]["targets"]["python"]["module"]
        rest = name.split(".")[1:]
        prefix = assembly
        while len(rest) > 1 and f"{prefix}.{rest[0]}" in submodules:
            prefix = f"{prefix}.{rest[0]}"
            target = submodules[prefix].get("targets", {}).get("python", {}).get("module")
            module = target or f"{module}.{_snake(rest[0])}"
            rest = rest[1:]
        found: Any = importlib.import_module(module)
        for part in rest:
            found = getattr(found, part)
        return found


def is_deprecated(declared: Type) -> bool:
    """Whether a type or a member should no longer be used."""
    docs = declared.get("docs", {})
    return "deprecated" in docs or docs.get("stability") == "deprecated"


def python_member(owner: Any, name: str) -> Any:
    """The static member of a Python class that has this name in the assembly."""
    if hasattr(owner, name):
        return getattr(owner, name)
    wanted = plain(name)
    for each in dir(owner):
        if plain(each) == wanted:
            return getattr(owner, each)
    raise AttributeError(f"{owner.__name__} has no {name}")


def plain(name: str) -> str:
    """A name without its case and underscores, which differ between Python and JSII."""
    return name.replace("_", "").lower()


def _normal(package: str) -> str:
    """The name of a package as PyPI compares it: PEP 503."""
    return re.sub(r"[-_.]+", "-", package).lower()


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).replace("-", "_").lower()


@cache
def installed() -> Library:
    """The libraries of this Python environment."""
    assemblies = {}
    for distribution in distributions():
        for file in distribution.files or ():
            if file.name.endswith(".jsii.tgz"):
                assembly = _read(Path(str(distribution.locate_file(file))))
                assembly["distribution"] = distribution.metadata["Name"]
                assemblies[assembly["name"]] = assembly
    return Library(assemblies)


def _read(package: Path) -> Type:
    with tarfile.open(package) as archive:
        found = _member(archive, "package/.jsii")
        assembly: Type = json.loads(found)
        if assembly["schema"] == "jsii/file-redirect":
            compressed = _member(archive, f"package/{assembly['filename']}")
            assembly = json.loads(gzip.decompress(compressed))
    return assembly


def _member(archive: tarfile.TarFile, name: str) -> bytes:
    content = archive.extractfile(name)
    assert content is not None, name
    return content.read()
