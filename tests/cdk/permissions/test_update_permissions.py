"""No update takes a permission away from what is still serving: old grants end in the cleanup phase."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from itertools import permutations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from app_changes import CHANGES, changed
from example_apps import CAPABILITIES, run_app
from stack_update import grants_of_serving_roles, lost_grants

pytestmark = pytest.mark.xdist_group("update_permissions")

UPDATES = [
    *((change, None) for change in CHANGES),
    *((None, change) for change in CHANGES),
    *permutations(("image in ECR", "image in another ECR repository")),
]


@cache
def templates(name: str, change: str | None) -> Mapping[str, Any]:
    with TemporaryDirectory() as directory, changed(change, Path(directory)):
        app = run_app(name, Path(directory) / "cdk.out", is_validated=False)
        return {stack.display_name: stack.template for stack in app.synth().stacks_recursively}


def title(update: tuple[str | None, str | None]) -> str:
    return f"{update[0] or 'example'} -> {update[1] or 'example'}".replace(" ", "_")


@pytest.mark.parametrize("update", UPDATES, ids=title)
@pytest.mark.parametrize("name", CAPABILITIES)
def test_update_keeps_every_grant_until_cleanup(name: str, update: tuple[str | None, str | None]) -> None:
    """What a serving role could do before is granted until the update has succeeded, without exceptions."""
    before, after = (templates(name, change) for change in update)
    lost = {
        stack: lost_grants(template, after[stack]) for stack, template in before.items() if stack in after
    }
    assert {stack: grants for stack, grants in lost.items() if grants} == {}


@pytest.mark.parametrize("change", CHANGES)
def test_each_change_concerns_the_permissions_of_an_example(change: str) -> None:
    """Each change changes the grants of some example, so that the test above is about something."""
    assert [name for name in CAPABILITIES if all_grants(name, None) != all_grants(name, change)]


def all_grants(name: str, change: str | None) -> list[Any]:
    return [grants_of_serving_roles(each) for each in templates(name, change).values()]
