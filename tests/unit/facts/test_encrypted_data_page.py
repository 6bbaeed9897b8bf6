"""The page of encrypted data."""

from __future__ import annotations

from operator import attrgetter
from pathlib import Path

from constructs_triton.facts.encrypted_data import ENCRYPTED_DATA

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "encrypted_data.md"


def test_page_has_the_list() -> None:
    """Each kind of data has a row with key, readers, writers, lifetime and the effect of a key change."""
    columns = attrgetter("name", "key", "readers", "writers", "lifetime", "key_change")
    rows = [f"| {' | '.join(columns(each))} |" for each in ENCRYPTED_DATA.values()]
    text = PAGE.read_text()
    table = text[text.index("| data |") :].partition("\n\n")[0].splitlines()
    assert table[2:] == rows
