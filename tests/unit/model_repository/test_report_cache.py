"""What is remembered of a repository."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from constructs_triton.model_repository import report_cache
from constructs_triton.model_repository.report_cache import ReportCache


def test_value_is_found_by_another_run(tmp_path: Path) -> None:
    """What one run keeps, the next finds under the same key, and nothing under another."""
    ReportCache(tmp_path).add("key", {"errors": [], "warnings": ["a"]})
    assert ReportCache(tmp_path).find("key") == {"errors": [], "warnings": ["a"]}
    assert ReportCache(tmp_path).find("other") is None


def test_least_recently_found_goes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over the bound the value goes that was not asked for longest, not the one that was kept first."""
    monkeypatch.setattr(report_cache, "_MOST_REPORTS", 2)
    cache = ReportCache(tmp_path)
    for age, key in enumerate(("b", "a")):
        cache.add(key, key)
        os.utime(tmp_path / f"reports/{key}.json", (1_000_000 - age, 1_000_000 - age))
    assert cache.find("a") == "a"
    cache.add("c", "c")
    assert [cache.find(key) for key in "abc"] == ["a", None, "c"]


def test_spoiled_value_is_not_trusted_and_gets_replaced(tmp_path: Path) -> None:
    """A file that is no JSON, as a full disk leaves it, is as if it were not there."""
    cache = ReportCache(tmp_path)
    cache.add("key", [1])
    (tmp_path / "reports/key.json").write_bytes(b'{"errors": [')
    assert cache.find("key") is None
    cache.add("key", [2])
    assert cache.find("key") == [2]


def test_cache_that_cannot_be_written_knows_nothing(tmp_path: Path) -> None:
    """Where the cache's place is taken by a file there is no error and no memory."""
    (tmp_path / "reports").write_bytes(b"")
    cache = ReportCache(tmp_path)
    cache.add("key", 1)
    assert cache.find("key") is None


def test_runs_at_once_leave_whole_values_alone(tmp_path: Path) -> None:
    """Writers of one key, each with a cache of its own, leave one whole value and no draft."""
    value = list(range(2_000))
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: ReportCache(tmp_path).add("key", value), range(24)))
    assert ReportCache(tmp_path).find("key") == value
    assert [path.name for path in (tmp_path / "reports").iterdir()] == ["key.json"]
