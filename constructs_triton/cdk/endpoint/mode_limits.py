"""What an endpoint's kind or size does not allow: refused, or warned about."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from constructs_triton.cdk.endpoint.properties import EndpointOptions
from constructs_triton.cdk.endpoint.resolved_variant import ResolvedVariant
from constructs_triton.cdk.validation.tokens import is_concrete
from constructs_triton.errors import InvalidValueError
from constructs_triton.findings import Finding, Severity

__all__ = ["check_deployment", "check_mode"]

_MATRIX = "AWS documentation: model deployment, feature matrix (multi-model endpoints)"


def check_deployment(options: EndpointOptions, variants: Sequence[ResolvedVariant]) -> list[Finding]:
    """Warn about a deployment in steps where a variant starts with too few instances to be split.

    No step may be larger than half of a variant's instances, and none is smaller than one.
    """
    deployment = options["deployment"]
    if deployment is None or deployment.size is None:
        return []
    size = deployment.size
    is_count = size.type == "INSTANCE_COUNT" and is_concrete(size.value)
    needed = max(2, math.ceil(2 * size.value)) if is_count else 2
    return [
        _too_few(count, needed)
        for count in (variant.initial_instance_count for variant in variants)
        if is_concrete(count) and count < needed
    ]


def check_mode(options: EndpointOptions, variants: Sequence[ResolvedVariant]) -> list[Finding]:
    """Warn about what AWS does not list as supported; ``InvalidValueError`` for what it excludes."""
    if variants[0].models.serves_many:
        _refuse_on_multi_model(options)
        return list(_multi_model_warnings(options, variants))
    if options["shadow_variant"] is not None and options["async_inference"] is not None:
        # AWS documentation: shadow tests, exclusions.
        raise InvalidValueError(
            "shadow_variant: real-time endpoints only, got async_inference as well; leave one of them out"
        )
    return []


def _refuse_on_multi_model(options: EndpointOptions) -> None:
    shadow, metrics = options["shadow_variant"], options["metrics_config"]
    if shadow is not None:
        raise InvalidValueError(
            f'shadow_variant: not supported on multi-model endpoints, got "{shadow.variant_name}"; '
            "serve the model with TritonEndpoint"
        )
    if metrics is not None and metrics.enable_enhanced_metrics:
        raise InvalidValueError(
            "metrics_config.enable_enhanced_metrics: not supported on multi-model endpoints, got True; "
            "leave it out"
        )


def _multi_model_warnings(options: EndpointOptions, variants: Sequence[ResolvedVariant]) -> Iterator[Finding]:
    if options["data_capture"] is not None:
        yield _unlisted("data-capture", "data_capture", "Model Monitor cannot read what is captured")
    if options["async_inference"] is not None:
        yield _unlisted("async", "async_inference", "requests may not reach their models")
    if len(variants) > 1:
        yield _unlisted("variants", "variants", "each variant loads the models for itself")
    if any(each.options["routing_strategy"] is not None for each in variants):
        yield _unlisted(
            "routing", "routing_strategy", "requests stay at the instances that have loaded their model"
        )


def _too_few(count: float, needed: int) -> Finding:
    return Finding(
        "deployment-step-exceeds-fleet",
        Severity.WARNING,
        "deployment",
        f"a step is at most half of a variant's instances, which takes {needed} of them, got {count:g}",
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
