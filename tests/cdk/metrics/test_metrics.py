"""Metrics of endpoints and variants, created or imported."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_cloudwatch as cloudwatch
from cdk_apps import import_endpoint, only, synthesize

from constructs_triton import InstanceType, TritonComponentEndpoint
from constructs_triton.cdk.metrics import metric_definitions
from constructs_triton.cdk.metrics.host_metrics import HostMetrics
from constructs_triton.cdk.metrics.metrics import VariantMetrics, variant_metric
from constructs_triton_core.errors import InvalidValueError

INVOCATIONS, INSTANCES = "AWS/SageMaker", "/aws/sagemaker/Endpoints"
US, MS, PERCENT = (
    cloudwatch.Unit.MICROSECONDS,
    cloudwatch.Unit.MILLISECONDS,
    cloudwatch.Unit.PERCENT,
)
BOTH = {"EndpointName": "bert", "VariantName": "AllTraffic"}
# From the SageMaker developer guide: the namespace, a valid statistic, and the unit.
PUBLISHED: dict[str, tuple[str, str, cloudwatch.Unit | None]] = {
    "metric_invocations": (INVOCATIONS, "Sum", None),
    "metric_invocations_per_instance": (INVOCATIONS, "Sum", None),
    "metric_concurrent_requests_per_model": (INVOCATIONS, "Maximum", None),
    "metric_invocation_4xx_errors": (INVOCATIONS, "Sum", None),
    "metric_invocation_5xx_errors": (INVOCATIONS, "Sum", None),
    "metric_invocation_model_errors": (INVOCATIONS, "Sum", None),
    "metric_mid_stream_errors": (INVOCATIONS, "Sum", None),
    "metric_model_latency": (INVOCATIONS, "p99", US),
    "metric_overhead_latency": (INVOCATIONS, "p99", US),
    "metric_first_chunk_latency": (INVOCATIONS, "p99", US),
    "metric_first_chunk_model_latency": (INVOCATIONS, "p99", US),
    "metric_first_chunk_overhead_latency": (INVOCATIONS, "p99", US),
    "metric_cpu_utilization": (INSTANCES, "Average", PERCENT),
    "metric_memory_utilization": (INSTANCES, "Average", PERCENT),
    "metric_disk_utilization": (INSTANCES, "Average", PERCENT),
    "metric_gpu_utilization": (INSTANCES, "Average", PERCENT),
    "metric_gpu_memory_utilization": (INSTANCES, "Average", PERCENT),
    "metric_loaded_model_count": (INSTANCES, "Average", None),
    "metric_model_cache_hit": (INVOCATIONS, "Average", None),
    "metric_model_loading_wait_time": (INVOCATIONS, "Average", US),
    "metric_model_downloading_time": (INVOCATIONS, "Average", US),
    "metric_model_loading_time": (INVOCATIONS, "Average", US),
    "metric_model_unloading_time": (INVOCATIONS, "Average", US),
    "metric_time_in_backlog": (INVOCATIONS, "Average", US),
    "metric_invocation_failures": (INVOCATIONS, "Sum", None),
    "metric_expired_requests": (INVOCATIONS, "Sum", None),
    "metric_total_processing_time": (INVOCATIONS, "Average", MS),
    "metric_request_download_latency": (INVOCATIONS, "Average", US),
    "metric_request_download_failures": (INVOCATIONS, "Sum", None),
    "metric_response_upload_latency": (INVOCATIONS, "Average", US),
    "metric_response_upload_failures": (INVOCATIONS, "Sum", None),
    "metric_notification_failures": (INVOCATIONS, "Sum", None),
}
# Of the instances of an endpoint with inference components.
HOST: dict[str, tuple[str, str, cloudwatch.Unit | None]] = {
    "metric_cpu_reservation": (INSTANCES, "Average", None),
    "metric_gpu_reservation": (INSTANCES, "Average", None),
    "metric_memory_reservation": (INSTANCES, "Average", None),
    "metric_cpu_utilization_normalized": (INSTANCES, "Average", None),
    "metric_gpu_utilization_normalized": (INSTANCES, "Average", None),
    "metric_gpu_memory_utilization_normalized": (INSTANCES, "Average", None),
}
QUEUE = {
    "metric_approximate_backlog_size": "Average",
    "metric_approximate_backlog_size_per_instance": "Average",
    "metric_approximate_age_of_oldest_request": "Maximum",
    "metric_has_backlog_without_capacity": "Average",
}


@pytest.fixture
def endpoint(stack: cdk.Stack) -> VariantMetrics:
    return import_endpoint(stack)


def stat(metric: cloudwatch.IMetric) -> cloudwatch.MetricStatConfig:
    found = metric.to_metric_config().metric_stat
    assert found is not None
    return found


def dimensions(metric: cloudwatch.IMetric) -> Mapping[str, str]:
    return {each.name: each.value for each in stat(metric).dimensions or ()}


def camel(method: str) -> str:
    """Return a metric's name from its method's name, with CloudWatch's acronyms."""
    words = method.removeprefix("metric_").split("_")
    upper = {"cpu": "CPU", "gpu": "GPU", "4xx": "4XX", "5xx": "5XX"}
    return "".join(upper.get(word, word.capitalize()) for word in words)


