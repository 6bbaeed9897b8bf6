"""Finds out why a deployed endpoint does not work.

The order is that of the causes: SageMaker's own reason, the first failed event of the last
operation of CloudFormation, the scaling activities, and the end of the container logs. Alarms are
facts without a cause.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from constructs_triton_core.aws_reader import AwsError
from constructs_triton_core.cloud_assembly.endpoints import ENDPOINT_TYPES
from constructs_triton_tools.aws.noting_reader import NotingReader
from constructs_triton_tools.aws.stack_resources import stack_resources
from constructs_triton_tools.operations.cloudwatch_logs import (
    LogLine,
    component_log_group_of,
    log_group_of,
    moment,
    read_streams,
)
from constructs_triton_tools.operations.component_state import ComponentState, read_components
from constructs_triton_tools.operations.container_log import release
from constructs_triton_tools.operations.diagnosis import Diagnosis, Message, diagnose, diagnose_log
from constructs_triton_tools.operations.status import (
    container_of_model,
    describe_alarm,
    describe_endpoint,
    read_alarms,
    scaling_activities,
)
from triton_model_check.facts.images import version_of_image

if TYPE_CHECKING:
    import boto3

_GOOD = "InService"
#: The states in which the endpoint's only configuration is the one that its log is about.
_CREATED_ONCE = ("Creating", "Failed")
_CHANGING = ("Creating", "Updating", "SystemUpdating", "Deleting")
#: What an endpoint says while it is rolled back. Afterwards it is in service again.
_ROLLED_BACK = '"EndpointStatus": "RollingBack"'
_STACK_TAG = "aws:cloudformation:stack-id"


@dataclass(frozen=True, slots=True)
class EndpointDiagnosis:
    """Why an endpoint does not work.

    Args:
        endpoint: Name of the endpoint.
        status: SageMaker's status, such as ``Failed``.
        is_failed: Whether something is wrong, also if no failure is recognized.
        diagnoses: Failures, the likeliest cause first.
        facts: Sentences about the endpoint that were read on the way.
        not_read: What could not be read, with the missing permission.
    """

    endpoint: str
    status: str
    is_failed: bool
    diagnoses: tuple[Diagnosis, ...]
    facts: tuple[str, ...]
    not_read: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the diagnosis as values that JSON can hold."""
        return {**asdict(self), "diagnoses": [diagnosis.to_dict() for diagnosis in self.diagnoses]}


def diagnose_endpoint(session: boto3.Session, name: str) -> EndpointDiagnosis:
    """Read what AWS knows about an endpoint and return what is wrong.

    Args:
        session: boto3 session with the Region and credentials.
        name: Name of the endpoint.

    Raises:
        InvalidValueError: the endpoint does not exist, or AWS cannot be reached.
    """
    reader = NotingReader(session)
    described = describe_endpoint(reader, name)
    components = list(read_components(reader, name))
    alarms = read_alarms(reader, name, components)
    facts = [describe_alarm(alarm) for alarm in alarms if not _only_scales(alarm)]
    has_alarm = bool(facts)
    stack = _stack_of(reader, described)
    config = _running_config(reader, described)
    messages = [
        *_endpoint_messages(described, facts),
        *_component_messages(components, facts),
        *_stack_messages(reader, described, stack, facts),
        *_scaling_messages(reader, described, components),
    ]
    found = diagnose([*messages, *_all_log_messages(reader, described, config, components, facts)])
    is_bad_release = found or any(_shows_release(alarm) for alarm in alarms)
    if stack and not messages and is_bad_release and "CreationTime" in config:
        facts.append(
            f"this version was deployed at {moment(config['CreationTime'])}; to go back, check out "
            f"the version before it, and deploy stack {stack.split('/')[1]}"
        )
    is_bad = described["EndpointStatus"] not in (_GOOD, *_CHANGING)
    return EndpointDiagnosis(
        endpoint=name,
        status=described["EndpointStatus"],
        is_failed=is_bad or bool(found) or bool(messages) or has_alarm,
        diagnoses=tuple(found),
        facts=tuple(facts),
        not_read=tuple(reader.not_read),
    )


def _shows_release(alarm: Mapping[str, Any]) -> bool:
    """Whether an alarm may be on because of a bad release: it watches errors or latency."""
    return str(alarm.get("MetricName")).endswith(("Errors", "Latency"))


def _only_scales(alarm: Mapping[str, Any]) -> bool:
    """Whether all that an alarm does is to call scaling policies: it is often on,
    and nothing is wrong.
    """
    actions = alarm.get("AlarmActions", [])
    return bool(actions) and all(":scalingPolicy:" in action for action in actions)


