"""pyright reports users' mistakes in the properties of endpoints, as mypy does in ``tests/typing``.

It parses the CDK's bindings each time, which takes 20 seconds.
"""

from __future__ import annotations

import pytest
from type_checkers import marked_lines, pyright_errors

BUDGET_MINUTES = 1
pytestmark = pytest.mark.usefixtures("budget")


def test_pyright_reports_exactly_the_mistakes() -> None:
    """It accepts the app without mistakes, and reports every marked line of the other."""
    assert pyright_errors() == marked_lines()
