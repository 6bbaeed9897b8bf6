"""Calls of AWS that stop and start an endpoint."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from constructs_triton_core.aws.aws_reader import AwsReader, describe_failure
from constructs_triton_core.errors import InvalidValueError

if TYPE_CHECKING:
    import boto3

__all__ = ["AwsCalls"]

_POLL_SECONDS = 15


class AwsCalls:
    """Calls AWS with our errors.

    Args:
        session: boto3 session with the Region and credentials.
        timeout: Longest time to wait for an endpoint.
    """

    def __init__(self, session: boto3.Session, timeout: timedelta = timedelta(hours=1)) -> None:
        self._reader = AwsReader(session)
        self._timeout = timeout

    @property
    def region(self) -> str:
        return str(self._reader.client("sagemaker").meta.region_name)

    def call(self, service: str, operation: str, **request: Any) -> dict[str, Any]:
        """Return the answer of an operation.

        Raises:
            InvalidValueError: AWS cannot be reached, or refuses the call.
        """
        answer = self.call_unless(service, operation, (), **request)
        assert answer is not None
        return answer

    def call_unless(
        self, service: str, operation: str, absent: Iterable[str], **request: Any
    ) -> dict[str, Any] | None:
        """Return the answer of an operation; ``None`` if the error's message has one of the words."""
        from botocore.exceptions import ClientError

        try:
            return self._reader.require(service, operation, **request)
        except ClientError as error:
            if any(each in error.response["Error"].get("Message", "") for each in absent):
                return None
            raise InvalidValueError(describe_failure(service, error)) from None

    def list(self, service: str, operation: str, member: str, **request: Any) -> list[dict[str, Any]]:
        """Return the members of all pages."""
        pages = self._reader.pages(service, operation, **request)
        return [each for page in pages for each in page[member]]

    def describe_endpoint(self, name: str) -> dict[str, Any] | None:
        """Return the description of an endpoint; ``None`` if it does not exist."""
        return self.call_unless("sagemaker", "describe_endpoint", ["Could not find"], EndpointName=name)

    def delete_endpoint(self, name: str) -> None:
        """Delete an endpoint and wait until its name is free."""
        found = self.describe_endpoint(name)
        if found and found["EndpointStatus"] != "Deleting":
            self.call_unless("sagemaker", "delete_endpoint", ["Could not find"], EndpointName=name)
        self._wait("endpoint_deleted", name)

    def wait_until_in_service(self, name: str) -> None:
        """Wait until an endpoint is in service.

        Raises:
            InvalidValueError: it failed, or is not in service within the timeout.
        """
        self._wait("endpoint_in_service", name)

    def _wait(self, waiter: str, name: str) -> None:
        from botocore.exceptions import WaiterError

        attempts = max(1, int(self._timeout.total_seconds() / _POLL_SECONDS))
        config = {"Delay": _POLL_SECONDS, "MaxAttempts": attempts}
        try:
            client = self._reader.client("sagemaker")
            client.get_waiter(waiter).wait(EndpointName=name, WaiterConfig=config)
        except WaiterError as error:
            raise InvalidValueError(f"endpoint {name}: {self._why(name, error)}") from None

    def _why(self, name: str, error: Exception) -> str:
        found = self.describe_endpoint(name)
        if found is None:
            return "was deleted by another program"
        status, reason = found["EndpointStatus"], found.get("FailureReason")
        return f"has status {status}: {reason}" if reason else f"has status {status} ({error})"
