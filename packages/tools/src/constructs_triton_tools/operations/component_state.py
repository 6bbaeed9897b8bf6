"""Reads the inference components of a deployed endpoint."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from constructs_triton_tools.aws.noting_reader import NotingReader


@dataclass(frozen=True, slots=True)
class ComponentState:
    """An inference component."""

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
        "sagemaker", "list_inference_components", "InferenceComponents", EndpointNameEquals=endpoint_name
    )
    for each in listed:
        name = each["InferenceComponentName"]
        details = reader.read("sagemaker", "describe_inference_component", InferenceComponentName=name)
        yield _state(name, {**each, **details})


def specifications_of(component: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the specification of a component, or one for each instance type if their models differ."""
    return list(component.get("Specifications") or [component.get("Specification", {})])


def _state(name: str, found: Mapping[str, Any]) -> ComponentState:
    copies = found.get("RuntimeConfig", {})
    models = [each["ModelName"] for each in specifications_of(found) if "ModelName" in each]
    return ComponentState(
        name=name,
        status=found.get("InferenceComponentStatus", "unknown"),
        current_copies=copies.get("CurrentCopyCount"),
        desired_copies=copies.get("DesiredCopyCount"),
        model=", ".join(models) or None,
        failure_reason=found.get("FailureReason"),
    )
