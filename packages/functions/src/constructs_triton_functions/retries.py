"""Clients of AWS services that retry, and calls that wait for a new IAM policy to take effect."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

import boto3
from botocore.config import Config
from botocore.exceptions import (
    ClientError,
    IncompleteReadError,
    ReadTimeoutError,
    ResponseStreamingError,
)

RETRIES: Any = {"mode": "standard", "max_attempts": 8}
"""The SDK's own retries, for throttling and for faults of a service."""
PROPAGATION_SECONDS = 40.0
"""A role's new policy, or a new registration, may take this long to take effect everywhere."""
_PAUSE_SECONDS = 2.0
_READ_ATTEMPTS = 4

Result = TypeVar("Result")


def make_client(service: str, **settings: Any) -> Any:
    """A boto3 client with :data:`RETRIES`; ``settings`` are further members
    of botocore's ``Config``.
    """
    make: Any = boto3.client  # typed by the name of the service, which is known only at run time
    return make(service, config=Config(retries=RETRIES, **settings))


def call_with_retries(
    call: Callable[[], Result], is_temporary: Callable[[ClientError], bool]
) -> Result:
    """Repeat ``call`` for up to 40 seconds while its errors are temporary.

    The stack has created the role's policy seconds ago, so an access denied may only mean that the
    policy has not taken effect yet.
    """
    begun = time.monotonic()
    while True:
        try:
            return call()
        except ClientError as error:
            if not is_temporary(error) or time.monotonic() - begun > PROPAGATION_SECONDS:
                raise
        time.sleep(_PAUSE_SECONDS)


def read_object(client: Any, **arguments: Any) -> tuple[bytes, Any]:
    """The content of an object of S3, and its attributes.

    The SDK repeats a request, but not one whose body breaks off while it is read.
    """
    for attempt in range(1, _READ_ATTEMPTS + 1):
        found = client.get_object(**arguments)
        try:
            return found["Body"].read(), found
        except (IncompleteReadError, ReadTimeoutError, ResponseStreamingError):
            if attempt == _READ_ATTEMPTS:
                raise
        time.sleep(_PAUSE_SECONDS)
    raise AssertionError("the last attempt returns or raises")


_DENIED_MEANS_MISSING = ContextVar("denied_means_missing", default=False)


def wait_for_policies(client: Any) -> Any:
    """Make a client repeat every call that AWS denies, until 40 seconds have passed; returns the
    client.

    The time starts now and is shared by all calls, so that a permission that is really missing
    delays a deployment by 40 seconds only. S3 also returns 403 if the permission for a KMS key is
    missing.
    """
    begun = time.monotonic()

    def pause(response: Any = None, **_: Any) -> float | None:
        is_denied = response is not None and response[0].status_code == 403
        is_over = time.monotonic() - begun > PROPAGATION_SECONDS
        return (
            _PAUSE_SECONDS
            if is_denied and not is_over and not _DENIED_MEANS_MISSING.get()
            else None
        )

    client.meta.events.register("needs-retry", pause)
    return client


@contextmanager
def denied_means_missing() -> Iterator[None]:
    """Do not repeat denied calls: without permission to list, S3 returns 403 for a missing key."""
    token = _DENIED_MEANS_MISSING.set(True)
    try:
        yield
    finally:
        _DENIED_MEANS_MISSING.reset(token)
