"""Reads the inference components of a deployed endpoint."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from constructs_triton_tools.aws.noting_reader import NotingReader


@dataclass(frozen=True, slots=True)
class ComponentState:
    """An inference component.

    Args:
        name: Name of the component.
        status: SageMaker's status, such as ``InService``; ``unknown`` if it cannot be read.
        current_copies: Copies that run; ``None`` if not known.
        desired_copies: Copies that were asked for; ``None`` if not known.
        model: SageMaker model, or those of all types; ``None`` for a component with its own
            container.
        failure_reason: SageMaker's reason of a failure; ``None`` if there is none.
    """

    name: str
    status: str
    current_copies: int | None
    desired_copies: int | None
    model: str | None
    failure_reason: str | None

    @property
    def resource_id(self) -> str:
        """The component in Application Auto Scaling."""
        return f"inference-component/{self.name}"


def read_components(reader: NotingReader, endpoint_name: str) -> Iterator[ComponentState]:
    """Yield the components of an endpoint, in the order of SageMaker's list."""
    listed = reader.read_list(
        "sagemaker",
        "list_inference_components",
        "InferenceComponents",
        EndpointNameEquals=endpoint_name,
    )
    for component in listed:
        name = component["InferenceComponentName"]
        details = reader.read(
            "sagemaker", "describe_inference_component", InferenceComponentName=name
        )
        yield _state(name, {**component, **details})


def specifications_of(component: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the specification of a component, or one for each instance type
    if their models differ.
    """
    return list(component.get("Specifications") or [component.get("Specification", {})])


def _state(name: str, found: Mapping[str, Any]) -> ComponentState:
    copies = found.get("RuntimeConfig", {})
    models = [
        specification["ModelName"]
        for specification in specifications_of(found)
        if "ModelName" in specification
    ]
    return ComponentState(
        name=name,
        status=found.get("InferenceComponentStatus", "unknown"),
        current_copies=copies.get("CurrentCopyCount"),
        desired_copies=copies.get("DesiredCopyCount"),
        model=", ".join(models) or None,
        failure_reason=found.get("FailureReason"),
    )
