"""What an endpoint's kind or size does not allow: refused, or warned about."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from constructs_triton.cdk.endpoint.properties import EndpointProps
from constructs_triton.cdk.endpoint.resolved_variant import ResolvedVariant
from constructs_triton.cdk.validation.tokens import is_concrete
from constructs_triton.errors import InvalidValueError
from constructs_triton.findings import Finding, Severity

__all__ = ["check_deployment", "check_mode"]

_MATRIX = "AWS documentation: model deployment, feature matrix (multi-model endpoints)"


def check_deployment(props: EndpointProps, plans: Sequence[ResolvedVariant]) -> list[Finding]:
    """Warn about a deployment in steps where a variant starts with too few instances to be split.

    No step may be larger than half of a variant's instances, and none is smaller than one.
    """
    deployment = props.deployment
    if deployment is None or deployment.size is None:
        return []
    size = deployment.size
    is_count = size.type == "INSTANCE_COUNT" and is_concrete(size.value)
    needed = max(2, math.ceil(2 * size.value)) if is_count else 2
    return [
        _too_few(plan, needed)
        for plan in plans
        if is_concrete(plan.props.initial_instance_count) and plan.props.initial_instance_count < needed
    ]


def check_mode(props: EndpointProps, plans: Sequence[ResolvedVariant]) -> list[Finding]:
    """Warn about what AWS does not list as supported; ``InvalidValueError`` for what it excludes."""
    if plans[0].models.serves_many:
        _refuse_on_multi_model(props)
        return list(_multi_model_warnings(props, plans))
    if props.shadow_variant is not None and props.async_inference is not None:
        # AWS documentation: shadow tests, exclusions.
        raise InvalidValueError(
            "shadow_variant: real-time endpoints only, got async_inference as well; leave one of them out"
        )
    return []


def _refuse_on_multi_model(props: EndpointProps) -> None:
    if props.shadow_variant is not None:
        raise InvalidValueError(
            f'shadow_variant: not on multi-model endpoints, got "{props.shadow_variant.variant_name}"; '
            "serve the model with TritonEndpoint"
        )
    if props.metrics_config is not None and props.metrics_config.enable_enhanced_metrics:
        raise InvalidValueError(
            "metrics_config.enable_enhanced_metrics: not on multi-model endpoints, got True; leave it out"
        )


def _multi_model_warnings(props: EndpointProps, plans: Sequence[ResolvedVariant]) -> Iterator[Finding]:
    if props.data_capture is not None:
        yield _unlisted("data-capture", "data_capture", "Model Monitor cannot read what is captured")
    if props.async_inference is not None:
        yield _unlisted("async", "async_inference", "requests may not reach their models")
    if len(plans) > 1:
        yield _unlisted("variants", "variants", "each variant loads the models for itself")
    if any(plan.props.routing_strategy is not None for plan in plans):
        yield _unlisted(
            "routing", "routing_strategy", "requests stay at the instances that have loaded their model"
        )


def _too_few(plan: ResolvedVariant, needed: int) -> Finding:
    return Finding(
        "deployment-step-exceeds-fleet",
        Severity.WARNING,
        "deployment",
        f"a step is at most half of a variant's instances, which takes {needed} of them, "
        f"got {plan.props.initial_instance_count:g}",
        f"start with {needed} instances, use Deployment.all_at_once(), "
        "or acknowledge this where scaling sees to it",
        source="botocore sagemaker service model: TrafficRoutingConfig, RollingUpdatePolicy",
    )


def _unlisted(name: str, path: str, consequence: str) -> Finding:
    return Finding(
        f"multi-model-{name}-undocumented",
        Severity.WARNING,
        path,
        f"AWS does not list this for multi-model endpoints: {consequence}",
        "leave it out, use single-model endpoints, or acknowledge this",
        source=_MATRIX,
    )
