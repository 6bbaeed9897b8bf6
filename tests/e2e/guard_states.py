"""The states in which the scaling guard's stack is deployed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

STACK = "Guarded"
SMALL, LARGE = "ml.g5.xlarge", "ml.g5.12xlarge"


@dataclass(frozen=True)
class State:
    """The differences; ``fails`` says when a resource fails: before, between or after."""

    instance_types: Mapping[str, str] = field(
        default_factory=lambda: {"blue": SMALL, "green": SMALL}
    )
    scaled: tuple[str, ...] = ("blue", "green")
    has_guard: bool = True
    fails: str | None = None


_SMALL = State()
_LARGE = replace(_SMALL, instance_types={"blue": LARGE, "green": SMALL})
STATES = {
    "small": _SMALL,
    "large": _LARGE,
    "blue_only": replace(_SMALL, instance_types={"blue": SMALL}),
    "green_unscaled": replace(_SMALL, scaled=("blue",)),
    "unguarded": replace(_SMALL, has_guard=False),
    "unguarded_large": replace(_LARGE, has_guard=False),
    **{f"fails_{where}": replace(_LARGE, fails=where) for where in ("before", "between", "after")},
    "removal_fails": State({"blue": SMALL}, fails="between"),
}
