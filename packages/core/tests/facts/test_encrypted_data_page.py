"""The page of encrypted data."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

from constructs_triton_core.facts.encrypted_data import ENCRYPTED_DATA

PAGE = Path(__file__).parents[4] / "docs" / "reference" / "encrypted_data.md"


def test_page_has_the_list() -> None:
    """Each kind of data is one row, with all that the list has."""
    rows = [
        "| " + " | ".join(getattr(each, member.name) for member in fields(each)) + " |"
        for each in ENCRYPTED_DATA.values()
    ]
    text = PAGE.read_text()
    table = text[text.index("| data |") :].partition("\n\n")[0].splitlines()
    assert table[2:] == rows
