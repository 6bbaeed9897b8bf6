"""Reads the logs of an endpoint's containers from CloudWatch Logs."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from constructs_triton_core.aws_reader import AwsError, AwsReader
from constructs_triton_tools.aws.noting_reader import NotingReader
from constructs_triton_tools.operations.container_log import can_explain

if TYPE_CHECKING:
    import boto3

#: The streams and the lines of each that a diagnosis reads at most.
_STREAMS = 5
_STREAM_LINES = 2_000
_PAUSE_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line of a log.

    Args:
        time: When it was written, in UTC.
        stream: Log stream, ``<variant>/<instance>``.
        text: The line.
    """

    time: datetime
    stream: str
    text: str


def moment(time: datetime) -> str:
    """Return a time as a reader in any time zone understands it."""
    return f"{time.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def log_group_of(endpoint_name: str) -> str:
    """Return the log group to which SageMaker writes the output of the containers."""
    return f"/aws/sagemaker/Endpoints/{endpoint_name}"


def component_log_group_of(component_name: str) -> str:
    """Return the log group to which SageMaker writes the output of an inference
    component's containers.
    """
    return f"/aws/sagemaker/InferenceComponents/{component_name}"


def read_logs(
    session: boto3.Session,
    endpoint_name: str,
    *,
    variant: str | None = None,
    inference_component: str | None = None,
    since: timedelta = timedelta(hours=1),
    errors_only: bool = False,
    follow: bool = False,
) -> Iterator[LogLine]:
    """Yield the lines of an endpoint's logs in the order of time.

    Args:
        session: boto3 session with the Region and credentials.
        endpoint_name: Name of the endpoint.
        variant: Only lines of this variant. Default: all.
        inference_component: Read the log of this component instead of that of the endpoint.
        since: How far back to begin. Default: one hour.
        errors_only: Whether to leave out information, warnings, and errors that Triton writes
            although nothing failed.
        follow: Whether to wait for new lines; it then never ends.

    Raises:
        AwsError: the log group does not exist or cannot be read.
    """
    reader = AwsReader(session)
    group = log_group_of(endpoint_name)
    if inference_component is not None:
        group = component_log_group_of(inference_component)
    request: dict[str, Any] = {"logGroupName": group}
    if variant is not None:
        request["logStreamNamePrefix"] = f"{variant}/"
    start = int((datetime.now(UTC) - since).timestamp() * 1000)
    seen: set[str] = set()
    while True:
        fresh = [event for event in _events(reader, request, start) if event["eventId"] not in seen]
        yield from _lines(fresh, errors_only)
        if not follow:
            return
        # The next request starts at the last line, so it returns that line again.
        newest = max((event["timestamp"] for event in fresh), default=start)
        seen = {event["eventId"] for event in fresh if event["timestamp"] == newest} | (
            seen if newest == start else set()
        )
        start = newest
        time.sleep(_PAUSE_SECONDS)


def _lines(events: list[dict[str, Any]], errors_only: bool) -> Iterator[LogLine]:
    for event in events:
        line = _line(event, event["logStreamName"])
        if not errors_only or can_explain(line.text):
            yield line


def _events(reader: AwsReader, request: dict[str, Any], start: int) -> Iterator[dict[str, Any]]:
    token: dict[str, str] = {}
    while True:
        answer = reader.require("logs", "filter_log_events", **request, startTime=start, **token)
        yield from answer["events"]
        if not answer.get("nextToken"):
            return
        token = {"nextToken": answer["nextToken"]}


def read_streams(
    reader: NotingReader, group: str, since: datetime | None = None
) -> dict[str, list[LogLine]] | None:
    """Return the end of the newest log streams, by stream; ``None`` if there is no log group.

    Args:
        reader: Reads, and notes what it may not read.
        group: Name of the log group.
        since: Leave out older lines. Default: none.
    """
    try:
        answer = reader.find(
            "logs",
            "describe_log_streams",
            logGroupName=group,
            orderBy="LastEventTime",
            descending=True,
            limit=_STREAMS,
        )
    except AwsError as error:
        reader.note(error)
        return {}
    if answer is None:
        return None
    names = [stream["logStreamName"] for stream in answer["logStreams"]]
    first = {} if since is None else {"startTime": int(since.timestamp() * 1000)}
    return {
        name: _last_lines(reader, group, name, first)
        for name in names
        if not name.endswith("/data-log")
    }


def _last_lines(
    reader: NotingReader, group: str, stream: str, first: Mapping[str, int]
) -> list[LogLine]:
    answer = reader.read(
        "logs",
        "get_log_events",
        logGroupName=group,
        logStreamName=stream,
        startFromHead=False,
        limit=_STREAM_LINES,
        **first,
    )
    return [_line(event, stream) for event in answer.get("events", [])]


def _line(event: dict[str, Any], stream: str) -> LogLine:
    moment = datetime.fromtimestamp(event["timestamp"] / 1000, UTC)
    return LogLine(moment, stream, str(event["message"]).rstrip("\n"))
