"""What was seen of the endpoints at each step of an operation: who may read what, and the fleets' sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..steps import Step


@dataclass(frozen=True)
class Reading:
    """Whether an instance that is launched now could read one object.

    Args:
        moment: The step after which it was tried.
        endpoint: ``endpoint NAME`` or ``inference component NAME``.
        config: The endpoint configuration; empty for a component. An update has the old one and the new one.
        model: The name of the SageMaker model.
        object: URL of the object or prefix in S3, or the image.
        refusal: Why it cannot be read; empty if it can.
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
    """The instances of a variant after a step; ``initial_count`` is that of the configuration that runs."""

    moment: Step
    endpoint: str
    variant: str
    count: int
    initial_count: int
    instance_type: str = ""


@dataclass(frozen=True)
class Peak:
    """The most instances of an endpoint during one step; those of each type need not run together."""

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
