"""Which cases the long tables of tests run: one in three, or all with ``EVERYTHING=1``.

``PART`` is 0, 1 or 2, and chooses the third. The daily job of CI runs everything.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TypeVar

import pytest
from deploy_twice import NOT_DEPLOYED, project_apps
from programs import PROJECT

__all__ = ["APPS", "PART", "PARTS", "daily", "part"]

Case = TypeVar("Case")

PARTS = 1 if os.environ.get("EVERYTHING") == "1" else 3
PART = int(os.environ.get("PART", "0")) % PARTS


def part(cases: Iterable[Case]) -> list[Case]:
    """The cases to run, in their order."""
    return list(cases)[PART::PARTS]


#: For what takes minutes and installs frameworks.
daily = pytest.mark.skipif(PARTS > 1, reason="takes minutes; EVERYTHING=1 runs it")

#: The names of the project's apps to run.
APPS = part(name for name in project_apps(PROJECT) if name not in NOT_DEPLOYED)
