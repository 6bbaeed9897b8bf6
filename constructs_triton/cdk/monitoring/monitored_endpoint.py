"""The attributes of an endpoint that alarms and dashboards use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import aws_sagemaker as sagemaker
from constructs import Node

from constructs_triton_core.tokens import is_token

if TYPE_CHECKING:
    from constructs_triton.cdk.monitoring.interfaces import ITritonEndpoint
    from constructs_triton.cdk.scaling.endpoint_variant import EndpointVariant

_UNITS = {
    "CPUUtilization": "vcpus",
    "GPUMemoryUtilization": "gpus",
    "GPUUtilization": "gpus",
}


def literal_endpoint_name(node: Node, endpoint_name: str) -> str | None:
    """Return the endpoint's name if it is set in the code,
    so using it does not refer to the resource.
    """
    resource = node.default_child
    name = resource.endpoint_name if isinstance(resource, sagemaker.CfnEndpoint) else endpoint_name
    return None if name is None or is_token(name) else name


def construct_names(endpoint: ITritonEndpoint) -> list[str]:
    """Return a name for construct ids for each variant; if its name is a token,
    its position is used.
    """
    names = []
    for position, variant in enumerate(endpoint.variants):
        name = variant.variant_name
        names.append(f"Variant{position}" if is_token(name) else name)
    return names


def metric_units(variant: EndpointVariant, metric_name: str) -> float | None:
    """Return the number of GPUs or vCPUs that a utilization metric adds up, 1 for other metrics.

    Returns ``None`` for an unknown instance type, unless a scaling policy was given the number, for
    0 GPUs, and for several instance types with different numbers.
    """
    if metric_name not in _UNITS:
        return 1
    counts = {getattr(each, _UNITS[metric_name], None) for each in variant.instance_types}
    if len(counts) > 1:
        return None
    known = counts.pop()
    if known is not None:
        return float(known) or None
    from constructs_triton.cdk.scaling.scalable_instance_count import tracked_metrics

    for tracked in tracked_metrics(variant.scalable_instance_count):
        if _UNITS.get(tracked.metric_name) == _UNITS[metric_name]:
            return tracked.units
    return None
