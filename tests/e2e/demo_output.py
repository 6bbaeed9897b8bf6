"""Reads what ``make demo`` prints."""

from __future__ import annotations

import re

#: Columns of a terminal in which no line is wrapped.
WIDTH = 84


def assert_steps_in_order(printed: str, *steps: str) -> None:
    """The output has these steps in this order with their seconds, no JSON and no long lines."""
    assert "{" not in printed
    assert max(len(line) for line in printed.splitlines()) <= WIDTH
    found = re.findall(r"^\d\. (\w+) .*\n   done in \d+\.\d s$", printed, re.MULTILINE)
    assert found == list(steps)


def accuracy_of(printed: str) -> float:
    """Return the accuracy in percent."""
    (accuracy,) = re.findall(r"^Accuracy: (\d+\.\d)% ", printed, re.MULTILINE)
    return float(accuracy)
