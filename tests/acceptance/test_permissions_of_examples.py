"""No update of the examples that ``tests/cdk`` leaves out takes a permission
away from what is serving.
"""

from __future__ import annotations

import pytest
from example_updates import OTHERS, UPDATES, grants_lost_by, title
from parts import part

#: The plans of this example fit one version of TensorRT, so one image.
ONE_IMAGE = "compiled_plans"
CASES = [
    (name, update)
    for name in part(OTHERS)
    for update in UPDATES
    if name != ONE_IMAGE or "image version" not in update
]
BUDGET_MINUTES = 1


@pytest.mark.parametrize(
    ("name", "update"), CASES, ids=lambda each: each if isinstance(each, str) else title(each)
)
def test_update_keeps_every_grant_until_cleanup(
    name: str, update: tuple[str | None, str | None]
) -> None:
    """What a serving role could do before is granted until the update has succeeded,
    without exceptions.
    """
    assert grants_lost_by(name, update) == {}