def _endpoint_messages(described: Mapping[str, Any], facts: list[str]) -> Iterator[Message]:
    status = described["EndpointStatus"]
    reason = described.get("FailureReason")
    if reason:
        facts.append(f"SageMaker's reason: {reason}")
        yield Message(reason, "FailureReason")
    if status in ("RollingBack", "UpdateRollbackFailed"):
        yield Message(f'"EndpointStatus": "{status}"', "DescribeEndpoint")


def _component_messages(
    components: Sequence[ComponentState], facts: list[str]
) -> Iterator[Message]:
    for component in components:
        if component.current_copies == 0 and component.status == "InService":
            facts.append(
                f"inference component {component.name} has zero copies; "
                "a call wakes it if it scales"
            )
        if component.failure_reason:
            facts.append(
                f"SageMaker's reason for inference component {component.name}: "
                f"{component.failure_reason}"
            )
            yield Message(component.failure_reason, f"FailureReason of {component.name}")


def _stack_of(reader: NotingReader, described: Mapping[str, Any]) -> str | None:
    """Return the ARN of the endpoint's stack; ``None`` if it belongs to none."""
    tags = reader.read("sagemaker", "list_tags", ResourceArn=described["EndpointArn"]).get(
        "Tags", []
    )
    return {tag["Key"]: tag["Value"] for tag in tags}.get(_STACK_TAG)


def _stack_messages(
    reader: NotingReader, described: Mapping[str, Any], stack: str | None, facts: list[str]
) -> Iterator[Message]:
    if stack is None:
        return
    events = list(
        reader.read_list("cloudformation", "describe_stack_events", "StackEvents", StackName=stack)
    )
    failed = first_failed_event(events)
    if failed is not None:
        text = describe_event(failed)
        if _is_of_another_endpoint(failed, described):
            facts.append(f"the last operation of the stack failed at another endpoint: {text}")
            return
        facts.append(f"first failed event of the stack: {text}")
        facts.append(_outcome(events, failed, described["EndpointStatus"]))
        message = Message(text, "CloudFormation event")
        yield message
        is_of_endpoint = failed["ResourceType"] in ENDPOINT_TYPES
        if is_of_endpoint and described["EndpointStatus"] == _GOOD and not diagnose([message]):
            yield Message(_ROLLED_BACK, "CloudFormation event", shown=text)
    yield from _rollback_messages(reader, described, stack)


def _outcome(events: Sequence[Mapping[str, Any]], failed: Mapping[str, Any], status: str) -> str:
    """Return when an operation of a stack failed, what became of the stack, and what serves."""
    of_stack = (event for event in events if event["PhysicalResourceId"] == event["StackId"])
    stack = next((event["ResourceStatus"] for event in of_stack), "an unknown status")
    is_undone = status == _GOOD and stack == "UPDATE_ROLLBACK_COMPLETE"
    serves = "; the version before serves" if is_undone else ""
    return f"it failed at {moment(failed['Timestamp'])}, and the stack is in {stack}{serves}"


def describe_event(event: Mapping[str, Any]) -> str:
    """Return an event of a stack in one line."""
    reason = event.get("ResourceStatusReason", "no reason given")
    return f"{event['LogicalResourceId']} {event['ResourceStatus']}: {reason}"


def _is_of_another_endpoint(failed: Mapping[str, Any], described: Mapping[str, Any]) -> bool:
    """Whether the event is about an endpoint with another name.

    ARNs have the name in lower case.
    """
    name = failed.get("PhysicalResourceId", "").rpartition("/")[2].lower()
    return bool(
        failed["ResourceType"] in ENDPOINT_TYPES
        and name
        and name != described["EndpointName"].lower()
    )


def first_failed_event(events: Iterable[dict[str, Any]]) -> dict[str, Any] | None:
    """Return the earliest failed event of the last operation of events, the newest first."""
    first = None
    for event in events:
        if event["PhysicalResourceId"] == event["StackId"] and event["ResourceStatus"] in (
            "CREATE_IN_PROGRESS",
            "UPDATE_IN_PROGRESS",
            "DELETE_IN_PROGRESS",
        ):
            return first
        is_failed = event["ResourceStatus"].endswith("_FAILED")
        if is_failed and "cancelled" not in event.get("ResourceStatusReason", ""):
            first = event
    return first


