"""No update takes a permission away from what is still serving:
old grants end in the cleanup phase.
"""

from __future__ import annotations

from typing import Any

import pytest
from app_changes import CHANGES
from example_updates import FULLEST, UPDATES, grants_lost_by, templates, title
from stack_update import grants_of_serving_roles

pytestmark = pytest.mark.xdist_group("update_permissions")


@pytest.mark.parametrize("update", UPDATES, ids=title)
@pytest.mark.parametrize("name", FULLEST)
def test_update_keeps_every_grant_until_cleanup(
    name: str, update: tuple[str | None, str | None]
) -> None:
    """What a serving role could do before is granted until the update has succeeded,
    without exceptions.
    """
    assert grants_lost_by(name, update) == {}


@pytest.mark.parametrize("change", CHANGES)
def test_each_change_concerns_the_permissions_of_an_example(change: str) -> None:
    """Each change changes the grants of some example, so that the test above is about something."""
    assert [name for name in FULLEST if all_grants(name, None) != all_grants(name, change)]


def all_grants(name: str, change: str | None) -> list[Any]:
    return [grants_of_serving_roles(each) for each in templates(name, change).values()]
