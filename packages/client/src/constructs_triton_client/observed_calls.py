"""What a caller measures of a call, and lines of CloudWatch's "Embedded Metric Format" with it."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from constructs_triton_core.errors import InvalidValueError

__all__ = ["EmbeddedMetrics", "ObservedCall", "Observer", "check_observe", "observing"]


@dataclass(slots=True)
class ObservedCall:
    """One call that was sent, as its caller saw it.

    Args:
        endpoint_name: Name of the SageMaker endpoint; empty with another transport.
        model_name: Target model or inference component, as the caller named it; empty without one.
        latency_seconds: Time until the result, with all retries; of a stream, until it ended or was
            closed.
        first_event_seconds: Time until the first event of a stream; ``None`` for other calls.
        retries: Repeated attempts of ``wake_timeout`` and, except for streams, of boto3.
        error: What the call raised.
    """

    endpoint_name: str
    model_name: str
    latency_seconds: float = 0.0
    first_event_seconds: float | None = None
    retries: int = 0
    error: Exception | None = None


Observer = Callable[[ObservedCall], None]


def check_observe(observe: object) -> None:
    """Check that an observer, if there is one, can be called."""
    if observe is not None and not callable(observe):
        raise InvalidValueError(
            f"observe: must be a function of one ObservedCall, got {type(observe).__name__}; "
            "for a list, write observe=calls.append"
        )


@contextmanager
def observing(observe: Observer | None, call: ObservedCall) -> Iterator[float]:
    """Pass ``call`` to ``observe`` when the block ends or raises;
    yields the time of its beginning.
    """
    started = time.perf_counter()
    try:
        yield started
    except Exception as error:  # not GeneratorExit, with which the caller closes a stream
        response = getattr(error.__cause__, "response", None)  # of botocore's ClientError
        if isinstance(response, dict):
            call.retries += response.get("ResponseMetadata", {}).get("RetryAttempts", 0)
        call.error = error
        raise
    finally:
        call.latency_seconds = time.perf_counter() - started
        if observe is not None:
            observe(call)


@dataclass(frozen=True)
class EmbeddedMetrics:
    """Prints a line for each call, which AWS Lambda and the CloudWatch agent turn into metrics.

    They are ``Latency`` and, of streams, ``FirstEvent`` in milliseconds, and the counts ``Errors``
    and ``Retries``, with the dimensions ``EndpointName`` and, if the call has one, ``ModelName``.

    Args:
        namespace: Namespace of the metrics.
    """

    namespace: str = "TritonClient"

    def __call__(self, call: ObservedCall) -> None:
        """Print the line of a call to standard output."""
        names = {"EndpointName": call.endpoint_name, "ModelName": call.model_name}
        dimensions = {name: value for name, value in names.items() if value}
        values = {"Latency": round(call.latency_seconds * 1000, 3)}
        values |= {"Errors": int(call.error is not None), "Retries": call.retries}
        if call.first_event_seconds is not None:
            values["FirstEvent"] = round(call.first_event_seconds * 1000, 3)
        units = {"Errors": "Count", "Retries": "Count"}
        metrics = [{"Name": name, "Unit": units.get(name, "Milliseconds")} for name in values]
        rule = {"Namespace": self.namespace, "Dimensions": [list(dimensions)], "Metrics": metrics}
        aws = {"Timestamp": time.time_ns() // 1_000_000, "CloudWatchMetrics": [rule]}
        line = {"_aws": aws, **dimensions, **values}
        # One write, so that the lines of threads do not mix.
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()
