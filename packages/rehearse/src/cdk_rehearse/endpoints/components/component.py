"""One inference component: its specification, its copies, and the operation that is in progress."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ...moto_account.calls import now


@dataclass
class Operation:
    """What is in progress. Each DescribeInferenceComponent is one step;
    ``finish`` runs after the last.
    """

    state: str
    finish: Callable[[], None]
    steps: int = 1


@dataclass
class Component:
    """A component. ``body`` is ``Specification`` or ``Specifications`` as the API takes it."""

    name: str
    arn: str
    endpoint_name: str
    endpoint_arn: str
    variant_name: str
    body: Mapping[str, Any]
    desired_copies: int
    tags: list[dict[str, str]] = field(default_factory=list)
    copies: int = 0
    deployment: Mapping[str, Any] | None = None
    """The deployment configuration of the last update."""
    failure_reason: str | None = None
    has_failed: bool = False
    operation: Operation | None = None
    replacing: Mapping[str, Any] | None = None
    """The body that an update in progress replaces; its copies still run."""
    created: datetime = field(default_factory=now)
    changed: datetime = field(default_factory=now)

    @property
    def status(self) -> str:
        """The ``InferenceComponentStatus`` that SageMaker shows."""
        if self.operation is not None:
            return "Creating" if self.operation.state == "CREATE_IN_PROGRESS" else "Updating"
        return "Failed" if self.has_failed else "InService"

    def begin(self, operation: Operation) -> None:
        """Start an operation, which also ends the report of an earlier failure."""
        self.operation = operation
        self.failure_reason = None
        self.changed = now()

    def step(self) -> None:
        """Let the operation in progress come one step further."""
        operation = self.operation
        if operation is None:
            return
        operation.steps -= 1
        if operation.steps <= 0:
            self.operation = None
            operation.finish()

    def specifications(self) -> Iterator[Mapping[str, Any]]:
        """What its copies run now: during an update, the old and the new specification."""
        for body in filter(None, (self.body, self.replacing)):
            yield from specifications(body)

    def summary(self) -> dict[str, Any]:
        """Return the component as ListInferenceComponents shows it."""
        return {
            "InferenceComponentName": self.name,
            "InferenceComponentArn": self.arn,
            "InferenceComponentStatus": self.status,
            "EndpointName": self.endpoint_name,
            "EndpointArn": self.endpoint_arn,
            "VariantName": self.variant_name,
            "CreationTime": self.created,
            "LastModifiedTime": self.changed,
        }

    def description(self) -> dict[str, Any]:
        """Return the component as DescribeInferenceComponent shows it."""
        answer = {
            **self.summary(),
            **_described(self.body),
            "RuntimeConfig": {
                "DesiredCopyCount": self.desired_copies,
                "CurrentCopyCount": self.copies,
            },
        }
        more = {"FailureReason": self.failure_reason, "LastDeploymentConfig": self.deployment}
        return {**answer, **{name: value for name, value in more.items() if value is not None}}


def specifications(body: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the specifications of a request: one, or one for each instance type."""
    if "Specification" in body:
        return [body["Specification"]]
    return list(body.get("Specifications", []))


def base_of(body: Mapping[str, Any]) -> str | None:
    """Return the base component of an adapter; ``None`` for another component."""
    found = specifications(body)
    return found[0].get("BaseInferenceComponentName") if found else None


def _described(body: Mapping[str, Any]) -> dict[str, Any]:
    """The answer has the image in another member than the request."""
    found = [_with_deployed_image(specification) for specification in specifications(body)]
    if "Specification" in body:
        return {"Specification": found[0]}
    return {"Specifications": found}


def _with_deployed_image(specification: Mapping[str, Any]) -> dict[str, Any]:
    """Return a specification as it is shown while its copies run."""
    if "Image" not in specification.get("Container", {}):
        return dict(specification)
    container = dict(specification["Container"])
    container["DeployedImage"] = {"SpecifiedImage": container.pop("Image")}
    return {**specification, "Container": container}
