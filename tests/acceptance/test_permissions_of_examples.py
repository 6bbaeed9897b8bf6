"""No update of the examples that ``tests/cdk`` leaves out takes a permission away from what is serving."""

from __future__ import annotations

import pytest
from example_updates import OTHERS, UPDATES, grants_lost_by, title

BUDGET_MINUTES = 1
pytestmark = [pytest.mark.usefixtures("budget")]


@pytest.mark.parametrize("update", UPDATES, ids=title)
@pytest.mark.parametrize("name", OTHERS)
def test_update_keeps_every_grant_until_cleanup(name: str, update: tuple[str | None, str | None]) -> None:
    """What a serving role could do before is granted until the update has succeeded, without exceptions."""
    assert grants_lost_by(name, update) == {}
