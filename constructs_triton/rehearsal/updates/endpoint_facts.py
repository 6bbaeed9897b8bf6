"""What the templates say of endpoints: instance types, and instances that an update adds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from constructs_triton.cloud_assembly.template import references

from .versions import Version

__all__ = ["extra_instances", "instance_types"]

Resources = Mapping[tuple[str, str], tuple[str, str]]
"""Type and physical ID of each deployed resource, by stack and logical ID."""

_ENDPOINT, _CONFIG = "AWS::SageMaker::Endpoint", "AWS::SageMaker::EndpointConfig"


def instance_types(*versions: tuple[Version, Resources]) -> dict[str, str]:
    """The instance types of each endpoint; those of the first version that has it."""
    found: dict[str, str] = {}
    for version, resources in versions:
        for name, _, variants in _endpoints(version, resources):
            kinds = sorted({each["InstanceType"] for each in variants if "InstanceType" in each})
            found.setdefault(name, ", ".join(map(str, kinds)))
    return found


def extra_instances(version: Version, resources: Resources) -> dict[str, int | None]:
    """The instances that an update adds: a batch, or ``None`` for a second fleet."""
    return {name: _batch(properties) for name, properties, _ in _endpoints(version, resources)}


def _batch(properties: Mapping[str, Any]) -> int | None:
    policy = (properties.get("DeploymentConfig") or {}).get("RollingUpdatePolicy") or {}
    size = (policy.get("MaximumBatchSize") or {}).get("Value")
    kind = (policy.get("MaximumBatchSize") or {}).get("Type")
    return size if kind == "INSTANCE_COUNT" and isinstance(size, int) else None


def _endpoints(
    version: Version, resources: Resources
) -> Iterator[tuple[str, Mapping[str, Any], list[Mapping[str, Any]]]]:
    """The name, the properties and the variants of each deployed endpoint."""
    for stack in version.stacks:
        configs = stack.template.resources_of_type(_CONFIG)
        for logical_id, endpoint in stack.template.resources_of_type(_ENDPOINT).items():
            deployed = resources.get((stack.name, logical_id))
            if deployed is None:
                continue
            used = references(endpoint.properties.get("EndpointConfigName")) & configs.keys()
            variants = [
                variant
                for config in used
                for variant in configs[config].properties.get("ProductionVariants") or []
            ]
            yield deployed[1].rpartition("/")[2], endpoint.properties, variants
