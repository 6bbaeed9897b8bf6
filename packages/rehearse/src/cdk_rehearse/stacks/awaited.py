"""What an operation on a stack will create, by the names that its template gives.

A resource that names another one by its text does not wait for it (CloudFormation user guide,
DependsOn). So the other one does not exist yet, unless it was created before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from constructs_triton_core.cloud_assembly.intrinsics import Evaluator
from constructs_triton_core.cloud_assembly.template import Template

from ..errors import FAILURES
from ..services.service_api import ServiceApi

_CREATIONS = {
    "AWS::ApplicationAutoScaling::ScalableTarget": ("RegisterScalableTarget", "ResourceId"),
    "AWS::SageMaker::Endpoint": ("CreateEndpoint", "EndpointName"),
    "AWS::SageMaker::EndpointConfig": ("CreateEndpointConfig", "EndpointConfigName"),
    "AWS::SageMaker::InferenceComponent": ("CreateInferenceComponent", "InferenceComponentName"),
    "AWS::SageMaker::Model": ("CreateModel", "ModelName"),
}
"""The operation that creates a resource of a type, and its member for the name."""


Name = tuple[str, str, str]
"""An operation, its member for a name, and the name."""


@dataclass
class Awaited:
    """The names that an operation on a stack has not created yet."""

    api: ServiceApi
    names: Mapping[str, Name]
    """By logical ID."""

    def arrived(self, logical_id: str) -> None:
        """Note that a resource was created, perhaps without being simulated."""
        name = self.names.get(logical_id)
        if name is not None:
            self.api.awaited.discard(name)


@contextmanager
def awaiting(
    api: ServiceApi, template: Template, wanted: Iterable[str], evaluator: Evaluator
) -> Iterator[Awaited]:
    """Know the names of the wanted resources of a template while they are created."""
    before = set(api.awaited)
    awaited = Awaited(api, dict(_names(template, wanted, evaluator)))
    api.awaited.update(awaited.names.values())
    try:
        yield awaited
    finally:
        api.awaited = before


def _names(
    template: Template, wanted: Iterable[str], evaluator: Evaluator
) -> Iterator[tuple[str, Name]]:
    """Yield the names that resources will have, if they are known before their creation."""
    for logical_id in wanted:
        resource = template.resources[logical_id]
        if resource.type not in _CREATIONS:
            continue
        operation, member = _CREATIONS[resource.type]
        try:
            name = evaluator.evaluate(resource.properties.get(member))
        except FAILURES:
            continue  # it contains what another resource returns, so what names it waits for both
        if isinstance(name, str):
            yield logical_id, (operation, member, name)
