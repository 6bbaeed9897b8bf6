"""What most tests of the constructs use, and the process that runs these tests."""

from __future__ import annotations

from pathlib import Path

import aws_cdk as cdk
import pytest
from cdk_apps import make_stack, write_repository


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the tests of this folder in two processes: each loads the CDK's validation rules for seconds."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents and not item.get_closest_marker("xdist_group"):
            is_endpoint = here / "endpoint" in item.path.parents
            item.add_marker(pytest.mark.xdist_group("endpoints" if is_endpoint else "examples"))


@pytest.fixture
def stack() -> cdk.Stack:
    return make_stack()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The folder of an ensemble ``pipeline`` of ``scale`` and ``shift``, and of a model ``other``."""
    return write_repository(tmp_path / "models")
