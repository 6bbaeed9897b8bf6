"""What all slow tests have in common: their order, their budgets, and what several files need.

Synthesizing all examples and building the distributions takes long, so one worker does it for all.
"""

from __future__ import annotations

import fcntl
import os
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from deploy_twice import synthesize_apps
from installed_wheels import build
from parts import APPS

# The CDK's validation takes two thirds of a synth; `make test` validates app.py and the examples.
os.environ["CDK_VALIDATION"] = "false"


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
            f"{request.module.__name__} took {took:.1f} minutes, its budget is {minutes}",
            stacklevel=1,
        )


def _shared(factory: pytest.TempPathFactory, name: str, fill: Callable[[Path], object]) -> Path:
    """Return a folder that the first worker fills; the others wait until it has."""
    base = factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / name
    with folder.with_suffix(".lock").open("a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.seek(0)
        if not lock.read():
            folder.mkdir()
            fill(folder)
            lock.write("filled")
    return folder


@pytest.fixture(scope="session")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the source distributions, and the wheels that are built from
    them as for a release.
    """
    return _shared(tmp_path_factory, "dist", build)


@pytest.fixture(scope="session")
def example_apps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The deployable apps of the project, or this run's part of them, synthesized ``before`` and
    ``after`` a change of every model.
    """
    return _shared(tmp_path_factory, "example_apps", _synthesize_twice)


def _synthesize_twice(folder: Path) -> None:
    # Edits are tried with app.py, and the bucket of another team contains an example's archive.
    names = sorted({*APPS, "demo", *(["ensemble"] if "existing_bucket" in APPS else [])})
    synthesize_apps(folder / "before", names)
    synthesize_apps(folder / "after", names, changes_models=True)
