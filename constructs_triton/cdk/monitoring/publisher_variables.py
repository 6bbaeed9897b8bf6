"""The variables of a container that publishes Triton's own metrics, what excludes them,
and their price.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from aws_cdk import Stack
from constructs import Construct

from constructs_triton.cdk.options.environment import TritonEnvironment
from constructs_triton.cdk.options.environment_layers import Environment, EnvironmentLayers
from constructs_triton.cdk.options.image import TritonImage
from constructs_triton.cdk.repository.metrics_publisher import (
    CUSTOM_VARIABLE,
    ENDPOINT_VARIABLE,
    INTERVAL_VARIABLE,
    VARIANT_VARIABLE,
)
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts.versions import is_at_least
from constructs_triton_core.findings import Finding, Severity
from constructs_triton_core.tokens import is_token
from triton_model_check.facts.environment import variables

_METRICS, _CACHE_METRICS = 7, 2
_DOLLARS_A_MONTH = 0.30  # CloudWatch pricing page, first 10,000 custom metrics, us-east-1
_REFUSED_ARGUMENTS = (
    "--allow-metrics",
    "--metrics-address",
    "--metrics-port",
    "counter_latencies=false",
)


def metrics_name(scope: Construct, id: str, endpoint_name: str | None) -> str:
    """Return the name under which an endpoint publishes metrics.

    A generated name is not known when the model is created, so the stack and the path in it replace
    it.
    """
    if endpoint_name is not None:
        return endpoint_name
    stack = Stack.of(scope)
    while stack.nested_stack_parent is not None:  # the name of a nested stack is a token
        stack = stack.nested_stack_parent
    path = f"{scope.node.path}/{id}".removeprefix(f"{stack.node.path}/")
    return f"{stack.stack_name}/{path}"


def with_publisher_variables(
    given: Environment | None,
    image: TritonImage | None,
    endpoint: str,
    variant: str,
    custom: Sequence[str],
) -> Environment:
    """Return an environment below that of the user, which turns metrics on, and has their
    dimensions and the names of those of the models themselves.

    Raises:
        InvalidValueError: the image cannot turn metrics on.
    """
    version, since = (
        None if image is None else image.triton_version,
        variables()["allow_metrics"].since,
    )
    if version is not None and not is_token(version) and not is_at_least(version, since):
        raise InvalidValueError(
            f"container_metrics: needs an image of version {since} or later, which can turn "
            f"Triton's metrics on, got {version}; use a later image, or remove container_metrics"
        )
    extra = {ENDPOINT_VARIABLE: endpoint, VARIANT_VARIABLE: variant}
    if custom:
        extra[CUSTOM_VARIABLE] = ",".join(custom)
    own = TritonEnvironment(allow_metrics=True, extra=extra)
    layers = given if isinstance(given, EnvironmentLayers) else EnvironmentLayers.of(given)
    return cast(Environment, EnvironmentLayers.of(own, *layers))


def check_publisher_variables(environment: Mapping[str, str]) -> None:
    """Check that the user's variables leave Triton's metrics readable.

    Raises:
        InvalidValueError: they turn metrics off, move them, or set an interval that is not valid.
    """
    allow, arguments = variables()["allow_metrics"].name, variables()["additional_args"].name
    if environment[allow] != "true":
        raise InvalidValueError(
            f"container_metrics: needs Triton's metrics, got allow_metrics={environment[allow]} in "
            "environment; remove it, or remove container_metrics"
        )
    for word in environment.get(arguments, "").split():
        if any(refused in word for refused in _REFUSED_ARGUMENTS):
            raise InvalidValueError(
                f'container_metrics: reads all latencies at 127.0.0.1, got the argument "{word}" '
                "in environment; remove it, or set metrics_port to choose the port"
            )
    _check_interval(environment.get(INTERVAL_VARIABLE, "60"))


def _check_interval(text: str) -> None:
    """Check how often Triton's metrics are published, in seconds."""
    if is_token(text):
        return
    try:
        is_valid = 1 <= float(text) <= 3600
    except ValueError:
        is_valid = False
    if not is_valid:
        raise InvalidValueError(
            f'environment["{INTERVAL_VARIABLE}"]: must be 1 to 3600 seconds, '
            f'got "{text}"; write "60"'
        )


def price_of_metrics(
    model_count: int, custom_count: int, environment: Mapping[str, str]
) -> Finding:
    """Return what the metrics of a variant cost, as a warning that the user can acknowledge."""
    has_cache = "--cache-config" in environment.get(variables()["additional_args"].name, "")
    count = model_count * (_METRICS + (_CACHE_METRICS if has_cache else 0)) + custom_count
    return Finding(
        "container-metrics-price",
        Severity.WARNING,
        "container_metrics",
        f"{model_count} {'model publishes' if model_count == 1 else 'models publish'} {count} "
        f"custom metrics, about ${count * _DOLLARS_A_MONTH:.2f} a month for each variant at "
        f"${_DOLLARS_A_MONTH:.2f} a metric, for any number of instances",
        "acknowledge this warning if you accept the price, or remove container_metrics",
        source="CloudWatch pricing page, us-east-1",
    )
