"""The arguments of ``--stream``: their limits, and what they cannot be combined with."""

from __future__ import annotations

import argparse
import re

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_tools.cli.options import refuse_with
from constructs_triton_tools.measuring.load_test.step import Limits
from constructs_triton_tools.measuring.load_test.stream_figures import StreamLimits

#: AIPerf gives open requests as long after its time (--benchmark-grace-period).
GRACE_SECONDS = 30
_LATENCY_MS = 500
_MOST_STREAMS = 10_000
_GOODPUT = "first_token=500ms,between_tokens=100ms"
_LIMIT = re.compile(
    r"\s*(?P<name>first_token|between_tokens)\s*=\s*(?P<number>[0-9.]+)(?P<unit>ms|s)\s*"
)
_MILLISECONDS = {"ms": 1, "s": 1000}


def check_arguments(arguments: argparse.Namespace) -> None:
    """Check what only streams have, and what streams and whole bodies cannot have.

    Raises:
        InvalidValueError: an option does not fit ``--stream`` or ``--body``.
    """
    names = ("goodput", "concurrency", "grace_seconds")
    given = next((name for name in names if getattr(arguments, name) is not None), None)
    if given and not arguments.stream:
        raise InvalidValueError(
            f"--{given.replace('_', '-')}: is about streams; add --stream, or remove it"
        )
    if arguments.body:
        why = "the body is sent as it is; remove it"
        refuse_with(
            "--body",
            {"--batch": (arguments.batch, why), "--as-json": (arguments.json_tensors, why)},
        )
    if not arguments.stream:
        return
    unfit = {
        "--batch": (arguments.batch, "the generate extension derives shapes itself; remove it"),
        "--as-json": (arguments.json_tensors, "requests of streams are always JSON; remove it"),
        "--target-model": (
            arguments.target_model,
            "multi-model endpoints cannot stream; remove --stream",
        ),
        "--export-locust": (
            arguments.export_locust,
            "the locustfile has no streams; remove one of them",
        ),
        "--export-aiperf": (
            arguments.export_aiperf,
            "AIPerf does not read SageMaker's event streams; remove one of them",
        ),
        "--rates": (
            arguments.rates and arguments.concurrency is not None,
            "remove it, or --concurrency",
        ),
    }
    refuse_with("--stream", unfit)
    for count in arguments.concurrency or ():
        if not 1 <= count <= _MOST_STREAMS:
            raise InvalidValueError(
                f"--concurrency: must be from 1 to {_MOST_STREAMS}, "
                f"got {count}; write for example 1 2 4 8"
            )


def read_limits(arguments: argparse.Namespace) -> Limits:
    """Return when a load is held.

    Raises:
        InvalidValueError: a limit has another form, or is not positive.
    """
    percentile = arguments.percentile
    if not arguments.stream:
        latency_ms = _LATENCY_MS if arguments.latency_ms is None else arguments.latency_ms
        return Limits(latency_ms=latency_ms, percentile=percentile)
    limits = _read_goodput(_GOODPUT if arguments.goodput is None else arguments.goodput)
    if arguments.latency_ms is not None:
        limits["latency_ms"] = arguments.latency_ms
    stream = StreamLimits(**limits)
    return Limits(latency_ms=stream.latency_ms, percentile=percentile, stream=stream)


def _read_goodput(text: str) -> dict[str, float]:
    limits: dict[str, float] = {}
    for part in text.split(","):
        match = _LIMIT.fullmatch(part)
        name = match["name"] + "_ms" if match else ""
        try:
            number = float(match["number"]) if match else 0
        except ValueError:
            number = 0
        if match is None or not number or name in limits:
            raise InvalidValueError(
                "--goodput: must name each limit once, with a number and ms or s, got "
                f"{part!r:.60}; write first_token=200ms,between_tokens=40ms"
            )
        limits[name] = number * _MILLISECONDS[match["unit"]]
    return limits
