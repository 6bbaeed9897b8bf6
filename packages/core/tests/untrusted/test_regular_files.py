"""What the project writes for other programs to read."""

from __future__ import annotations

import pytest

from constructs_triton_core.untrusted.regular_files import csv_text


@pytest.mark.parametrize("cell", ["=cmd|' /C calc'!A0", "+1+1", "-2+3", "@SUM(A1)", "\t=1", "\r=1"])
def test_no_cell_is_a_formula(cell: str) -> None:
    """A spreadsheet shows a name of others as text."""
    assert csv_text([[cell]]).strip('"\n').startswith("'")


@pytest.mark.parametrize("cell", ["-1.5", "+2", "-1e3", "ml.g5.xlarge", "a=b", "", -1.5, None])
def test_numbers_and_other_text_stay_as_they_are(cell: object) -> None:
    """Programs that read the file get the value."""
    assert csv_text([["name", cell]]) == f"name,{'' if cell is None else cell}\n"
