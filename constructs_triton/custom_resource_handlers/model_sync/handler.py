"""Entry point of the function that places models in S3: ``Custom::TritonModelSync`` and ``...ModelFiles``.

The function needs nothing but boto3 and the standard library. No archive and no large file passes through it:
S3 itself copies from the CDK's asset bucket to the prefix. When the 15 minutes of a run are almost over, the
function invokes itself with the work that is left. It stops early enough to report a reason within the hour
that CloudFormation waits.

An update never deletes what it no longer lists: a running endpoint, or one that a failed deployment rolls
back to, may load it at any time. Such an archive, or folder of files, is noted in ``index.json``. A later
deployment prunes it if ``PruneAfterSeconds`` is set.
"""

from __future__ import annotations

import hashlib
import json
import logging
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any

from ..response import Event, Response, handle_request
from ..retries import make_client, wait_for_policies
from . import FILES_RESOURCE_TYPE, FUNCTION_TIMEOUT_SECONDS, SERVICE_TIMEOUT_SECONDS
from .content import Content, Task, content_of
from .index import update_index
from .placement import CONCURRENT_PARTS, OutOfTimeError, Placement, SyncError
from .properties import FILES_FOLDER, SyncProperties
from .pruning import empty_prefix

LOGGER = logging.getLogger(__name__)

CONCURRENT_TASKS = 16
RESERVED_SECONDS = 20.0
"""Kept of a run's time, to invoke the function again or to send the response."""
LAST_START_SECONDS = 90.0
"""No copy starts with less time left: a part, or a small archive, takes no longer."""


@dataclass(frozen=True)
class Progress:
    """What a run passes to the next: the first task that may be unfinished, and the unfinished uploads."""

    started_at: float
    cursor: int = 0
    uploads: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, event: Event) -> Progress:
        continuation = event.get("Continuation")
        if continuation is None:
            return cls(time.time())
        uploads = tuple(sorted(continuation["Uploads"].items()))
        return cls(continuation["StartedAt"], continuation["Cursor"], uploads)

    def to_event(self) -> dict[str, Any]:
        return {"StartedAt": self.started_at, "Cursor": self.cursor, "Uploads": dict(self.uploads)}


def handler(event: Event, context: Any) -> None:
    """Handle one request of CloudFormation: send the response, or continue in another run."""
    handle_request(event, context, lambda event, physical_id: _handle(event, context, physical_id))


def _handle(event: Event, context: Any, physical_id: str) -> Response | None:
    progress = Progress.of(event)
    if event["RequestType"] == "Delete":
        left = _delete(event, context, physical_id, progress)
    else:
        left = _place(event, context, progress)
        # The physical id is the prefix, so an update that changes the prefix is a replacement.
        physical_id = SyncProperties.from_cloudformation(event["ResourceProperties"]).model_data_url
    if left is None:
        return Response(physical_id)
    _continue(event, context, left)
    return None


def _continue(event: Event, context: Any, left: Progress) -> None:
    """Invoke the function again for the rest, if that run is sure to end while CloudFormation waits."""
    elapsed = time.time() - left.started_at
    if elapsed + FUNCTION_TIMEOUT_SECONDS >= SERVICE_TIMEOUT_SECONDS:
        raise SyncError("not everything was done within an hour; deploy again to resume")
    LOGGER.info("this run's time is up; another run continues at task %d", left.cursor)
    make_client("lambda").invoke(
        FunctionName=context.invoked_function_arn,
        InvocationType="Event",
        Payload=json.dumps({**event, "Continuation": left.to_event()}).encode(),
    )


def _client() -> Any:
    connections = CONCURRENT_TASKS * CONCURRENT_PARTS
    return wait_for_policies(make_client("s3", max_pool_connections=connections))


def _clock(context: Any, reserve_seconds: float) -> Callable[[], bool]:
    """A function that returns whether less than the reserve is left of this run's time."""
    return lambda: bool(context.get_remaining_time_in_millis() / 1000 < reserve_seconds)


