"""The order of the slow tests, and the distributions that several of them install."""

from __future__ import annotations

from pathlib import Path

import pytest
from installed_wheels import build


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files that take longest, so that none of them runs alone at the end."""
    items.sort(key=_budget, reverse=True)


def _budget(item: pytest.Item) -> float:
    assert isinstance(item, pytest.Function)
    return float(getattr(item.module, "BUDGET_MINUTES", 0))


@pytest.fixture(scope="session")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the source distributions, and the wheels that are built from them as for a release."""
    folder = tmp_path_factory.mktemp("dist")
    build(folder)
    return folder
