"""The capabilities of the comparison: every row has a status, and evidence that exists."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest
from documentation.comparison import features

import constructs_triton

PROJECT = Path(__file__).resolve().parents[2]
ROWS = [*features().values()]
WITH_TESTS, WITH_REASON = {"yes", "partly"}, {"declined", "not yet", "not meaningful"}


@cache
def _functions(file: str) -> frozenset[str]:
    tree = ast.parse((PROJECT / file).read_text())
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def _exists(reference: str) -> bool:
    file, _, function = reference.partition("::")
    return (PROJECT / file).is_file() and (not function or function in _functions(file))


def test_every_capability_has_a_row() -> None:
    """The rows are numbered without gaps."""
    assert [int(row["number"]) for row in ROWS] == list(range(1, len(ROWS) + 1))
    assert len(ROWS) == 117


@pytest.mark.parametrize("row", ROWS, ids=[row["number"] for row in ROWS])
def test_row_has_evidence_or_a_reason(row: dict[str, str]) -> None:
    """A supported capability names tests that exist, or says so in part;
    any other row has a reason.
    """
    references = row["tests"].split()
    assert [each for each in references if not _exists(each)] == []
    assert row["status"] in WITH_TESTS | WITH_REASON
    assert references or row["status"] != "yes"
    assert row["limits"] or row["status"] not in WITH_REASON | {"partly"}


def test_public_names_of_the_page_exist() -> None:
    """A class that the page names is public, and has the method that the page names."""
    names = {name for row in ROWS for name in re.findall(r"`([A-Z]\w+(?:\.\w+)?)`", row["limits"])}
    public = {name for name in names if hasattr(constructs_triton, name.partition(".")[0])}
    for name in public:
        owner, _, attribute = name.partition(".")
        assert not attribute or hasattr(getattr(constructs_triton, owner), attribute)
    assert "ModelSource.from_archive_prefix" in public
