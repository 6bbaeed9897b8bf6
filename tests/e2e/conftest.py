"""The run that several modules share. Their tests are in the group ``local_endpoints``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from constructs_triton_tools.local import LocalEndpoint


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalEndpoint]:
    """One run of the endpoints of ``shared_endpoints``.

    Nothing that a test sends changes an answer.
    """
    from shared_endpoints import shared_assembly

    from constructs_triton_tools.local import LocalEndpoint

    with LocalEndpoint.from_assembly(shared_assembly(tmp_path_factory.mktemp("shared"))) as local:
        yield local
