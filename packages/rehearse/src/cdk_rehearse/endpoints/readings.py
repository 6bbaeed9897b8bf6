"""What was seen of the endpoints at each step of an operation: who may read what, and the fleets' sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..steps import Step

__all__ = ["Count", "Drop", "Peak", "Reading"]


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
    """The instances of a variant at a step.

    Args:
        moment: The step.
        endpoint: Name of the endpoint.
        variant: Name of the variant.
        count: The desired number of instances.
        initial_count: The number in the endpoint configuration that runs.
        instance_type: The instance type.
    """

    moment: Step
    endpoint: str
    variant: str
    count: int
    initial_count: int
    instance_type: str = ""


@dataclass(frozen=True)
class Peak:
    """The most instances of an endpoint during one step.

    Args:
        total: All instances.
        by_type: The instances of each instance type, which need not be at the same moment.
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
