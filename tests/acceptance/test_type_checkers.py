"""mypy and pyright report users' mistakes in the properties of endpoints.

Both parse the CDK's bindings, which takes 20 seconds.
"""

from __future__ import annotations

from type_checkers import marked_lines, mypy_errors, pyright_errors

BUDGET_MINUTES = 2


def test_mypy_reports_exactly_the_mistakes() -> None:
    """It accepts the app without mistakes, and reports every marked line of the other."""
    assert len(marked_lines()) == 8
    assert mypy_errors() == marked_lines()


def test_pyright_reports_exactly_the_mistakes() -> None:
    """It accepts the app without mistakes, and reports every marked line of the other."""
    assert pyright_errors() == marked_lines()
