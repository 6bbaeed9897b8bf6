"""The recorded cases of a server, which the module of the tests names as ``ORACLE``."""

from __future__ import annotations

from pathlib import Path

import pytest
from backports import tarfile


@pytest.fixture(scope="module")
def cases(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Unpack the repositories."""
    oracle: Path = request.module.ORACLE
    directory = tmp_path_factory.mktemp(oracle.name)
    (packed,) = oracle.glob("cases.tar.*")
    with tarfile.open(packed) as archive:
        archive.extractall(directory, filter="data")
    return directory
