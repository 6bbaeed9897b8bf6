"""What a deployed endpoint is doing: instances, models, scaling, alarms and the last deployment."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from constructs_triton_core.aws_reader import AwsError, AwsReader
from constructs_triton_core.cloud_assembly.endpoints import containers_of, instance_types_of
from constructs_triton_tools.assembly.utilization import share_of_instance
from constructs_triton_tools.aws.noting_reader import NotingReader
from constructs_triton_tools.operations.cloudwatch_logs import moment
from constructs_triton_tools.operations.component_state import ComponentState, read_components
from constructs_triton_tools.operations.served_archives import ServedArchives, served_archives
from triton_model_check.facts.images import version_of_image

if TYPE_CHECKING:
    import boto3

_ACTIVITIES = 3


@dataclass(frozen=True, slots=True)
class VariantState:
    """A production or shadow variant.

    Inference components share the instances of a variant. A variant that has them has no image and
    no archives.

    Args:
        name: Name of the variant.
        is_shadow: Whether it is a shadow variant.
        instance_type: Instance type; ``None`` if not known, or if there are several.
        instance_pools: Number of running instances of each type, in order of priority, if there are
            several.
        current_instances: Instances that run; ``None`` if not known.
        desired_instances: Instances that were asked for; ``None`` if not known.
        weight: Share of the traffic, relative to the other variants; ``None`` if not known.
        status: SageMaker's status during an update, such as ``Baking``; else ``None``.
        image: URI of the image; ``None`` if not known.
        triton_version: Version in the tag of ``image``, such as ``"26.05"``; ``None`` for other
            tags.
        inference_ami: Name of the AMI; ``None`` if none is set.
        archives: Archives that the variant serves; ``None`` if there is no model data.
    """

    name: str
    is_shadow: bool
    instance_type: str | None
    current_instances: int | None
    desired_instances: int | None
    weight: float | None
    status: str | None
    image: str | None
    triton_version: str | None
    inference_ami: str | None
    archives: ServedArchives | None
    instance_pools: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ScalingState:
    """The scaling of a variant or inference component.

    Args:
        name: Name of the variant or the component.
        unit: ``instances`` for a variant, ``copies`` for a component.
        minimum: Minimum capacity.
        maximum: Maximum capacity.
        policies: Name of each policy, with its metric and target, or its type.
        activities: Last activities, the newest first, one line each.
    """

    name: str
    unit: str
    minimum: int
    maximum: int
    policies: tuple[str, ...]
    activities: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EndpointState:
    """An endpoint at one moment.

    Args:
        name: Name of the endpoint.
        status: SageMaker's status, such as ``InService``.
        failure_reason: SageMaker's reason of a failure; ``None`` if there is none.
        endpoint_config: Configuration that runs now.
        last_modified: Time of the last change; ``None`` if not known.
        deployment: Type of the last deployment, such as ``ALL_AT_ONCE`` or ``ROLLING``.
        variants: Production variants, then shadow variants.
        pending: New instances of a running update, one line for each variant.
        components: Inference components with their copies.
        scaling: Scaling of variants and components.
        alarms: Alarms in state ALARM that watch the endpoint or a component, each with its reason.
        not_read: What could not be read, with the missing permission.
        captured_to: Prefix in S3 of captured requests; ``None`` if none are captured.
    """

    name: str
    status: str
    failure_reason: str | None
    endpoint_config: str
    last_modified: datetime | None
    deployment: str
    variants: tuple[VariantState, ...]
    pending: tuple[str, ...]
    components: tuple[ComponentState, ...]
    scaling: tuple[ScalingState, ...]
    alarms: tuple[str, ...]
    not_read: tuple[str, ...]
    captured_to: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the state as values that JSON can hold."""
        values = asdict(self)
        values["last_modified"] = self.last_modified.isoformat() if self.last_modified else None
        return values


def describe_endpoint(reader: AwsReader, name: str) -> dict[str, Any]:
    """Return SageMaker's description of an endpoint."""
    try:
        return reader.describe(
            f"endpoint {name}", "sagemaker", "describe_endpoint", EndpointName=name
        )
    except AwsError as error:
        if not error.is_absent:
            raise
        hint = f"{error.hint}, and whether it is stopped, or turned off by the switch of its stack"
        raise AwsError(error.reason, hint, error.code, is_absent=True) from None


