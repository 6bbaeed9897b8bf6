"""What alarms and dashboards need to know of an endpoint, imported ones included."""

from __future__ import annotations

from aws_cdk import aws_sagemaker as sagemaker

from constructs_triton.cdk.monitoring.endpoint_interface import ITritonEndpoint
from constructs_triton.cdk.scaling.endpoint_variant import EndpointVariant
from constructs_triton.cdk.validation.tokens import is_concrete

__all__ = ["construct_names", "metric_units", "written_endpoint_name"]

_UNITS = {
    "CPUUtilization": "vcpus",
    "GPUMemoryUtilization": "gpus",
    "GPUUtilization": "gpus",
}


def written_endpoint_name(endpoint: ITritonEndpoint) -> str | None:
    """The endpoint's name where it is written out in the code, so that using it refers to no resource."""
    resource = endpoint.node.default_child
    name = resource.endpoint_name if isinstance(resource, sagemaker.CfnEndpoint) else endpoint.endpoint_name
    return name if name is not None and is_concrete(name) else None


def construct_names(endpoint: ITritonEndpoint) -> list[str]:
    """A name for construct ids for each variant; one whose name is a token goes by its place."""
    return [
        each.variant_name if is_concrete(each.variant_name) else f"Variant{position}"
        for position, each in enumerate(endpoint.variants)
    ]


def metric_units(variant: EndpointVariant, metric_name: str) -> float | None:
    """How often the range of a utilisation is 100 percent; ``None`` where the instance type is not known.

    What a scaling policy was told counts too. Zero GPUs are no unit either.
    """
    if metric_name not in _UNITS:
        return 1
    known = getattr(variant.instance_type, _UNITS[metric_name], None)
    if known is not None:
        return float(known) or None
    scalable = variant.scalable_instance_count
    for tracked in () if scalable is None else scalable.tracked_metrics:
        if _UNITS.get(tracked.metric_name) == _UNITS[metric_name]:
            return tracked.units
    return None
