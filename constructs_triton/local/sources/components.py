"""Reads the inference components of an endpoint from a synthesized template."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from constructs_triton.errors import LocalEndpointError
from constructs_triton.local.sources.intrinsics import Template
from constructs_triton.local.sources.specs import ComponentSpec, ContainerSpec

__all__ = ["hosts_components", "read_components"]

_COMPONENT = "AWS::SageMaker::InferenceComponent"
_TARGET = "AWS::ApplicationAutoScaling::ScalableTarget"
_DIMENSION = "sagemaker:inference-component:DesiredCopyCount"

#: Returns the container of a specification; the logical ID of its component is for messages.
ContainerReader = Callable[[Mapping[str, Any], str], ContainerSpec]


def hosts_components(variants: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether the variants of a configuration have no models of their own."""
    return bool(variants) and not any("ModelName" in variant for variant in variants)


def read_components(
    template: Template, endpoint: str, variants: Sequence[Mapping[str, Any]], read_container: ContainerReader
) -> tuple[ComponentSpec, ...]:
    """Return the components of an endpoint that the template defines.

    Raises:
        LocalEndpointError: there is none, or one cannot run locally.
    """
    by_name = {variant["VariantName"]: variant for variant in variants}
    found = tuple(
        _component(template, logical_id, properties, by_name, read_container)
        for logical_id, properties in _components_of(template, endpoint)
    )
    if not found:
        raise LocalEndpointError(
            f"{template.name}/{endpoint}: the endpoint has variants without a model, and no inference "
            "component of this stack runs on it; define its components in the same stack, or select other "
            "endpoints with --endpoint"
        )
    _refuse_duplicates(found, template)
    return found


def _refuse_duplicates(components: Sequence[ComponentSpec], template: Template) -> None:
    names = [component.name for component in components]
    for name in names:
        if names.count(name) > 1:
            raise LocalEndpointError(
                f"{template.name}: two inference components are called {name!r}; change "
                "InferenceComponentName of one of them"
            )


def _components_of(template: Template, endpoint: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for logical_id in template.resources_of_type(_COMPONENT):
        properties = template.properties(logical_id)
        if properties.get("EndpointName") == endpoint:
            yield logical_id, properties


def _component(
    template: Template,
    logical_id: str,
    properties: Mapping[str, Any],
    variants: Mapping[str, Mapping[str, Any]],
    read_container: ContainerReader,
) -> ComponentSpec:
    specification = _specification(template, logical_id, properties)
    variant_name = properties.get("VariantName") or next(iter(variants))
    startup = specification.get("StartupParameters", {})
    timeout = startup.get("ContainerStartupHealthCheckTimeoutInSeconds")
    name = template.name_of(logical_id)
    return ComponentSpec(
        name=name,
        container=read_container(specification, logical_id),
        instance_type=variants.get(variant_name, {}).get("InstanceType"),
        startup_timeout_seconds=None if timeout is None else int(timeout),
        variant_name=variant_name,
        starts_at_zero=name in _names_with_minimum_zero(template),
    )


def _specification(template: Template, logical_id: str, properties: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the specification; of several, which are for different instance types, the first."""
    found: Mapping[str, Any] = properties.get("Specification") or properties.get("Specifications", [{}])[0]
    if "BaseInferenceComponentName" in found:
        raise LocalEndpointError(
            f"{template.name}/{logical_id}: adapters do not run locally; remove BaseInferenceComponentName, "
            "or select other endpoints with --endpoint"
        )
    return found


def _names_with_minimum_zero(template: Template) -> set[str]:
    """Return the components that Application Auto Scaling may bring down to zero copies."""
    targets = (
        template.properties(logical_id)
        for logical_id, resource in template.resources_of_type(_TARGET).items()
        if resource.get("Properties", {}).get("ScalableDimension") == _DIMENSION
    )
    return {
        str(target["ResourceId"]).rpartition("/")[2]
        for target in targets
        if int(target.get("MinCapacity", 1)) == 0
    }
