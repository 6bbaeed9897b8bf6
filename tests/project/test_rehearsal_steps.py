"""The way of a rehearsal in CONTRIBUTING.md."""

from __future__ import annotations

import re
from functools import reduce
from importlib import import_module

import pytest
from workspace import PROJECT

_TITLE = "## How a rehearsal goes from OLD and NEW to the verdict\n"
_STEP = re.compile(r"^\| (\d+) \| `[^`]+:[^`]+` \| .+ \|$", re.MULTILINE)
_FUNCTION = re.compile(r"`([a-z_.]+):([A-Za-z_.]+)`")


def _section() -> str:
    _, _, rest = (PROJECT / "CONTRIBUTING.md").read_text().partition(_TITLE)
    return rest.partition("\n## ")[0]


def test_a_rehearsal_takes_eight_steps() -> None:
    """The table has eight steps, and each begins with a function."""
    assert _STEP.findall(_section()) == [str(number) for number in range(1, 9)]


@pytest.mark.parametrize(("module", "name"), _FUNCTION.findall(_section()))
def test_each_step_names_a_function_that_exists(module: str, name: str) -> None:
    """A module of a step has the function or method that the table names."""
    found = reduce(getattr, name.split("."), import_module(f"cdk_rehearse.{module}"))
    assert callable(found)
