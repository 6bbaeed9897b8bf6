"""What the templates say of endpoints: instance types, and instances that an update adds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from constructs_triton.cloud_assembly.template import references

from .versions import Version

__all__ = ["extra_instances", "instance_types"]

_ENDPOINT, _CONFIG = "AWS::SageMaker::Endpoint", "AWS::SageMaker::EndpointConfig"


def instance_types(*versions: Version) -> dict[str, str]:
    """The instance types of each named endpoint; those of the first version that has it."""
    found: dict[str, str] = {}
    for version in versions:
        for name, _, variants in _endpoints(version):
            kinds = sorted({each["InstanceType"] for each in variants if "InstanceType" in each})
            found.setdefault(name, ", ".join(map(str, kinds)))
    return found


def extra_instances(version: Version) -> dict[str, int | None]:
    """The instances that an update adds: a batch, or ``None`` for a second fleet."""
    return {name: _batch(properties) for name, properties, _ in _endpoints(version)}


def _batch(properties: Mapping[str, Any]) -> int | None:
    policy = (properties.get("DeploymentConfig") or {}).get("RollingUpdatePolicy") or {}
    size = (policy.get("MaximumBatchSize") or {}).get("Value")
    kind = (policy.get("MaximumBatchSize") or {}).get("Type")
    return size if kind == "INSTANCE_COUNT" and isinstance(size, int) else None


def _endpoints(version: Version) -> Iterator[tuple[str, Mapping[str, Any], list[Mapping[str, Any]]]]:
    """The name, the properties and the variants of each endpoint with a name in the template."""
    for stack in version.stacks:
        configs = stack.template.resources_of_type(_CONFIG)
        for endpoint in stack.template.resources_of_type(_ENDPOINT).values():
            name = endpoint.properties.get("EndpointName")
            if isinstance(name, str):
                used = references(endpoint.properties.get("EndpointConfigName")) & configs.keys()
                variants = [
                    variant
                    for config in used
                    for variant in configs[config].properties.get("ProductionVariants") or []
                ]
                yield name, endpoint.properties, variants
