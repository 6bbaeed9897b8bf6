"""Checks of properties against the type and the size of an endpoint."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from aws_cdk import Stack
from constructs import Construct

from constructs_triton.cdk.endpoint.properties import RequestOptions, UpdateOptions
from constructs_triton.cdk.endpoint.served_models import CACHE_SETTINGS
from constructs_triton.cdk.endpoint.settled_variant import SettledVariant
from constructs_triton.cdk.metrics.metrics_config import MetricsConfig
from constructs_triton.cdk.options.async_inference import async_inference_places
from constructs_triton.cdk.options.capacity_reservation import PREFERENCES
from constructs_triton.cdk.options.core_dump import core_dump_destination
from constructs_triton.cdk.options.data_capture import (
    DataCapture,
    captured_data,
    unknown_capture_modes,
)
from constructs_triton.cdk.options.deployment import Deployment
from constructs_triton.cdk.options.host_options import ResourceOptions
from constructs_triton.cdk.options.image import DlcImage
from constructs_triton.cdk.options.removal import is_kept
from constructs_triton.cdk.options.variant_options import STRATEGIES
from constructs_triton.cdk.permissions.places import Place, check_places
from constructs_triton.cdk.validation.limit_checks import unknown_value
from constructs_triton.cdk.validation.property_types import shown
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.findings import Finding, Severity
from constructs_triton_core.tokens import is_lookup_dummy, is_token

_MATRIX = "AWS documentation: model deployment, feature matrix (multi-model endpoints)"


def check_deployment(
    deployment: Deployment | None, instance_counts: Iterable[float]
) -> list[Finding]:
    """Return a warning for each variant that has too few instances for a deployment in steps.

    A step is at least one instance and at most half of a variant's instances.
    """
    if deployment is None or deployment.size is None:
        return []

    size = deployment.size
    needed = 2
    if size.type == "INSTANCE_COUNT" and not is_token(size.value):
        needed = max(2, math.ceil(2 * size.value))
    return [
        _too_few(count, needed)
        for count in instance_counts
        if not is_token(count) and count < needed
    ]


def check_mode(
    scope: Construct,
    requests: RequestOptions,
    metrics: MetricsConfig | None,
    variants: Sequence[SettledVariant],
) -> list[Finding]:
    """Return warnings for properties that AWS does not list as supported.

    Raises:
        InvalidValueError: AWS excludes a property, or the CDK cannot refer to a bucket of another
            Region.
    """
    findings = [
        *_unknown_values(requests["data_capture"], variants),
        *_observability_warnings(metrics, variants),
        *check_places(scope, _places(requests, variants)),
    ]

    shadow = variants[-1] if variants[-1].is_shadow else None
    if variants[0].container.models.serves_many:
        _refuse_on_multi_model(shadow, metrics)
        return [*findings, *_multi_model_warnings(requests, variants)]

    if shadow is not None and requests["async_inference"] is not None:
        # AWS documentation: shadow tests, exclusions.
        raise InvalidValueError(
            "shadow_variant: not supported together with async_inference; remove one of them"
        )
    return findings


def _places(requests: RequestOptions, variants: Sequence[SettledVariant]) -> Iterator[Place]:
    """Yield where requests are read and responses, captured data and core dumps are written."""
    asynchronous = requests["async_inference"]
    if asynchronous is not None:
        yield from async_inference_places(asynchronous)

    capture = requests["data_capture"]
    if capture is not None:
        yield from captured_data(capture).places

    for variant in variants:
        core_dump = variant.options["core_dump"]
        if core_dump is not None:
            yield from core_dump_destination(core_dump).places


def check_off_switch(
    scope: Construct,
    resource: ResourceOptions,
    requests: RequestOptions,
    update: UpdateOptions,
) -> None:
    """Check that an ``off_switch`` fits the endpoint.

    Raises:
        InvalidValueError: the switch is in another stack, the endpoint has no literal name, or
            a property contradicts the deletion.
    """
    switch = update["off_switch"]
    if switch is None:
        return

    stack = Stack.of(scope)
    other_stack = Stack.of(switch)
    if other_stack is not stack:
        raise InvalidValueError(
            f"off_switch: must be in stack {stack.node.path} of the endpoint, since an update of "
            f"one stack turns it off, is in {other_stack.node.path}; "
            "create an OffSwitch in the stack of the endpoint"
        )
    name = resource["endpoint_name"]
    if name is None or (is_token(name) and not is_lookup_dummy(name)):
        raise InvalidValueError(
            "off_switch: needs an endpoint_name that is known at synth, "
            "so that callers can keep it; set endpoint_name"
        )
    if requests["async_inference"] is not None:
        raise InvalidValueError(
            "off_switch: not supported together with async_inference, which can have zero "
            "instances; remove off_switch, and use scale_on_schedule of "
            "auto_scale_instance_count(min_capacity=0, ...)"
        )
    if update["adopt_existing"] or is_kept(resource["removal_policy"]):
        which = "adopt_existing" if update["adopt_existing"] else "removal_policy"
        raise InvalidValueError(
            f"off_switch: not supported together with {which}, "
            f"which keeps a deleted endpoint; remove {which}"
        )


def check_weights(variants: Sequence[SettledVariant]) -> Iterator[Finding]:
    """Yield a warning if no production variant gets a share of the requests.

    Source: SageMaker API reference, ``ProductionVariant``: the share is the weight divided by the
    sum of all weights.
    """
    production = [variant for variant in variants if not variant.is_shadow]
    weights = [variant.options["initial_variant_weight"] for variant in production]
    if any(weight != 0 for weight in weights):
        return
    yield Finding(
        "all-weights-zero",
        Severity.WARNING,
        "initial_variant_weight",
        "all variants have weight 0, so no variant gets a request without TargetVariant",
        "give one variant a weight above 0, or acknowledge this if each caller sets TargetVariant",
        source="SageMaker API reference: ProductionVariant, InitialVariantWeight",
    )


def _unknown_values(
    capture: DataCapture | None, variants: Sequence[SettledVariant]
) -> Iterator[Finding]:
    """Yield warnings for values that the service may have added after this library was released."""
    model = "botocore sagemaker service model: "
    if capture is not None:
        yield from unknown_capture_modes(capture)

    settings = {variant.container.models.model_cache_setting for variant in variants}
    for setting in settings:
        yield from unknown_value(
            "model_cache_setting", setting, CACHE_SETTINGS, f"{model}ModelCacheSetting"
        )

    strategies = dict.fromkeys(variant.options["routing_strategy"] for variant in variants)
    for strategy in strategies:
        yield from unknown_value(
            "routing_strategy", strategy, STRATEGIES, f"{model}RoutingStrategy"
        )

    for variant in variants:
        reservation = variant.options["capacity_reservation"]
        if reservation is not None:
            yield from unknown_value(
                "capacity_reservation.capacity_reservation_preference",
                reservation.capacity_reservation_preference,
                PREFERENCES,
                f"{model}CapacityReservationPreference",
            )


def _observability_warnings(
    metrics: MetricsConfig | None, variants: Sequence[SettledVariant]
) -> Iterator[Finding]:
    """Yield a warning if detailed observability is asked for,
    and Triton's own metrics are not published.
    """
    publishes = variants[0].container.models.metrics_name is not None
    if metrics is None or metrics.enable_detailed_observability is not True or publishes:
        return
    if not any(isinstance(variant.container.image, DlcImage) for variant in variants):
        return  # your own image may serve them
    yield Finding(
        "detailed-observability-without-triton",
        Severity.WARNING,
        "metrics_config.enable_detailed_observability",
        "SageMaker reads metrics of the container from /metrics on port 8080, which Triton for "
        "SageMaker does not serve, so only those of GPUs and hosts are published",
        "set container_metrics=True for the metrics of Triton, which multi-model endpoints do not "
        "support, or acknowledge this if those of GPUs and hosts are enough",
        source="SageMaker API reference: MetricsConfig, ContainerMetricsConfig; triton server "
        "sagemaker_server.cc",
    )


def _refuse_on_multi_model(shadow: SettledVariant | None, metrics: MetricsConfig | None) -> None:
    """Refuse what SageMaker does not support on multi-model endpoints.

    Raises:
        InvalidValueError: there is a shadow variant, or enhanced metrics are on.
    """
    if shadow is not None:
        raise InvalidValueError(
            f'shadow_variant: not supported on multi-model endpoints, got "{shadow.variant_name}"; '
            "serve the model with TritonEndpoint"
        )
    if metrics is not None and metrics.enable_enhanced_metrics:
        raise InvalidValueError(
            "metrics_config.enable_enhanced_metrics: not supported on multi-model endpoints, "
            f"got {shown(metrics.enable_enhanced_metrics)}; remove it"
        )


def _multi_model_warnings(
    requests: RequestOptions, variants: Sequence[SettledVariant]
) -> Iterator[Finding]:
    """Yield a warning for each option that AWS does not document for multi-model endpoints."""
    if requests["data_capture"] is not None:
        yield _unlisted(
            "data-capture", "data_capture", "Model Monitor cannot read the captured data"
        )
    if requests["async_inference"] is not None:
        yield _unlisted("async", "async_inference", "requests may not reach their models")
    if len(variants) > 1:
        yield _unlisted("variants", "variants", "each variant loads its own copy of the models")
    if any(variant.options["routing_strategy"] is not None for variant in variants):
        yield _unlisted(
            "routing",
            "routing_strategy",
            "SageMaker sends requests to the instances that have loaded the model",
        )


def _too_few(count: float, needed: int) -> Finding:
    """Return the warning that a deployment's steps are too large for the number of instances."""
    return Finding(
        "deployment-step-exceeds-fleet",
        Severity.WARNING,
        "deployment",
        "a step is at most half of a variant's instances, "
        f"so it needs {needed} instances, got {count:g}",
        f"set initial_instance_count={needed}, use Deployment.all_at_once(), "
        "or acknowledge this if scaling keeps enough instances",
        source="botocore sagemaker service model: TrafficRoutingConfig, RollingUpdatePolicy",
    )


def _unlisted(name: str, path: str, consequence: str) -> Finding:
    return Finding(
        f"multi-model-{name}-undocumented",
        Severity.WARNING,
        path,
        f"AWS does not list this for multi-model endpoints: {consequence}",
        "remove it, use single-model endpoints, or acknowledge this",
        source=_MATRIX,
    )
