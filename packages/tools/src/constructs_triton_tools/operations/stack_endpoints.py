"""The endpoints of a CloudFormation stack, or why it has none: its creation failed,
or was rolled back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from constructs_triton_core.cloud_assembly.endpoints import ENDPOINT_TYPES
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_tools.aws.noting_reader import NotingReader
from constructs_triton_tools.aws.stack_resources import nested_stack_of, stack_resources
from constructs_triton_tools.operations.cloudwatch_logs import log_group_of
from constructs_triton_tools.operations.diagnosis import Diagnosis, Message, diagnose
from constructs_triton_tools.operations.endpoint_diagnosis import (
    describe_event,
    first_failed_event,
    log_messages,
)

if TYPE_CHECKING:
    import boto3


class NoEndpointError(InvalidValueError):
    """A stack exists, but has no SageMaker endpoint."""


def endpoints_of_stack(session: boto3.Session, stack: str) -> list[str]:
    """Return the names of the SageMaker endpoints of a CloudFormation stack and its nested stacks.

    Args:
        session: boto3 session with the Region and credentials.
        stack: Name or id of the stack.

    Raises:
        InvalidValueError: the stack does not exist, cannot be read, or has no endpoint.
    """
    reader = NotingReader(session)
    resources = list(stack_resources(reader.read_list, stack))
    if reader.not_read:
        raise InvalidValueError(f"--stack: {reader.not_read[0]}")
    names = endpoints_among(resources)
    if not names:
        raise NoEndpointError(
            f"--stack: {stack} has no SageMaker endpoint; check the name, and whether it is off, "
            f"or if its deployment failed, run `constructs-triton diagnose --stack {stack}`"
        )
    return [_given_name(reader, name) for name in names]


def _given_name(reader: NotingReader, name: str) -> str:
    """Return an endpoint's name as it was given, which its metrics, logs and scaling have.

    SageMaker finds an endpoint in any case (API reference, CreateEndpoint, EndpointName).
    """
    described = reader.read("sagemaker", "describe_endpoint", EndpointName=name)
    return str(described.get("EndpointName", name))


def endpoints_among(resources: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the SageMaker endpoints among the resources of a stack, by the name in their ARN.

    ARNs have the name in lower case.
    """
    return [
        resource["PhysicalResourceId"].rpartition("/")[2]
        for resource in resources
        if resource["ResourceType"] in ENDPOINT_TYPES
        and resource.get("PhysicalResourceId")
        and resource.get("ResourceStatus") != "DELETE_COMPLETE"
    ]


@dataclass(frozen=True, slots=True)
class StackDiagnosis:
    """Why a stack has no endpoint.

    Args:
        stack: Name or id of the stack.
        status: CloudFormation's status, such as ``ROLLBACK_COMPLETE``; ``None`` if not known.
        resource: The first resource that failed; ``None`` if none did.
        diagnoses: Failures, the likeliest cause first.
        facts: Sentences about the stack that were read on the way.
        not_read: What could not be read, with the missing permission.
    """

    stack: str
    status: str | None
    resource: str | None
    diagnoses: tuple[Diagnosis, ...]
    facts: tuple[str, ...]
    not_read: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the diagnosis as values that JSON can hold."""
        return {**asdict(self), "diagnoses": [diagnosis.to_dict() for diagnosis in self.diagnoses]}


def diagnose_stack(session: boto3.Session, stack: str) -> StackDiagnosis:
    """Read the events of a stack without an endpoint and return what failed."""
    reader = NotingReader(session)
    events = list(
        reader.read_list("cloudformation", "describe_stack_events", "StackEvents", StackName=stack)
    )
    of_stack = (event for event in events if event["PhysicalResourceId"] == event["StackId"])
    status = next((event["ResourceStatus"] for event in of_stack), None)
    failed = first_failed_event(events)
    if failed is not None:
        failed = _cause(reader, failed)
    facts: list[str] = []
    found = [] if failed is None else diagnose(list(_messages(reader, failed, facts)))
    return StackDiagnosis(
        stack=stack,
        status=status,
        resource=None if failed is None else failed["LogicalResourceId"],
        diagnoses=tuple(found),
        facts=tuple(facts),
        not_read=tuple(reader.not_read),
    )


def _cause(reader: NotingReader, failed: dict[str, Any]) -> dict[str, Any]:
    """Return what failed in a nested stack, whose own event only says that the stack failed."""
    nested = nested_stack_of(failed)
    if nested is None or nested == failed["StackId"]:
        return failed
    events = list(
        reader.read_list("cloudformation", "describe_stack_events", "StackEvents", StackName=nested)
    )
    # The rollback of the parent deletes a nested stack that could not be created.
    before = (event for event in events if event["Timestamp"] <= failed["Timestamp"])
    inner = first_failed_event(before)
    if inner is None or inner["StackId"] == failed["StackId"]:
        return failed
    return _cause(reader, inner)


def _messages(
    reader: NotingReader, failed: Mapping[str, Any], facts: list[str]
) -> Iterator[Message]:
    text = describe_event(failed)
    facts.append(f"first failed event of the stack: {text}")
    yield Message(text, "CloudFormation event")
    name = failed.get("PhysicalResourceId", "").rpartition("/")[2]
    if failed["ResourceType"] in ENDPOINT_TYPES and name:  # its log outlives an endpoint
        yield from log_messages(reader, log_group_of(name), "Failed", {}, facts)
