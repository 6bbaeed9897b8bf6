"""The CloudFormation stacks of searches: created, deleted, and found again."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from constructs_triton.errors import ConstructsTritonError, InvalidValueError
from constructs_triton.measuring.tuning.deployed.run_template import TIME_FORMAT
from constructs_triton.operations.aws_reader import AwsReader, describe_failure

__all__ = [
    "NAME_PREFIX",
    "FoundStack",
    "RunStack",
    "StackFailedError",
    "delete_archives",
    "find_stacks",
]

NAME_PREFIX = "constructs-triton-tune-"
EXPIRES_TAG, ARCHIVES_TAG = "constructs-triton:expires", "constructs-triton:archives"
PAUSE_SECONDS = 10.0
_ARCHIVES = re.compile(rf"s3://([a-z0-9.-]+)/({NAME_PREFIX}[0-9a-f]+/)")
#: The account has no instances, or AWS has none: other candidates fail for the same reason.
_NO_INSTANCE = ("InsufficientInstanceCapacity", "ResourceLimitExceeded", "service limit")


class StackFailedError(ConstructsTritonError):
    """A stack of a search could not be created or deleted.

    Args:
        message: What failed.
        is_of_account: Whether the account or AWS is the reason, and not the model.
    """

    def __init__(self, message: str, *, is_of_account: bool = True) -> None:
        super().__init__(message)
        self.is_of_account = is_of_account


# --- one stack --------------------------------------------------------------------------------------------


class RunStack:
    """A stack of a search, which has the name of its endpoint.

    Args:
        reader: Calls AWS.
        name: Name of the stack.
        report: Called with what takes minutes.
    """

    def __init__(self, reader: AwsReader, name: str, report: Callable[[str], None]) -> None:
        self.name = name
        self._reader = reader
        self._report = report
        self._id = name

    def create(self, body: Mapping[str, Any], expires: datetime, archives: str) -> None:
        """Create the stack and wait until its endpoint is in service.

        Args:
            body: The template.
            expires: When the endpoint is deleted.
            archives: Where the archives are, for ``tune --clean``.

        Raises:
            StackFailedError: it cannot be created.
        """
        self._report(f"creates the endpoint {self.name}, which takes minutes")
        tags = {EXPIRES_TAG: f"{expires:{TIME_FORMAT}}Z", ARCHIVES_TAG: archives}
        answer = self._call(
            "create_stack",
            TemplateBody=json.dumps(body),
            Capabilities=["CAPABILITY_IAM"],
            Tags=[{"Key": key, "Value": value} for key, value in tags.items()],
        )
        self._id = answer["StackId"]
        status = self._wait()
        if status != "CREATE_COMPLETE":
            reason = self._first_failure() or status
            is_of_account = any(word in reason for word in _NO_INSTANCE)
            raise StackFailedError(f"stack {self.name}: {reason}", is_of_account=is_of_account)

    def delete(self) -> None:
        """Delete the stack and wait; one that does not exist is no error.

        Raises:
            StackFailedError: it cannot be deleted.
        """
        self._report(f"deletes the endpoint {self.name}")
        status = self._delete()
        if status == "DELETE_FAILED" and not self._has_endpoint():
            status = self._delete(RetainResources=["Endpoint"])
        if status != "DELETE_COMPLETE":
            raise StackFailedError(f"stack {self.name}: {status}; look at its events in CloudFormation")

    def _delete(self, **request: Any) -> str:
        self._call("delete_stack", **request)
        try:
            return self._wait()
        except StackFailedError:
            if self._id == self.name:
                return "DELETE_COMPLETE"  # only the ARN finds a deleted stack
            raise

    def _has_endpoint(self) -> bool:
        """Whether the endpoint exists; the schedule may have deleted it.

        Whether CloudFormation then deletes the stack without this help is not settled.
        """
        found = self._reader.read("sagemaker", "list_endpoints", NameContains=self.name)
        names = [each["EndpointName"] for each in found.get("Endpoints", ())]
        return self.name in names or not found

    def _wait(self) -> str:
        while True:
            (stack,) = self._call("describe_stacks")["Stacks"]
            status = str(stack["StackStatus"])
            if not status.endswith("_IN_PROGRESS"):
                return status
            time.sleep(PAUSE_SECONDS)

    def _first_failure(self) -> str:
        events = reversed(self._call("describe_stack_events")["StackEvents"])
        failed = (each for each in events if each.get("ResourceStatus") == "CREATE_FAILED")
        return next((str(each.get("ResourceStatusReason", "")) for each in failed), "")

    def _call(self, operation: str, **request: Any) -> dict[str, Any]:
        from botocore.exceptions import ClientError

        try:
            return self._reader.require("cloudformation", operation, StackName=self._id, **request)
        except ClientError as error:
            raise StackFailedError(f"{describe_failure('cloudformation', error)}") from None


# --- all stacks -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FoundStack:
    """A stack that a search has left, or that runs now.

    Args:
        name: Name of the stack.
        status: Its status.
        expires: When its endpoint is deleted.
        bucket: Bucket of the archives; empty if the tag does not say.
        prefix: Where in the bucket they are.
    """

    name: str
    status: str
    expires: datetime
    bucket: str
    prefix: str

    @property
    def is_expired(self) -> bool:
        """Whether its endpoint was deleted by the schedule."""
        return self.expires <= datetime.now(UTC)


def find_stacks(reader: AwsReader) -> Iterator[FoundStack]:
    """Yield the stacks of searches in the account and Region.

    Raises:
        InvalidValueError: AWS cannot be reached, or refuses the call.
    """
    for page in reader.pages("cloudformation", "describe_stacks"):
        for stack in page["Stacks"]:
            tags = {tag["Key"]: tag["Value"] for tag in stack.get("Tags", ())}
            is_ours = stack["StackName"].startswith(NAME_PREFIX) and EXPIRES_TAG in tags
            if is_ours and stack["StackStatus"] != "DELETE_COMPLETE":
                yield _found(stack, tags)


def _found(stack: Mapping[str, Any], tags: Mapping[str, str]) -> FoundStack:
    try:
        expires = datetime.strptime(tags[EXPIRES_TAG], f"{TIME_FORMAT}Z").replace(tzinfo=UTC)
    except ValueError:
        raise InvalidValueError(
            f"stack {stack['StackName']}: the tag {EXPIRES_TAG} is not a time; delete the stack yourself"
        ) from None
    archives = _ARCHIVES.fullmatch(tags.get(ARCHIVES_TAG, ""))
    bucket, prefix = archives.groups() if archives else ("", "")
    return FoundStack(stack["StackName"], stack["StackStatus"], expires, bucket, prefix)


def delete_archives(reader: AwsReader, bucket: str, prefix: str) -> int:
    """Delete the archives of a search, and return how many there were.

    Raises:
        StackFailedError: S3 refuses it.
    """
    from botocore.exceptions import ClientError

    count = 0
    try:
        for page in reader.pages("s3", "list_objects_v2", Bucket=bucket, Prefix=prefix):
            keys = [{"Key": each["Key"]} for each in page.get("Contents", ())]
            if keys:
                reader.require("s3", "delete_objects", Bucket=bucket, Delete={"Objects": keys})
                count += len(keys)
    except ClientError as error:
        raise StackFailedError(describe_failure("s3", error)) from None
    return count
