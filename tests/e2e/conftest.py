"""What several files of end-to-end tests share."""

from __future__ import annotations

from pathlib import Path

import pytest
from guard_app import synthesize_states


@pytest.fixture(scope="session")
def guard_assemblies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The scaling guard's stack in each of its states; its tests are in one group and share it."""
    return synthesize_states(tmp_path_factory.mktemp("guard"))
