"""The states of the stack of the tests of models as files."""

from __future__ import annotations

from dataclasses import dataclass

STACK = "Files"
WEIGHTS_BYTES = 9_000_000


@dataclass(frozen=True)
class State:
    """The first byte of the large file, the content of the small one,
    and whether the last resource fails.
    """

    weight: int = 5
    label: int = 1
    is_broken: bool = False


STATES = {
    "first": State(),
    "changed": State(label=2),
    "broken": State(label=3, weight=7, is_broken=True),
}
