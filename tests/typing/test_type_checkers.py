"""mypy reports users' mistakes in the properties of endpoints; pyright does so in ``tests/acceptance``."""

from __future__ import annotations

from type_checkers import marked_lines, mypy_errors


def test_mypy_reports_exactly_the_mistakes() -> None:
    """It accepts the app without mistakes, and reports every marked line of the other."""
    assert len(marked_lines()) == 11
    assert mypy_errors() == marked_lines()
