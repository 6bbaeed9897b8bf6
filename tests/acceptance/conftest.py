"""What all slow tests have in common: their order, their budgets, and the distributions that they install."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from installed_wheels import build


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files that take longest, so that none of them runs alone at the end."""
    items.sort(key=_budget_of, reverse=True)
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.e2e)


def _budget_of(item: pytest.Item) -> float:
    assert isinstance(item, pytest.Function)
    return float(getattr(item.module, "BUDGET_MINUTES", 0))


@pytest.fixture(scope="module", autouse=True)
def budget(request: pytest.FixtureRequest) -> Iterator[None]:
    """Warn about a file that takes longer than its ``BUDGET_MINUTES``."""
    minutes: float = getattr(request.module, "BUDGET_MINUTES", float("inf"))
    started = time.monotonic()
    yield
    took = (time.monotonic() - started) / 60
    if took > minutes:  # no failure, because a slow machine is no fault of the code
        warnings.warn(
            f"{request.module.__name__} took {took:.1f} minutes, its budget is {minutes}", stacklevel=1
        )


@pytest.fixture(scope="session")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the source distributions, and the wheels that are built from them as for a release."""
    folder = tmp_path_factory.mktemp("dist")
    build(folder)
    return folder
