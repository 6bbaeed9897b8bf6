"""The CloudFormation stacks of searches: created, deleted, and found again. A stack has one endpoint."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from constructs_triton_core.aws_reader import AwsReader, describe_failure
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_tools.measuring.tuning.racing import SearchStoppedError

__all__ = [
    "NAME_PREFIX",
    "FoundStack",
    "StackFailedError",
    "create_stack",
    "delete_archives",
    "delete_stack",
    "find_stacks",
]

NAME_PREFIX = "constructs-triton-tune-"
#: Of the expiry in the schedule and in the tag, in UTC.
TIME_FORMAT = "%Y-%m-%dT%H:%M:%S"
EXPIRES_TAG, BUCKET_TAG = "constructs-triton:expires", "constructs-triton:bucket"
PAUSE_SECONDS, _MOST_PAUSES = 10, 720
#: The account has no instances, or AWS has none: other candidates fail for the same reason.
_NO_INSTANCE = ("InsufficientInstanceCapacity", "ResourceLimitExceeded", "service limit")


class StackFailedError(SearchStoppedError):
    """A stack of a search could not be created or deleted.

    Args:
        message: What failed.
        is_of_account: Whether the account or AWS is the reason, and not the model.
    """

    def __init__(self, message: str, *, is_of_account: bool = True) -> None:
        super().__init__(message)
        self.is_of_account = is_of_account


# --- one stack --------------------------------------------------------------------------------------------


def create_stack(
    reader: AwsReader, name: str, template: Mapping[str, Any], *, expires: datetime, bucket: str
) -> None:
    """Create a stack and wait until its endpoint is in service.

    Args:
        reader: Calls AWS.
        name: Name of the stack and of its endpoint.
        template: The template.
        expires: When the endpoint is deleted.
        bucket: Bucket of the archives, for ``tune --clean``.

    Raises:
        StackFailedError: it cannot be created.
    """
    tags = {EXPIRES_TAG: f"{expires:{TIME_FORMAT}}Z", BUCKET_TAG: bucket}
    _call(
        reader,
        "cloudformation",
        "create_stack",
        StackName=name,
        TemplateBody=json.dumps(template),
        Capabilities=["CAPABILITY_IAM"],
        Tags=[{"Key": key, "Value": value} for key, value in tags.items()],
    )
    failure = _wait(reader, "stack_create_complete", name)
    if failure:
        reason = _first_failure(reader, name) or failure
        is_of_account = any(word in reason for word in _NO_INSTANCE)
        raise StackFailedError(f"stack {name}: {reason}", is_of_account=is_of_account)


def delete_stack(reader: AwsReader, name: str) -> None:
    """Delete a stack and wait; one that does not exist is no error.

    Raises:
        StackFailedError: it cannot be deleted.
    """
    _call(reader, "cloudformation", "delete_stack", StackName=name)
    failure = _wait(reader, "stack_delete_complete", name)
    # Whether CloudFormation deletes a stack whose endpoint the schedule has deleted is not settled.
    if failure and not _has_endpoint(reader, name):
        _call(reader, "cloudformation", "delete_stack", StackName=name, RetainResources=["Endpoint"])
        failure = _wait(reader, "stack_delete_complete", name)
    if failure:
        raise StackFailedError(f"stack {name}: {failure}; look at its events in CloudFormation")


def _has_endpoint(reader: AwsReader, name: str) -> bool:
    found = _call(reader, "sagemaker", "list_endpoints", NameContains=name)
    return name in [each["EndpointName"] for each in found["Endpoints"]]


def _wait(reader: AwsReader, waiter: str, name: str) -> str:
    """Wait for a stack, and return what is wrong with it; an empty string if nothing is."""
    from botocore.exceptions import BotoCoreError

    config = {"Delay": PAUSE_SECONDS, "MaxAttempts": _MOST_PAUSES}
    try:
        reader.client("cloudformation").get_waiter(waiter).wait(StackName=name, WaiterConfig=config)
    except BotoCoreError as error:  # a WaiterError has the last answer
        stacks = getattr(error, "last_response", {}).get("Stacks")
        return str(stacks[0]["StackStatus"] if stacks else error)
    return ""


def _first_failure(reader: AwsReader, name: str) -> str:
    events = reversed(_call(reader, "cloudformation", "describe_stack_events", StackName=name)["StackEvents"])
    failed = (each for each in events if each.get("ResourceStatus") == "CREATE_FAILED")
    return next((str(each.get("ResourceStatusReason", "")) for each in failed), "")


def _call(reader: AwsReader, service: str, operation: str, **request: Any) -> dict[str, Any]:
    from botocore.exceptions import ClientError

    try:
        return reader.require(service, operation, **request)
    except ClientError as error:
        raise StackFailedError(describe_failure(service, error)) from None
    except InvalidValueError as error:
        raise StackFailedError(str(error)) from None


# --- all stacks -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FoundStack:
    """A stack that a search has left, or that runs now.

    Args:
        name: Name of the stack.
        status: Its status.
        expires: When its endpoint is deleted, as ISO 8601 in UTC.
        bucket: Bucket of the archives; empty if the stack does not have the tag.
    """

    name: str
    status: str
    expires: str
    bucket: str

    @property
    def is_expired(self) -> bool:
        """Whether its endpoint was deleted by the schedule."""
        return self.expires <= f"{datetime.now(UTC):{TIME_FORMAT}}Z"

    @property
    def archives(self) -> str:
        """The prefix of the archives in the bucket, which all stacks of a search share."""
        return f"{self.name.rpartition('-')[0]}/"


def find_stacks(reader: AwsReader) -> Iterator[FoundStack]:
    """Yield the stacks of searches in the account and Region.

    Raises:
        InvalidValueError: AWS cannot be reached, or refuses the call.
    """
    for page in reader.pages("cloudformation", "describe_stacks"):
        for stack in page["Stacks"]:
            name, status = stack["StackName"], stack["StackStatus"]
            tags = {tag["Key"]: tag["Value"] for tag in stack.get("Tags", ())}
            if name.startswith(NAME_PREFIX) and EXPIRES_TAG in tags and status != "DELETE_COMPLETE":
                yield FoundStack(name, status, tags[EXPIRES_TAG], tags.get(BUCKET_TAG, ""))


def delete_archives(reader: AwsReader, bucket: str, prefix: str) -> None:
    """Delete the archives of a search.

    Raises:
        InvalidValueError: the archives cannot be listed.
        StackFailedError: S3 refuses to delete them.
    """
    for page in reader.pages("s3", "list_objects_v2", Bucket=bucket, Prefix=prefix):
        keys = [{"Key": each["Key"]} for each in page.get("Contents", ())]
        if keys:
            _call(reader, "s3", "delete_objects", Bucket=bucket, Delete={"Objects": keys})
