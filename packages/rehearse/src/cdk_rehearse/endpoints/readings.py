"""What was seen of the endpoints at each step of an operation: who may read what,
and the fleets' sizes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..steps import Step


@dataclass(frozen=True)
class Reading:
    """Whether an instance that is launched after a step could read one object, the prefix or the
    image.

    ``endpoint`` is ``endpoint NAME`` or ``inference component NAME``. ``config`` is empty for a
    component; an update has the old one and the new one. ``refusal`` is why the object cannot be
    read; empty if it can.
    """

    moment: Step
    endpoint: str
    config: str
    model: str
    object: str
    refusal: str = ""

    def __str__(self) -> str:
        users = ", ".join(filter(None, (self.endpoint, self.config, self.model)))
        return f"{self.moment}: {users}: {self.refusal or 'can be read: ' + self.object}"


@dataclass(frozen=True)
class Count:
    """The instances of a variant after a step; ``initial_count`` is that of the
    configuration that runs.
    """

    moment: Step
    endpoint: str
    variant: str
    count: int
    initial_count: int
    instance_type: str = ""


@dataclass(frozen=True)
class Peak:
    """The most instances of an endpoint during one step;
    those of each type need not run together.
    """

    total: int
    by_type: Mapping[str, int]


@dataclass(frozen=True)
class Drop:
    """A fleet that was scaled out, and that a step made smaller."""

    before: Count
    after: Count

    def __str__(self) -> str:
        return (
            f"{self.after.moment}: endpoint {self.after.endpoint}, variant {self.after.variant}: "
            f"{self.before.count} instances became {self.after.count}"
        )
