"""A pytest plugin that records which test executes a line, and how long each test takes."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import coverage
import pytest

#: What coverage calls the context of subprocesses, see ``coveragerc``.
_CONTEXT = "MUTANTS_CONTEXT"
_tests: dict[str, dict[str, Any]] = {}
_fixtures: dict[str, float] = {}


def pytest_runtest_protocol(item: pytest.Item) -> None:
    """Attribute what runs from now on to this test."""
    name = _name(item)
    _tests[name] = {
        "seconds": 0.0,
        "passed": True,
        "e2e": name.startswith("tests/e2e/") or item.get_closest_marker("e2e") is not None,
    }
    _switch(name)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
) -> Iterator[None]:
    """Attribute what a shared fixture runs to all tests of the file."""
    if fixturedef.scope == "function":
        return (yield)
    path, before, started = request.node.nodeid.split("::")[0], os.environ.get(_CONTEXT, ""), time.monotonic()
    _switch(path or before.split("::")[0])
    try:
        return (yield)
    finally:
        _fixtures[path] = _fixtures.get(path, 0.0) + time.monotonic() - started
        _switch(before)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Add up the seconds of setup, call and teardown."""
    report: Any = yield
    entry = _tests[_name(item)]
    entry["seconds"] += report.duration
    entry["passed"] &= report.passed
    return report  # type: ignore[no-any-return]


def pytest_sessionfinish() -> None:
    """Write what this process recorded."""
    if _tests:
        path = Path(os.environ["MUTANTS_FOLDER"]) / f"tests-{os.getpid()}.json"
        path.write_text(json.dumps({"tests": _tests, "fixtures": _fixtures}))


def _name(item: pytest.Item) -> str:
    # pytest-xdist appends "@" and the group's name.
    return item.nodeid.rsplit("@", 1)[0] if item.get_closest_marker("xdist_group") else item.nodeid


def _switch(context: str) -> None:
    os.environ[_CONTEXT] = context
    if measurement := coverage.Coverage.current():
        measurement.switch_context(context)
