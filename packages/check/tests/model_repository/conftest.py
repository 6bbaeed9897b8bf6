"""Every test of packing has a cache of its own."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def every_test_has_its_cache(own_cache: Path) -> Path:
    """Use a new cache in each test."""
    return own_cache