def read_status(session: boto3.Session, name: str) -> EndpointState:
    """Read the state of an endpoint.

    Args:
        session: boto3 session with the Region and credentials.
        name: Name of the endpoint.

    Raises:
        InvalidValueError: the endpoint does not exist, or AWS cannot be reached.
    """
    reader = NotingReader(session)
    described = describe_endpoint(reader, name)
    config_name = described["EndpointConfigName"]
    config = reader.read("sagemaker", "describe_endpoint_config", EndpointConfigName=config_name)
    pending = described.get("PendingDeploymentSummary", {})
    components = tuple(read_components(reader, name))
    variants = tuple(_variants(reader, described, config))
    return EndpointState(
        name=name,
        status=described["EndpointStatus"],
        failure_reason=described.get("FailureReason"),
        endpoint_config=config_name,
        last_modified=described.get("LastModifiedTime"),
        deployment=_deployment(described.get("LastDeploymentConfig", {})),
        variants=variants,
        pending=tuple(_pending(pending)),
        components=components,
        scaling=tuple(_scaling(reader, name, components, variants)),
        alarms=tuple(map(_alarm, read_alarms(reader, name, components))),
        captured_to=_captured_to(name, config.get("DataCaptureConfig", {})),
        not_read=tuple(reader.not_read),
    )


def _variants(
    reader: NotingReader, described: Mapping[str, Any], config: Mapping[str, Any]
) -> Sequence[VariantState]:
    kinds = (("ProductionVariants", False), ("ShadowProductionVariants", True))
    found = []
    for member, is_shadow in kinds:
        declared = {variant["VariantName"]: variant for variant in config.get(member, [])}
        found += [
            _variant(reader, variant, declared.get(variant["VariantName"], {}), is_shadow)
            for variant in described.get(member, [])
        ]
    return found


def _variant(
    reader: NotingReader, running: Mapping[str, Any], declared: Mapping[str, Any], is_shadow: bool
) -> VariantState:
    container = container_of_model(reader, declared.get("ModelName"))
    images = [deployed.get("SpecifiedImage") for deployed in running.get("DeployedImages", [])]
    image = container.get("Image") or next(filter(None, images), None)
    statuses = [status["Status"] for status in running.get("VariantStatus", [])]
    return VariantState(
        name=running["VariantName"],
        is_shadow=is_shadow,
        instance_type=declared.get("InstanceType"),
        current_instances=running.get("CurrentInstanceCount"),
        desired_instances=running.get("DesiredInstanceCount"),
        weight=running.get("CurrentWeight"),
        status=", ".join(statuses) or None,
        image=image,
        triton_version=version_of_image(image),
        inference_ami=declared.get("InferenceAmiVersion"),
        archives=served_archives(reader, container) if container else None,
        instance_pools=_instance_pools(running, declared),
    )


def _instance_pools(running: Mapping[str, Any], declared: Mapping[str, Any]) -> Mapping[str, int]:
    """Return the number of instances of each type; nothing for a variant with one type."""
    if not declared.get("InstancePools"):
        return {}
    counts = dict.fromkeys(instance_types_of(declared), 0)
    for pool in running.get("InstancePools", []):
        if pool["InstanceType"] in counts:
            counts[pool["InstanceType"]] = pool.get("CurrentInstanceCount", 0)
    return counts


def container_of_model(reader: NotingReader, name: str | None) -> Mapping[str, Any]:
    """Return the container of a SageMaker model; an empty one without a model,
    or if it cannot be read.
    """
    described = reader.read("sagemaker", "describe_model", ModelName=name) if name else {}
    return next(iter(containers_of(described)), {})


def _deployment(config: Mapping[str, Any]) -> str:
    """Return the type of the last deployment in SageMaker's words."""
    if "RollingUpdatePolicy" in config:
        return "ROLLING"
    policy = config.get("BlueGreenUpdatePolicy", {})
    return str(policy.get("TrafficRoutingConfiguration", {}).get("Type", "ALL_AT_ONCE"))


def _captured_to(name: str, capture: Mapping[str, Any]) -> str | None:
    """Return where SageMaker writes captured requests:
    below the endpoint's name in the given prefix.
    """
    prefix = capture.get("DestinationS3Uri", "").rstrip("/")
    return f"{prefix}/{name}" if capture.get("EnableCapture") and prefix else None


def _pending(summary: Mapping[str, Any]) -> Sequence[str]:
    return [
        f"{variant['VariantName']}: {variant.get('CurrentInstanceCount', 0)} of "
        f"{variant.get('DesiredInstanceCount', '?')} new instances, {summary['EndpointConfigName']}"
        for variant in summary.get("ProductionVariants", [])
    ]


def _scaling(
    reader: NotingReader,
    name: str,
    components: Sequence[ComponentState],
    variants: Sequence[VariantState],
) -> Sequence[ScalingState]:
    """Read how the endpoint's variants and components are scaled."""
    component_ids = {component.resource_id for component in components}
    targets = scalable_targets(reader, name, component_ids)
    types = {
        variant.name: variant.instance_pools or filter(None, [variant.instance_type])
        for variant in variants
    }
    return [_scaling_of(reader, target, types) for target in targets]


