"""The public names: what each package exports, and where a user reads of them."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from documentation.api import PACKAGES
from documentation.returned_types import returned_types
from workspace import PACKAGES as WORKSPACE

import constructs_triton

PROJECT = Path(__file__).resolve().parents[2]
_BLOCK = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
_INLINE = re.compile(r"`[^`\n]+`")


def _pages() -> Iterator[str]:
    """Yield the code of the README, the pages and the examples."""
    pages = [PROJECT / "README.md", *(PROJECT / "docs").rglob("*.md")]
    yield from (part for page in pages for part in _code(page.read_text()))
    for folder in ("docs", "examples"):
        yield from (path.read_text() for path in sorted((PROJECT / folder).rglob("*.py")))


def _code(page: str) -> Iterator[str]:
    yield from _BLOCK.findall(page)
    yield from _INLINE.findall(_BLOCK.sub("", page))


@cache
def _words() -> frozenset[str]:
    """The words of all code that users read; a dotted name is one word, and so are its parts."""
    dotted = {word for code in _pages() for word in re.findall(r"[A-Za-z_][\w.]*", code)}
    return frozenset(dotted | {part for word in dotted for part in word.split(".")})


@cache
def exported() -> dict[str, list[str]]:
    """The exported names of each public package: one from which a page or an example imports."""
    imports = {
        name
        for code in _pages()
        for name in re.findall(r"^ *from ([\w.]+) import", code, re.MULTILINE)
    }
    modules = {
        name: importlib.import_module(name) for name in imports if name.split(".")[0] in WORKSPACE
    }
    return {
        name: list(module.__all__)
        for name, module in sorted(modules.items())
        if hasattr(module, "__path__") and hasattr(module, "__all__")
    }


@pytest.mark.parametrize(
    ("package", "name"),
    [(package, name) for package, names in exported().items() for name in names],
)
def test_public_name_resolves_and_is_documented(package: str, name: str) -> None:
    """Every public name resolves and has a docstring."""
    assert getattr(importlib.import_module(package), name).__doc__


def test_names_resolve_from_the_root_that_users_write() -> None:
    """The property types of the constructs can be imported from the root."""
    expected = {
        "AlarmThresholds",
        "EndpointOptions",
        "TritonEndpoint",
        "TritonVariant",
        "TritonEnvironment",
    }
    assert expected <= set(constructs_triton.__all__)


def test_unknown_name_is_an_attribute_error() -> None:
    """An unknown name raises AttributeError with the name."""
    with pytest.raises(AttributeError, match="TritonEndpint"):
        getattr(constructs_triton, "TritonEndpint")  # noqa: B009 - a typo is the subject


@pytest.mark.parametrize("package", exported())
def test_every_exported_name_is_used_in_a_page(package: str) -> None:
    """The code of a page or of an example contains each exported name."""
    assert [name for name in exported()[package] if name not in _words()] == []


#: The package that defines what a public package returns, where it is another one.
SOURCES = {"constructs_triton": "constructs_triton.cdk"}


@pytest.mark.parametrize(
    "package",
    ["cdk_rehearse", "constructs_triton", "constructs_triton_client", "triton_model_check"],
)
def test_what_users_hold_has_a_public_name(package: str) -> None:
    """A user can annotate what a public function returns.

    Constructs that exist already have the interface of those that an app creates.
    """
    module = importlib.import_module(package)
    names = {name: getattr(module, name) for name in module.__all__}
    found = returned_types(names, SOURCES.get(package, package), set(names))
    held = [name for name, each in found.items() if each.origin.startswith("Returned by")]
    assert [name for name in held if not name.startswith("Imported")] == []


def test_reference_has_the_public_packages() -> None:
    """The reference has a page for each package from which a page or an example imports."""
    modules = {"constructs_triton_core.errors"}
    assert {*exported()} - {"constructs_triton"} == {*PACKAGES.values()} - modules


@pytest.mark.parametrize("package", exported())
def test_no_name_is_that_of_its_module(package: str) -> None:
    """A name that is imported late is not hidden by a module of the same name."""
    folder = Path(importlib.import_module(package).__file__ or "").parent
    modules = {path.name.removesuffix(".py") for path in folder.iterdir()}
    assert not {*exported()[package]} & modules
