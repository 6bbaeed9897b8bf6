"""Finds endpoints without calls, and what they cost.

CloudWatch counts the invocations of each variant and each inference component. Calls of warm-up,
verification and canaries count too, so the caller chooses how many calls are still "idle".
SageMaker publishes no figure for a single model of a multi-model endpoint.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from constructs_triton_core.aws_reader import AwsReader
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_tools.aws.noting_reader import NotingReader

if TYPE_CHECKING:
    import boto3

#: The largest number of queries of one GetMetricData request.
_QUERIES = 500
_PERIOD = timedelta(days=1)
_STACK_TAG = "aws:cloudformation:stack-name"
_SERVING = ("InService", "Updating", "SystemUpdating", "RollingBack", "UpdateRollbackFailed")


@dataclass(frozen=True, slots=True)
class Counted:
    """A metric whose data points of a period are added up."""

    metric: str
    dimensions: tuple[tuple[str, str], ...]


def count_calls(
    reader: AwsReader, metrics: Sequence[Counted], start: datetime, end: datetime
) -> Mapping[Counted, int]:
    """Return the sum of each metric. CloudWatch has no data points where nothing was called: the
    sum is 0.

    Raises:
        InvalidValueError: a metric cannot be read. A missing figure would look like an idle
            endpoint.
    """
    counts: dict[Counted, int] = {}
    for first in range(0, len(metrics), _QUERIES):
        batch = metrics[first : first + _QUERIES]
        sums = dict.fromkeys(range(len(batch)), 0.0)
        for result in _results(reader, batch, start, end):
            sums[int(result["Id"][1:])] += sum(result["Values"])
        counts |= {metric: round(sums[index]) for index, metric in enumerate(batch)}
    return counts


def _results(
    reader: AwsReader, metrics: Sequence[Counted], start: datetime, end: datetime
) -> Iterator[Mapping[str, Any]]:
    queries = [_query(index, metric) for index, metric in enumerate(metrics)]
    request = {"MetricDataQueries": queries, "StartTime": start, "EndTime": end}
    for result in reader.members("cloudwatch", "get_metric_data", "MetricDataResults", **request):
        if result["StatusCode"] not in ("Complete", "PartialData"):
            reasons = "; ".join(message.get("Value", "") for message in result.get("Messages", []))
            raise InvalidValueError(
                f"cloudwatch:GetMetricData: {result['StatusCode']} {reasons}".rstrip()
                + "; without the figures nothing can be called idle, run the command again"
            )
        yield result


def _query(index: int, counted: Counted) -> dict[str, Any]:
    dimensions = [{"Name": name, "Value": value} for name, value in counted.dimensions]
    metric = {"Namespace": "AWS/SageMaker", "MetricName": counted.metric, "Dimensions": dimensions}
    period = int(_PERIOD.total_seconds())
    return {"Id": f"m{index}", "MetricStat": {"Metric": metric, "Period": period, "Stat": "Sum"}}


@dataclass(frozen=True, slots=True)
class IdleComponent:
    """An inference component without calls.

    It shares its instances, so it has no cost of its own.
    """

    name: str
    endpoint: str
    calls: int


@dataclass(frozen=True, slots=True)
class BilledVariant:
    """A variant with instances.

    Args:
        endpoint: Name of the endpoint.
        name: Name of the variant.
        instances: Number of running instances of each instance type.
        calls: Invocations in the period, those of its inference components included.
        has_backlog: Whether requests waited in the queue of an asynchronous endpoint.
        is_only: Whether the endpoint has no other variant with instances.
        stack: Name of the CloudFormation stack; ``None`` if another program created the endpoint.
        tags: Tags of the endpoint without those of CloudFormation.
    """

    endpoint: str
    name: str
    instances: Mapping[str, int]
    calls: int
    has_backlog: bool
    is_only: bool
    stack: str | None
    tags: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class IdleReport:
    """What a search found.

    Args:
        looked_at: Number of variants with instances whose calls were counted.
        without_instances: Number of variants that have no instance now.
        variants: Idle variants.
        components: Idle inference components of endpoints that are not idle.
        too_young: Names of endpoints that were created in the period.
        not_serving: Status of endpoints that do not serve, by name.
        disagreements: Endpoints about which AWS Compute Optimizer says something else.
        not_read: What could not be read.
    """

    looked_at: int
    without_instances: int
    variants: tuple[BilledVariant, ...]
    components: tuple[IdleComponent, ...]
    too_young: tuple[str, ...]
    not_serving: Mapping[str, str]
    disagreements: tuple[str, ...]
    not_read: tuple[str, ...]


def find_idle(
    session: boto3.Session, *, now: datetime, period: timedelta = timedelta(days=14), below: int = 1
) -> IdleReport:
    """Count the calls of every endpoint of a Region."""
    reader = NotingReader(session)
    survey = _Survey(start=now - period)
    for listed in reader.members("sagemaker", "list_endpoints", "Endpoints"):
        survey.add(reader, listed)
    counts = count_calls(reader, survey.metrics(), survey.start, now)
    variants = [
        _counted(reader, variant, counts) for variant in survey.variants if variant.instances
    ]
    idle = tuple(
        variant for variant in variants if variant.calls < below and not variant.has_backlog
    )
    return IdleReport(
        looked_at=len(variants),
        without_instances=sum(not variant.instances for variant in survey.variants),
        variants=idle,
        components=tuple(_idle_components(survey.variants, idle, counts, below)),
        too_young=tuple(survey.too_young),
        not_serving=survey.not_serving,
        disagreements=tuple(_disagreements(reader, variants, idle)),
        not_read=tuple(reader.not_read),
    )


@dataclass(frozen=True, slots=True)
class _Variant:
    """A variant before its calls are counted."""

    endpoint: str
    arn: str
    name: str
    instances: Mapping[str, int]
    is_asynchronous: bool
    is_only: bool
    components: Sequence[str]

    @property
    def calls(self) -> Counted:
        return Counted("Invocations", (("EndpointName", self.endpoint), ("VariantName", self.name)))

    @property
    def backlog(self) -> Counted:
        return Counted("ApproximateBacklogSize", (("EndpointName", self.endpoint),))

    def metrics(self) -> Iterator[Counted]:
        """Yield the metrics that count what the variant does."""
        yield self.calls
        yield from map(_calls_of_component, self.components)
        if self.is_asynchronous:
            yield self.backlog


@dataclass
class _Survey:
    """The endpoints of a Region."""

    start: datetime
    variants: list[_Variant] = field(default_factory=list)
    too_young: list[str] = field(default_factory=list)
    not_serving: dict[str, str] = field(default_factory=dict)

    def add(self, reader: NotingReader, listed: Mapping[str, Any]) -> None:
        name = listed["EndpointName"]
        status = listed["EndpointStatus"]
        if status not in _SERVING:
            self.not_serving[name] = status
        elif listed["CreationTime"] > self.start:
            self.too_young.append(name)
        else:
            self.variants += _variants(reader, name)

    def metrics(self) -> list[Counted]:
        """Return the metrics of all variants, each once."""
        found: list[Counted] = []
        for variant in self.variants:
            found += variant.metrics()
        return list(dict.fromkeys(found))


def _all_variants(answer: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the production variants of an endpoint or a configuration, then the shadow ones."""
    return [*answer.get("ProductionVariants", []), *answer.get("ShadowProductionVariants", [])]


