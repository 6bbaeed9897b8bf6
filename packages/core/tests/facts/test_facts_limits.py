"""The tables of limits and of encrypted data."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

from workspace import PACKAGES

from constructs_triton_core.facts import limits
from constructs_triton_core.facts.encrypted_data import ENCRYPTED_DATA

PAGE = Path(__file__).parents[4] / "docs" / "reference" / "encrypted_data.md"


def names_used(path: Path) -> Iterator[str]:
    """Names that a module imports from ``facts.limits`` or reads as ``limits.NAME``."""
    text = path.read_text()
    for node in ast.walk(ast.parse(text if "limits" in text else "")):
        if isinstance(node, ast.ImportFrom) and node.module == limits.__name__:
            yield from (alias.name for alias in node.names)
        elif (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id in ("limits", "facts_limits")
        ):
            yield node.attr


def test_every_limit_is_used() -> None:
    """Each constant of the table is used by a module."""
    modules = (path for each in PACKAGES.values() for path in each.modules)
    used = {name for path in modules for name in names_used(path)}
    constants = {name for name in vars(limits) if name.isupper() and not name.startswith("_")}
    assert constants - used == set()


def test_page_has_all_encrypted_data() -> None:
    """Each kind of encrypted data is one row of its page, with all that the list has."""
    rows = [
        "| " + " | ".join(getattr(each, member.name) for member in fields(each)) + " |"
        for each in ENCRYPTED_DATA.values()
    ]
    text = PAGE.read_text()
    table = text[text.index("| data |") :].partition("\n\n")[0].splitlines()
    assert table[2:] == rows
