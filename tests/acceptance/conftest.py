"""What every part of ``make acceptance`` relies on."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module", autouse=True)
def budget(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a file that takes longer than its ``BUDGET_MINUTES``, so that the whole stays under 40 minutes."""
    minutes: float = request.module.BUDGET_MINUTES
    started = time.monotonic()
    yield
    took = (time.monotonic() - started) / 60
    assert took <= minutes, f"{request.module.__name__} took {took:.1f} minutes, its budget is {minutes}"
