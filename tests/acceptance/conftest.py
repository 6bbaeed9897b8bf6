"""The order of the slow tests."""

from __future__ import annotations

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files that take longest, so that none of them runs alone at the end."""
    items.sort(key=_budget, reverse=True)


def _budget(item: pytest.Item) -> float:
    assert isinstance(item, pytest.Function)
    return float(getattr(item.module, "BUDGET_MINUTES", 0))