def _delete(event: Event, context: Any, physical_id: str, progress: Progress) -> Progress | None:
    """Empty the prefix if ``RemoveOnDelete`` is set; returns the progress if time runs out."""
    # After a failed create the physical id is not the prefix. The objects there may belong to others, and
    # properties that cannot be read must not keep the stack from being deleted.
    if not physical_id.startswith("s3://"):
        return None
    properties = SyncProperties.from_cloudformation(event["ResourceProperties"])
    if not properties.remove_on_delete:
        return None
    is_time_up = _clock(context, RESERVED_SECONDS)
    # Files below the prefix of the archives belong to other resources, which may still be in use.
    others = "" if _resource_type(event) == FILES_RESOURCE_TYPE else properties.prefix + FILES_FOLDER
    is_empty = empty_prefix(_client(), properties.destination_bucket, properties.prefix, is_time_up, others)
    return None if is_empty else progress


# Placing.


def _place(event: Event, context: Any, progress: Progress) -> Progress | None:
    """Place everything and write the index; returns the progress if time runs out."""
    properties = SyncProperties.from_cloudformation(event["ResourceProperties"])
    client = _client()
    content = content_of(_resource_type(event), _read_manifest(client, properties), properties)
    placement = Placement(
        client=client,
        bucket=properties.destination_bucket,
        prefix=properties.prefix,
        owner=_owner(event),
        is_time_up=_clock(context, LAST_START_SECONDS),
        uploads=dict(progress.uploads),
    )
    tasks = content.tasks(placement)
    cursor = _run_tasks(tasks, placement, progress.cursor, context, content.noun)
    if cursor < len(tasks):
        return Progress(progress.started_at, cursor, tuple(sorted(placement.uploads.copy().items())))
    _finish(placement, properties, content)
    return None


def _resource_type(event: Event) -> str:
    return str(event.get("ResourceType"))


def _owner(event: Event) -> str:
    return f"{event['StackId']}/{event['LogicalResourceId']}"


def _read_manifest(client: Any, properties: SyncProperties) -> bytes:
    found = client.get_object(Bucket=properties.source_bucket, Key=properties.manifest_key)
    body: bytes = found["Body"].read()
    digest = hashlib.sha256(body).hexdigest()
    if digest != properties.manifest_digest:
        url = f"s3://{properties.source_bucket}/{properties.manifest_key}"
        raise SyncError(f"{url}: SHA-256 must be {properties.manifest_digest}, got {digest}; deploy again")
    return body


def _run_tasks(tasks: list[Task], placement: Placement, cursor: int, context: Any, noun: str) -> int:
    """Run the tasks from ``cursor`` on, several at a time; returns the index of the first unfinished one."""
    executor = ThreadPoolExecutor(CONCURRENT_TASKS)

    def run(task: Task) -> None:
        if placement.is_time_up():
            raise OutOfTimeError(task.label)
        task.run()

    try:
        futures = [executor.submit(run, task) for task in tasks[cursor:]]
        wait(futures, timeout=max(0.0, context.get_remaining_time_in_millis() / 1000 - RESERVED_SECONDS))
        _raise_failures(tasks[cursor:], futures, noun)
        unfinished = (number for number, future in enumerate(futures, cursor) if not _is_done(future))
        return next(unfinished, len(tasks))
    finally:
        executor.shutdown(wait=False, cancel_futures=True)


def _is_done(future: Future[None]) -> bool:
    return future.done() and future.exception() is None


def _raise_failures(tasks: list[Task], futures: list[Future[None]], noun: str) -> None:
    """Raise one error that lists every failure."""
    failures = [
        f"{task.label}: {error}"
        for task, future in zip(tasks, futures, strict=True)
        if future.done() and (error := future.exception()) and not isinstance(error, OutOfTimeError)
    ]
    if failures:
        raise SyncError(f"{len(failures)} of {len(futures)} {noun} were not placed: " + "; ".join(failures))


def _finish(placement: Placement, properties: SyncProperties, content: Content) -> None:
    """Write the names into the index, now that everything is in place."""
    index = update_index(
        placement.client,
        placement.bucket,
        placement.prefix,
        lambda before: before.with_deployment(placement.owner, content.names(placement.owner), time.time()),
    )
    if properties.prune_after_seconds is not None:
        content.prune(placement, index.expired(properties.prune_after_seconds, time.time()))