def _variants(reader: NotingReader, endpoint: str) -> list[_Variant]:
    """Read the variants of an endpoint; none if it does not exist."""
    described = reader.read("sagemaker", "describe_endpoint", EndpointName=endpoint)
    if not described:
        return []
    config = reader.read(
        "sagemaker", "describe_endpoint_config", EndpointConfigName=described["EndpointConfigName"]
    )
    types = {
        variant["VariantName"]: variant.get("InstanceType") for variant in _all_variants(config)
    }
    instances = {
        variant["VariantName"]: _instances(variant, types.get(variant["VariantName"]))
        for variant in _all_variants(described)
    }
    with_instances = {name for name, counts in instances.items() if counts}
    is_asynchronous = "AsyncInferenceConfig" in described or "AsyncInferenceConfig" in config

    components = _components(reader, endpoint)
    return [
        _Variant(
            endpoint=endpoint,
            arn=described["EndpointArn"],
            name=name,
            instances=counts,
            is_asynchronous=is_asynchronous,
            is_only=with_instances <= {name},
            components=components.get(name, []),
        )
        for name, counts in instances.items()
    ]


def _instances(running: Mapping[str, Any], declared_type: str | None) -> dict[str, int]:
    """Return the number of instances of each type.

    With instance pools, only the pools name the types.
    """
    pools = Counter[str]()
    for pool in running.get("InstancePools", []):
        pools[pool["InstanceType"]] += pool.get("CurrentInstanceCount", 0)
    if not pools:
        pools[declared_type or "unknown type"] = running.get("CurrentInstanceCount", 0)
    return {name: count for name, count in pools.items() if count}


