"""The stack that most tests of the constructs use, and the process that runs these tests."""

from __future__ import annotations

from pathlib import Path

import aws_cdk as cdk
import pytest
from cdk_apps import make_stack


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the tests of this folder in one process: each loads the CDK's validation rules in five seconds."""
    for item in items:
        if Path(__file__).parent in item.path.parents and not item.get_closest_marker("xdist_group"):
            item.add_marker(pytest.mark.xdist_group("examples"))


@pytest.fixture
def stack() -> cdk.Stack:
    return make_stack()