def scalable_targets(
    reader: NotingReader, name: str, components: Collection[str]
) -> list[dict[str, Any]]:
    """Return the scalable targets of an endpoint's variants,
    and of components by their resource ids.
    """
    found = reader.read_list(
        "application-autoscaling",
        "describe_scalable_targets",
        "ScalableTargets",
        ServiceNamespace="sagemaker",
    )
    variants = f"endpoint/{name}/variant/"
    return [
        e for e in found if e["ResourceId"].startswith(variants) or e["ResourceId"] in components
    ]


def _scaling_of(
    reader: NotingReader, target: Mapping[str, Any], instance_types: Mapping[str, Iterable[str]]
) -> ScalingState:
    key = {"ServiceNamespace": "sagemaker", "ResourceId": target["ResourceId"]}
    policies = reader.read_list(
        "application-autoscaling", "describe_scaling_policies", "ScalingPolicies", **key
    )
    name = target["ResourceId"].rpartition("/")[2]
    types = tuple(instance_types.get(name, ()))
    return ScalingState(
        name=name,
        unit="instances" if target["ResourceId"].startswith("endpoint/") else "copies",
        minimum=target["MinCapacity"],
        maximum=target["MaxCapacity"],
        policies=tuple(_describe_policy(policy, types) for policy in policies),
        activities=tuple(
            describe_activity(activity)
            for activity in scaling_activities(reader, target["ResourceId"])
        ),
    )


def scaling_activities(reader: NotingReader, resource_id: str) -> list[dict[str, Any]]:
    """Return the last activities of a scalable target, the newest first."""
    answer = reader.read(
        "application-autoscaling",
        "describe_scaling_activities",
        ServiceNamespace="sagemaker",
        ResourceId=resource_id,
        MaxResults=_ACTIVITIES,
    )
    activities: list[dict[str, Any]] = answer.get("ScalingActivities", [])
    return activities


def _describe_policy(policy: Mapping[str, Any], instance_types: Sequence[str]) -> str:
    tracking = policy.get("TargetTrackingScalingPolicyConfiguration")
    if tracking is None:
        return f"{policy['PolicyName']} ({policy['PolicyType']})"
    predefined = tracking.get("PredefinedMetricSpecification", {}).get("PredefinedMetricType")
    own = tracking.get("CustomizedMetricSpecification", {}).get("MetricName", "metric math")
    share = share_of_instance(own, tracking["TargetValue"], instance_types)
    return (
        f"{policy['PolicyName']}: keeps {predefined or own} at {tracking['TargetValue']:g}{share}"
    )


def describe_activity(activity: Mapping[str, Any]) -> str:
    """Return a scaling activity in one line."""
    started = activity["StartTime"]
    text = f"{moment(started)} {activity['StatusCode']}: {activity['Description']}"
    return f"{text} {activity['StatusMessage']}" if activity.get("StatusMessage") else text


def read_alarms(
    reader: NotingReader, name: str, components: Sequence[ComponentState]
) -> list[dict[str, Any]]:
    """Return the alarms in state ALARM that watch an endpoint or one of its components."""
    alarms = reader.read_list("cloudwatch", "describe_alarms", "MetricAlarms", StateValue="ALARM")
    watched = [
        {"Name": "EndpointName", "Value": name},
        *({"Name": "InferenceComponentName", "Value": component.name} for component in components),
    ]
    return [alarm for alarm in alarms if watches(alarm, watched)]


def describe_alarm(alarm: Mapping[str, Any]) -> str:
    """Return an alarm in one line: its name, since when it is on, and what it means."""
    # The description of an alarm of this library ends with the command that prints this line.
    meaning = alarm.get("AlarmDescription", "").partition(" Find the cause:")[0]
    meaning = meaning or alarm.get("StateReason", "")
    return f"alarm {_alarm({**alarm, 'StateReason': meaning})}"


def _alarm(alarm: Mapping[str, Any]) -> str:
    since = alarm.get("StateTransitionedTimestamp") or alarm.get("StateUpdatedTimestamp")
    when = f", on since {moment(since)}" if since else ""
    return f"{alarm['AlarmName']}{when}: {alarm.get('StateReason', '')}"


def watches(alarm: Mapping[str, Any], dimensions: Sequence[Mapping[str, str]]) -> bool:
    """Return whether an alarm watches a metric with one of the dimensions."""
    watched = list(alarm.get("Dimensions", []))
    # An alarm on a metric math expression has its metrics in a list.
    for query in alarm.get("Metrics", []):
        watched += query.get("MetricStat", {}).get("Metric", {}).get("Dimensions", [])
    return any(dimension in watched for dimension in dimensions)
