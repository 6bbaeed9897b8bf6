"""A separate cache for a test of packing."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache for each test, so that none uses the developer's cache."""
    directory = tmp_path / "cache"
    monkeypatch.setenv("CONSTRUCTS_TRITON_CACHE_DIR", str(directory))
    return directory
