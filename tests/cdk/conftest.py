"""What most tests of the constructs use, and the process that runs these tests."""

from __future__ import annotations

import os
from pathlib import Path

import aws_cdk as cdk
import pytest
from cdk_apps import make_stack, write_repository


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the tests of this folder in two processes:
    each loads the CDK's validation rules for seconds.
    """
    here = f"{Path(__file__).parent}{os.sep}"
    for item in items:
        path = str(item.path)  # there are thousands of items, and strings are compared fast
        if path.startswith(here) and not item.get_closest_marker("xdist_group"):
            is_endpoint = path.startswith(f"{here}endpoint{os.sep}")
            item.add_marker(pytest.mark.xdist_group("endpoints" if is_endpoint else "examples"))


@pytest.fixture
def stack() -> cdk.Stack:
    return make_stack()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The folder of an ensemble ``pipeline`` of ``scale`` and ``shift``,
    and of a model ``other``.
    """
    return write_repository(tmp_path / "models")