@pytest.mark.parametrize("method", [*PUBLISHED, *HOST])
def test_metric_is_where_it_is_published(
    stack: cdk.Stack, endpoint: VariantMetrics, method: str
) -> None:
    """Namespace, dimensions, statistic, unit and period are those that SageMaker publishes."""
    owner = endpoint
    if method in HOST:
        owner = TritonComponentEndpoint.from_endpoint_name(stack, "Host", "bert")
    found = stat(getattr(owner, method)())
    namespace, statistic, unit = {**PUBLISHED, **HOST}[method]
    assert (found.metric_name, found.namespace) == (camel(method), namespace)
    assert (found.statistic, found.unit_filter) == (statistic, unit)
    assert {each.name: each.value for each in found.dimensions or ()} == BOTH
    assert found.period.to_seconds() == 60


@pytest.mark.parametrize("method", PUBLISHED)
def test_every_method_takes_the_options(endpoint: VariantMetrics, method: str) -> None:
    """Options that are given replace the defaults."""
    given: Any = {"statistic": "Minimum", "label": "mine", "color": cloudwatch.Color.RED}
    metric = getattr(endpoint, method)(period=cdk.Duration.minutes(5), **given)
    assert {name: getattr(metric, name) for name in given} == given
    assert metric.period.to_minutes() == 5


@pytest.mark.parametrize("method", QUEUE)
def test_queue_belongs_to_the_endpoint(stack: cdk.Stack, method: str) -> None:
    """The backlog has no variant, so an endpoint with several variants has the method too."""
    several = import_endpoint(stack, variants={"a": None, "b": None}, is_asynchronous=True)
    metric = getattr(several, method)()
    assert (stat(metric).metric_name, stat(metric).statistic) == (camel(method), QUEUE[method])
    assert dimensions(metric) == {"EndpointName": "bert"}


def test_every_metric_method_is_listed_here() -> None:
    """Every metric method has a row above, or a test of its own, and every published metric has a
    method.
    """
    methods = {name for name in vars(VariantMetrics) if name.startswith("metric_")}
    assert methods == {*PUBLISHED, *QUEUE, "metric_instance_count"}
    assert {name for name in vars(HostMetrics) if name.startswith("metric_")} == set(HOST)
    methods |= set(HOST)
    published = {name for group in _load_groups() for name in group["metrics"]}
    of_components = {"ConcurrentRequestsPerCopy", "MemoryUtilizationNormalized"}
    assert published - {camel(method) for method in methods} == of_components


def _load_groups() -> list[dict[str, Any]]:
    path = Path(metric_definitions.__file__).with_name("published_metrics.json")
    groups: list[dict[str, Any]] = json.loads(path.read_text())["groups"]
    return groups


