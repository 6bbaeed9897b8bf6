"""What AWS says about the endpoint under test, and what makes a load test of it unsafe."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from constructs_triton_client import SageMakerTransport
from constructs_triton_core.errors import InvalidValueError, InvocationError, LocalEndpointError
from constructs_triton_core.spelling import did_you_mean
from constructs_triton_tools.local.gateway_query import ask_gateway


@dataclass(frozen=True, slots=True)
class Target:
    """An endpoint in AWS.

    ``instance_type`` and ``instance_count`` are ``None`` if they are not known, for example because
    the caller may not describe the endpoint. ``is_scaled`` is whether Application Auto Scaling may
    change the count. ``notes`` are sentences about what could not be found out.
    """

    instance_type: str | None = None
    instance_count: int | None = None
    is_scaled: bool = False
    notes: tuple[str, ...] = ()


def describe_target(transport: SageMakerTransport, *, variant: str | None = None) -> Target:
    """Ask AWS for the instances of an endpoint and whether they are scaled.

    Calls DescribeEndpoint, DescribeEndpointConfig and DescribeScalableTargets. A call that is
    denied becomes a note.

    ``variant`` answers all requests. Default: all variants share them.
    """
    name = transport.endpoint_name
    notes = []
    variants: list[dict[str, Any]] = []
    try:
        variants = _only(_describe_variants(transport, name), variant)
    except InvocationError as error:
        notes.append(
            f"The instances of {name} are unknown, because AWS did not describe it: {error}."
        )
    try:
        is_scaled = _is_scaled(transport, name, variants)
    except InvocationError as error:
        is_scaled = False
        notes.append(
            f"Make sure that {name} does not scale during the test. AWS did not say: {error}."
        )
    types = {variant["InstanceType"] for variant in variants if variant.get("InstanceType")}
    counts = [
        variant["CurrentInstanceCount"] for variant in variants if "CurrentInstanceCount" in variant
    ]
    return Target(
        types.pop() if len(types) == 1 else None,
        sum(counts) if counts and len(counts) == len(variants) else None,
        is_scaled,
        tuple(notes),
    )


def find_stand_ins(
    endpoint_url: str, endpoint: str, *, variant: str | None = None
) -> dict[str, str]:
    """Ask a local run which models of an endpoint are run by stand-ins, and by what.

    The result is empty if a program other than ``local up`` answers at the URL.

    ``variant`` is the variant or inference component that answers all requests. Default: all.
    """
    try:
        servers = ask_gateway(endpoint_url, "/stand-ins").get(endpoint, {})
        found: dict[str, str] = {}
        for name, models in servers.items():
            if variant in (None, name):
                found |= {model: str(stand_in) for model, stand_in in models.items()}
    except (LocalEndpointError, AttributeError):
        return {}
    return found


def _describe_variants(transport: SageMakerTransport, name: str) -> list[dict[str, Any]]:
    endpoint = transport.call("describe_endpoint", service="sagemaker", EndpointName=name)
    status = endpoint["EndpointStatus"]
    if status not in ("InService", "Updating"):
        raise InvalidValueError(
            f"endpoint {name}: must be in service, got {status}; wait, or look at its logs"
        )
    config = transport.call(
        "describe_endpoint_config",
        service="sagemaker",
        EndpointConfigName=endpoint["EndpointConfigName"],
    )
    types = {
        variant["VariantName"]: variant.get("InstanceType")
        for variant in config["ProductionVariants"]
    }
    return [
        {**variant, "InstanceType": types.get(variant["VariantName"]) or _only_type(variant)}
        for variant in endpoint.get("ProductionVariants", ())
    ]


def _only(variants: list[dict[str, Any]], name: str | None) -> list[dict[str, Any]]:
    found = [variant for variant in variants if name in (None, variant["VariantName"])]
    if not found and variants:
        names = [variant["VariantName"] for variant in variants]
        hint = did_you_mean(name or "", names, f"the variants are {', '.join(names)}")
        raise InvalidValueError(f"--target-variant: the endpoint has no variant {name!r}; {hint}")
    return found


def _only_type(variant: dict[str, Any]) -> str | None:
    """The type of all running instances of a variant with instance pools;
    ``None`` if they are mixed.
    """
    running = [
        pool["InstanceType"]
        for pool in variant.get("InstancePools", ())
        if pool["CurrentInstanceCount"]
    ]
    return running[0] if len(running) == 1 else None


def _is_scaled(transport: SageMakerTransport, name: str, variants: list[dict[str, Any]]) -> bool:
    ids = [f"endpoint/{name}/variant/{variant['VariantName']}" for variant in variants]
    if not ids:
        return False
    answer = transport.call(
        "describe_scalable_targets",
        service="application-autoscaling",
        ServiceNamespace="sagemaker",
        ResourceIds=ids,
    )
    return any(not _is_suspended(target) for target in answer["ScalableTargets"])


def _is_suspended(target: dict[str, Any]) -> bool:
    state = target.get("SuspendedState", {})
    return bool(state.get("DynamicScalingInSuspended") and state.get("DynamicScalingOutSuspended"))
