"""The documentation site builds without a warning, and the check of its links finds dead ones."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from documentation.links import dead_links

BUDGET_MINUTES = 3
pytestmark = pytest.mark.usefixtures("budget")

PROJECT = Path(__file__).resolve().parents[2]


def test_site_builds_without_a_warning() -> None:
    """``make docs`` succeeds, and the search index contains the pages."""
    built = subprocess.run(
        [sys.executable, "-m", "documentation"],
        cwd=PROJECT / "tools",
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    assert "guides/scaling.html" in (PROJECT / "build" / "site" / "search.json").read_text()


def test_shown_output_is_current() -> None:
    """Each block of a page shows what its command prints today; ``make docs-update`` writes it."""
    checked = subprocess.run(
        [sys.executable, "-m", "documentation.update", "--check"],
        cwd=PROJECT / "tools",
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_dead_links_are_found(tmp_path: Path) -> None:
    """A link to a missing page and one to a missing heading are dead; other sites are not asked."""
    (tmp_path / "a.html").write_text('<h2 id="there"></h2><a href="https://example.org">x</a>')
    (tmp_path / "b.html").write_text(
        '<a href="a.html#there">1</a><a href="a.html#not">2</a><img src="c.png">'
    )
    assert dead_links(tmp_path) == ["b.html: a.html#not", "b.html: c.png"]
