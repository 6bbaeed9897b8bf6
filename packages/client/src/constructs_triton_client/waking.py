"""Repeats a request to an inference component that has no copies until the
first copy has started.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from constructs_triton_client.observed_calls import ObservedCall
from constructs_triton_core.errors import InvalidValueError, NoCapacityError

__all__ = ["check_wake_timeout", "when_awake"]

ResultT = TypeVar("ResultT")
_FIRST_WAIT_SECONDS = 1.0
_LONGEST_WAIT_SECONDS = 30.0


def when_awake(
    call: Callable[[], ResultT], wake_timeout: float, seen: ObservedCall | None = None
) -> ResultT:
    """Return the result of ``call``, which is repeated for ``wake_timeout`` seconds while there is
    no copy.

    SageMaker does not queue such a request, and boto3 does not retry it. The waits between the
    attempts grow from 1 to 30 seconds. ``seen`` counts them as retries.

    Raises:
        NoCapacityError: there is still no copy.
    """
    started = time.monotonic()
    wait = _FIRST_WAIT_SECONDS
    while True:
        try:
            return call()
        except NoCapacityError as error:
            left = started + wake_timeout - time.monotonic()
            if left <= 0:
                if wake_timeout:
                    message = str(error).partition("; ")[0]
                    error.args = (
                        (
                            f"{message}; waited {wake_timeout:g} s for the first copy; raise "
                            "wake_timeout, or find out with `constructs-triton "
                            "diagnose` why no copy starts"
                        ),
                    )
                raise
        time.sleep(min(wait, left))
        if seen is not None:
            seen.retries += 1
        wait = min(2 * wait, _LONGEST_WAIT_SECONDS)


def check_wake_timeout(wake_timeout: float) -> None:
    """Check a number of seconds; raises ``InvalidValueError`` if not a number, or below 0."""
    if (
        isinstance(wake_timeout, bool)
        or not isinstance(wake_timeout, int | float)
        or not wake_timeout >= 0
    ):
        raise InvalidValueError(
            "wake_timeout: must be a number of seconds of at least 0, "
            f"got {wake_timeout!r}; write 900"
        )