def _components(reader: NotingReader, endpoint: str) -> dict[str, list[str]]:
    """Return the names of the inference components by variant."""
    found: dict[str, list[str]] = {}
    listed = "list_inference_components", "InferenceComponents"
    for component in reader.members("sagemaker", *listed, EndpointNameEquals=endpoint):
        found.setdefault(component["VariantName"], []).append(component["InferenceComponentName"])
    return found


def _calls_of_component(name: str) -> Counted:
    return Counted("Invocations", (("InferenceComponentName", name),))


def _counted(
    reader: NotingReader, variant: _Variant, counts: Mapping[Counted, int]
) -> BilledVariant:
    # SageMaker may count a call of a component for its variant too.
    components = sum(counts[_calls_of_component(name)] for name in variant.components)
    tags = {
        tag["Key"]: tag["Value"]
        for tag in reader.read_list("sagemaker", "list_tags", "Tags", ResourceArn=variant.arn)
    }
    return BilledVariant(
        endpoint=variant.endpoint,
        name=variant.name,
        instances=variant.instances,
        calls=max(counts[variant.calls], components),
        has_backlog=variant.is_asynchronous and counts[variant.backlog] > 0,
        is_only=variant.is_only,
        stack=tags.get(_STACK_TAG),
        tags={key: value for key, value in tags.items() if not key.startswith("aws:")},
    )


def _idle_components(
    variants: Iterable[_Variant],
    idle: Iterable[BilledVariant],
    counts: Mapping[Counted, int],
    below: int,
) -> Iterator[IdleComponent]:
    """Yield the idle components whose variant other components keep in use."""
    leaving = {(unused.endpoint, unused.name) for unused in idle}
    for variant in variants:
        for name in variant.components:
            calls = counts[_calls_of_component(name)]
            if calls < below and (variant.endpoint, variant.name) not in leaving:
                yield IdleComponent(name, variant.endpoint, calls)


def _disagreements(
    reader: NotingReader, variants: Sequence[BilledVariant], idle: Sequence[BilledVariant]
) -> Iterator[str]:
    """Compare with AWS Compute Optimizer, if the account has opted in."""
    theirs = _idle_for_compute_optimizer(reader)
    if theirs is None:
        return
    used = {variant.endpoint: variant.calls for variant in variants if variant not in idle}
    ours = {variant.endpoint for variant in idle} - set(used)
    for name in sorted(theirs & set(used)):
        yield (
            f"{name}: AWS Compute Optimizer calls it idle; CloudWatch counted {used[name]:,} calls"
        )
    for name in sorted(ours - theirs):
        yield f"{name}: AWS Compute Optimizer does not call it idle"


def _idle_for_compute_optimizer(reader: NotingReader) -> set[str] | None:
    request: dict[str, Any] = {
        "filters": [{"name": "ResourceType", "values": ["SageMakerEndpoint"]}]
    }
    found: set[str] = set()
    try:
        while True:
            known = len(reader.not_read)
            answer = reader.read("compute-optimizer", "get_idle_recommendations", **request)
            if len(reader.not_read) > known:
                return None
            arns = (
                str(recommendation["resourceArn"])
                for recommendation in answer["idleRecommendations"]
            )
            found |= {arn.rpartition("/")[2] for arn in arns}
            if not answer.get("nextToken"):
                return found
            request["nextToken"] = answer["nextToken"]
    except InvalidValueError as error:  # not every Region has the service
        reader.not_read.append(f"compute-optimizer:GetIdleRecommendations: {error}")
        return None
