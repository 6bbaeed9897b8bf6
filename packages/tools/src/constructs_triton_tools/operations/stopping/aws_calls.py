"""Calls of AWS that stop and start an endpoint."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from constructs_triton_core.aws_reader import AwsReader, region_of
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_tools.aws.waiting import wait_for

if TYPE_CHECKING:
    import boto3

_POLL_SECONDS = 15


class AwsCalls(AwsReader):
    """Calls AWS, and waits for endpoints."""

    def __init__(self, session: boto3.Session, timeout: timedelta = timedelta(hours=1)) -> None:
        super().__init__(session)
        self._timeout = timeout

    @property
    def region(self) -> str:
        return region_of(self.session)

    def find_endpoint(self, name: str) -> dict[str, Any] | None:
        """Return the description of an endpoint; ``None`` if it does not exist."""
        return self.find("sagemaker", "describe_endpoint", EndpointName=name)

    def delete_endpoint(self, name: str) -> None:
        """Delete an endpoint and wait until its name is free."""
        found = self.find_endpoint(name)
        if found and found["EndpointStatus"] != "Deleting":
            self.find("sagemaker", "delete_endpoint", EndpointName=name)
        self._wait(name, None)

    def wait_until_in_service(self, name: str) -> None:
        """Wait until an endpoint is in service."""
        self._wait(name, "InService")

    def _wait(self, name: str, wanted: str | None) -> None:
        """Wait until an endpoint has a status, or does not exist."""
        found = wait_for(
            lambda: self.find_endpoint(name),
            lambda found: found is None or found["EndpointStatus"] in (wanted, "Failed"),
            pause_seconds=_POLL_SECONDS,
            timeout=self._timeout,
        )
        status = found and found["EndpointStatus"]
        if status == wanted:
            return
        if found is None:
            raise InvalidValueError(f"endpoint {name}: was deleted by another program")
        reason = found.get("FailureReason", f"not {wanted or 'deleted'} after {self._timeout}")
        raise InvalidValueError(f"endpoint {name}: has status {status}: {reason}")