def _rollback_messages(
    reader: NotingReader, described: Mapping[str, Any], stack: str
) -> Iterator[Message]:
    """Compare the configuration that runs with the one that the stack deployed."""
    if described["EndpointStatus"] != _GOOD:
        return
    resources = list(stack_resources(reader.read_list, stack))
    deployed = {
        resource["PhysicalResourceId"].rpartition("/")[2]
        for resource in resources
        if resource["ResourceType"] == "AWS::SageMaker::EndpointConfig"
        and resource.get("PhysicalResourceId")
        and resource["ResourceStatus"] != "DELETE_COMPLETE"
    }
    running = described["EndpointConfigName"]
    if deployed and running not in deployed:
        text = f"the endpoint runs {running}, and the stack deployed {', '.join(sorted(deployed))}"
        yield Message(_ROLLED_BACK, "DescribeEndpoint", shown=text)


def _scaling_messages(
    reader: NotingReader, described: Mapping[str, Any], components: Sequence[ComponentState]
) -> Iterator[Message]:
    resources = {component.resource_id: component.name for component in components}
    for variant in described.get("ProductionVariants", []):
        name = variant["VariantName"]
        resources[f"endpoint/{described['EndpointName']}/variant/{name}"] = name
    for resource, name in resources.items():
        for activity in scaling_activities(reader, resource)[:1]:
            if activity["StatusCode"] == "Failed":
                text = f"{activity['Description']} {activity.get('StatusMessage', '')}"
                yield Message(text, f"scaling activity of {name}")


def _all_log_messages(
    reader: NotingReader,
    described: Mapping[str, Any],
    config: Mapping[str, Any],
    components: Sequence[ComponentState],
    facts: list[str],
) -> Iterator[Message]:
    """Read the log of each component, or that of an endpoint without components.

    Of an endpoint in service, what instances wrote before its configuration was created is left
    out: they had an earlier one. After an update that was rolled back, the configuration is the old
    one.
    """
    status = described["EndpointStatus"]
    since = config.get("CreationTime") if status == _GOOD else None
    if not components:
        group = log_group_of(described["EndpointName"])
        # The configuration of an update that failed is not known.
        variants = config.get("ProductionVariants", []) if status in _CREATED_ONCE else []
        models = {variant["VariantName"]: variant["ModelName"] for variant in variants}
        yield from log_messages(reader, group, status, models, facts, since=since)
    for component in components:
        group = component_log_group_of(component.name)
        yield from log_messages(
            reader, group, component.status, {component.name: component.model}, facts, since=since
        )


def _running_config(reader: NotingReader, described: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the configuration that runs; an empty one if it is deleted or cannot be read."""
    if described["EndpointStatus"] not in (_GOOD, *_CREATED_ONCE):
        return {}
    name = described["EndpointConfigName"]
    try:
        return reader.find("sagemaker", "describe_endpoint_config", EndpointConfigName=name) or {}
    except AwsError as error:
        reader.note(error)
        return {}


def log_messages(
    reader: NotingReader,
    group: str,
    status: str,
    models: Mapping[str, str | None],
    facts: list[str],
    *,
    since: datetime | None = None,
) -> list[Message]:
    """Return the messages of a log group; without a log, add that to ``facts``."""
    streams = read_streams(reader, group, since)
    has_log = bool(streams) or status == _GOOD
    if not (has_log or reader.not_read):
        facts.append(
            f"there is no log in {group}: no container has started, so the cause is the "
            "image, the driver of the host, permissions or capacity"
        )
        return []
    versions: dict[str, str | None] = {}
    # Each version is one call of AWS, and an endpoint in service needs none.
    if streams and status != _GOOD:
        for name, model in models.items():
            image = container_of_model(reader, model).get("Image")
            versions[name] = version_of_image(image)

    messages: list[Message] = []
    for stream, lines in (streams or {}).items():
        # The name of a stream begins with that of its variant.
        version = versions.get(stream.partition("/")[0])
        messages += _stream_messages(stream, lines, version)
    return messages


def _stream_messages(
    stream: str, lines: Sequence[LogLine], version: str | None
) -> Iterator[Message]:
    """Yield the messages of a log stream that the catalogue explains, with their last times.

    ``version`` is the Triton release of the image; the one in the log is more certain.
    """
    log = "\n".join(line.text for line in lines)
    last_times = {}
    for line in lines:
        for text in line.text.splitlines():
            last_times[text.strip()] = line.time

    version = release(log) or version
    for diagnosis in diagnose_log(log, f"log stream {stream}", triton_version=version):
        when = ""
        if diagnosis.line in last_times:
            when = f", {moment(last_times[diagnosis.line])}"
        yield Message(
            diagnosis.line, f"{diagnosis.source}{when}", is_log=True, triton_version=version
        )
