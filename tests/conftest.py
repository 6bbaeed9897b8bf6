"""The environment of all tests."""

from __future__ import annotations

import copy
import functools
import gc
import os
import shutil
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import botocore.session
import pytest
from botocore.loaders import Loader

if TYPE_CHECKING:
    from cdk_rehearse import SimulatedAccount

# jsii prints a banner about Node's age on stderr; pytest would show it beside every failure.
os.environ.setdefault("JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION", "18,20")
os.environ.setdefault("NODE_NO_WARNINGS", "1")
# The tests do not write to the developer's cache.
os.environ["CONSTRUCTS_TRITON_CACHE_DIR"] = tempfile.mkdtemp(prefix="constructs-triton-tests-")
# No test can reach an AWS account, even if the developer's shell has credentials.
os.environ.update(
    AWS_ACCESS_KEY_ID="testing",
    AWS_SECRET_ACCESS_KEY="testing",
    AWS_DEFAULT_REGION="us-east-1",
    AWS_CONFIG_FILE=os.devnull,
    AWS_SHARED_CREDENTIALS_FILE=os.devnull,
    AWS_EC2_METADATA_DISABLED="true",
)

PROJECT = Path(__file__).resolve().parent.parent


# Modules and tests stay until the end: searching them for garbage takes a quarter of the time of collection.
gc.disable()


_first_loader = functools.cache(botocore.session.create_loader)


def _loader_with_shared_cache(search_path_string: str | None = None) -> Loader:
    """A loader with search paths for its own session, and the service models that another has parsed."""
    loader = copy.copy(_first_loader(search_path_string))
    vars(loader)["_search_paths"] = list(loader.search_paths)  # boto3 adds to it
    return loader


# Each session parses the models of its services again: without a shared cache, a third of the time of most
# tests that call AWS or the simulated account.
botocore.session.create_loader = _loader_with_shared_cache


def pytest_collection_finish() -> None:
    """From here on search for garbage, but not in what collection has made."""
    gc.freeze()
    gc.enable()


def pytest_unconfigure() -> None:
    """Remove the cache that this process created."""
    shutil.rmtree(os.environ["CONSTRUCTS_TRITON_CACHE_DIR"], ignore_errors=True)


@pytest.fixture(scope="module")
def budget(request: pytest.FixtureRequest) -> Iterator[None]:
    """Warn about a file of ``tests/acceptance`` that takes longer than its ``BUDGET_MINUTES``."""
    minutes: float = request.module.BUDGET_MINUTES
    started = time.monotonic()
    yield
    took = (time.monotonic() - started) / 60
    if took > minutes:  # no failure, because a slow machine is no fault of the code
        warnings.warn(
            f"{request.module.__name__} took {took:.1f} minutes, its budget is {minutes}", stacklevel=1
        )


@pytest.fixture(scope="module")
def aws() -> Iterator[SimulatedAccount]:
    """A simulated account with the bucket of assets. The tests of a module share it."""
    from cdk_rehearse import SimulatedAccount

    with SimulatedAccount() as account:
        account.bootstrap()
        yield account
