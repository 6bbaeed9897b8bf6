"""Clients of AWS services that retry, and calls that wait for a new IAM policy to take effect."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

__all__ = ["RETRIES", "call_with_retries", "make_client"]

RETRIES: Any = {"mode": "standard", "max_attempts": 8}
"""The SDK's own retries, for throttling and for faults of a service."""
PROPAGATION_SECONDS = 40.0
"""A role's new policy, or a new registration, may take this long to take effect everywhere."""
_PAUSE_SECONDS = 2.0

Result = TypeVar("Result")


def make_client(service: str, **settings: Any) -> Any:
    """A boto3 client with :data:`RETRIES`; ``settings`` are further members of botocore's ``Config``."""
    make: Any = boto3.client  # typed by the name of the service, which is known only at run time
    return make(service, config=Config(retries=RETRIES, **settings))


def call_with_retries(call: Callable[[], Result], is_temporary: Callable[[ClientError], bool]) -> Result:
    """Repeat ``call`` for up to 40 seconds while its errors are temporary.

    The stack has created the role's policy seconds ago, so an access denied may only mean that the policy has
    not taken effect yet.
    """
    begun = time.monotonic()
    while True:
        try:
            return call()
        except ClientError as error:
            if not is_temporary(error) or time.monotonic() - begun > PROPAGATION_SECONDS:
                raise
        time.sleep(_PAUSE_SECONDS)
