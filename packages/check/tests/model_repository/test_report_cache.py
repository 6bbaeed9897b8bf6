"""The cache of the results of checks."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from triton_model_check.model_repository import cached_repository
from triton_model_check.model_repository.cached_repository import ReportCache


def test_value_is_found_by_another_run(tmp_path: Path) -> None:
    """A value is found by the next run under its key, and under no other key."""
    ReportCache(tmp_path).add("key", {"errors": [], "warnings": ["a"]})
    assert ReportCache(tmp_path).find("key") == {"errors": [], "warnings": ["a"]}
    assert ReportCache(tmp_path).find("other") is None


def test_least_recently_used_value_is_deleted_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Above the limit, the value is deleted that was last used longest ago, not the one added first."""
    monkeypatch.setattr(cached_repository, "_MOST_REPORTS", 2)
    cache = ReportCache(tmp_path)
    for age, key in enumerate(("b", "a")):
        cache.add(key, key)
        os.utime(tmp_path / f"reports/{key}.json", (1_000_000 - age, 1_000_000 - age))
    assert cache.find("a") == "a"
    cache.add("c", "c")
    assert [cache.find(key) for key in "abc"] == ["a", None, "c"]


def test_cache_that_cannot_be_written_is_empty(tmp_path: Path) -> None:
    """If the cache directory cannot be created, nothing is kept, and there is no error."""
    (tmp_path / "reports").write_bytes(b"")
    cache = ReportCache(tmp_path)
    cache.add("key", 1)
    assert cache.find("key") is None


def test_parallel_runs_leave_one_complete_value(tmp_path: Path) -> None:
    """Several writers of one key leave one complete value and no temporary files."""
    value = list(range(2_000))
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: ReportCache(tmp_path).add("key", value), range(24)))
    assert ReportCache(tmp_path).find("key") == value
    assert [path.name for path in (tmp_path / "reports").iterdir()] == ["key.json"]