def test_unknown_metric_has_defaults(endpoint: VariantMetrics) -> None:
    """An unknown metric is a sum in the namespace of the invocations;
    each option can be changed.
    """
    found = stat(endpoint.metric("TokensGenerated"))
    assert (found.metric_name, found.namespace, found.statistic) == (
        "TokensGenerated",
        INVOCATIONS,
        "Sum",
    )


def test_latency_in_milliseconds(stack: cdk.Stack, endpoint: VariantMetrics) -> None:
    """Metric math divides the published microseconds by 1000, and alarms accept the result."""
    metric = endpoint.metric_model_latency(unit=MS, statistic="p90")
    metric.create_alarm(stack, "Slow", threshold=250, evaluation_periods=1)
    expression, source = only(synthesize(stack), "AWS::CloudWatch::Alarm")["Metrics"]
    assert expression["Expression"] == "m_ModelLatency_p90 / 1000"
    assert (source["Id"], source["ReturnData"]) == ("m_ModelLatency_p90", False)
    assert source["MetricStat"]["Stat"] == "p90"
    assert source["MetricStat"]["Unit"] == "Microseconds"


def test_latency_in_microseconds_is_as_published(endpoint: VariantMetrics) -> None:
    """Microseconds need no metric math."""
    assert isinstance(endpoint.metric_overhead_latency(unit=US), cloudwatch.Metric)


def test_latency_in_bytes_is_refused(endpoint: VariantMetrics) -> None:
    """A unit that is not a time raises an error."""
    with pytest.raises(
        InvalidValueError, match="unit: must be MICROSECONDS, MILLISECONDS or SECONDS, got BYTES"
    ):
        endpoint.metric_model_latency(unit=cloudwatch.Unit.BYTES)


@pytest.mark.parametrize(
    ("from_queue", "names"),
    [
        (False, {"total": "Invocations", "share": "InvocationsPerInstance"}),
        (True, {"total": "ApproximateBacklogSize", "share": "ApproximateBacklogSizePerInstance"}),
    ],
)
def test_instance_count_is_a_quotient(
    endpoint: VariantMetrics, from_queue: bool, names: dict[str, str]
) -> None:
    """All invocations, or all of the queue, are divided by those of each instance."""
    config = (
        endpoint.metric_instance_count(from_queue=from_queue).to_metric_config().math_expression
    )
    assert config is not None
    assert config.expression == "FLOOR(total / share + 0.5)"
    assert {part: stat(each).metric_name for part, each in config.using_metrics.items()} == names


def test_several_variants_have_metrics_of_their_own(stack: cdk.Stack) -> None:
    """With several variants, the metric methods of the endpoint raise an error,
    those of a variant work.
    """
    endpoint = import_endpoint(stack, variants={"a": None, "b": InstanceType.of("ml.g5.xlarge")})
    with pytest.raises(
        InvalidValueError,
        match=r"has 2 variants; call this method on one of them, for example endpoint\.variant\(",
    ):
        endpoint.metric_invocations()
    found = [dimensions(each.metric_invocations())["VariantName"] for each in endpoint.variants]
    assert found == ["a", "b"]


def test_dimensions_may_be_tokens(stack: cdk.Stack) -> None:
    """Names may be known only at deployment."""
    names: Any = {
        name: cdk.CfnParameter(stack, name).value_as_string for name in ("endpoint", "variant")
    }
    metric = variant_metric(
        "Invocations", endpoint_name=names["endpoint"], variant_name=names["variant"]
    )
    metric.to_cdk().create_alarm(stack, "Idle", threshold=1, evaluation_periods=1)
    assert only(synthesize(stack), "AWS::CloudWatch::Alarm")["Dimensions"] == [
        {"Name": "EndpointName", "Value": {"Ref": "endpoint"}},
        {"Name": "VariantName", "Value": {"Ref": "variant"}},
    ]
