"""The pages of the checker: without SageMaker at their beginning, with numbers that are counted."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from documentation.agreement import agreement
from members import PROJECT

PAGES = sorted((PROJECT / "docs" / "checker").glob("*.md"))
README = PROJECT / "packages" / "check" / "README.md"
WIDEST = 84


def name(page: Path) -> str:
    return page.name


def _text(page: Path) -> str:
    """Return a page without the commands that write its blocks."""
    return re.sub(r"<!-- \[\[\[.*?\]\]\] -->", "", page.read_text(), flags=re.DOTALL)


@pytest.mark.parametrize("page", [*PAGES, README], ids=name)
def test_code_fits_on_a_phone_held_sideways(page: Path) -> None:
    """No line of a block of code has to be scrolled on a narrow screen."""
    blocks = re.findall(r"^```.*?^```$", _text(page), flags=re.DOTALL | re.MULTILINE)
    assert [line for block in blocks for line in block.splitlines() if len(line) > WIDEST] == []


def test_readme_begins_without_sagemaker() -> None:
    """The first third of the README does not need to know SageMaker."""
    text = _text(README)
    assert "SageMaker" not in text[: len(text) // 3]


def test_agreement_is_counted() -> None:
    """The table of the page is what the ledger of all findings says."""
    page = (PROJECT / "docs" / "checker" / "agreement.md").read_text()
    is_current = agreement().strip() in page
    assert is_current, "docs/checker/agreement.md is old: run `make docs-update`"
