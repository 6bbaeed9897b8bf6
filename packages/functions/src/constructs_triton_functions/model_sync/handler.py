"""Entry point of the function that places models in S3: ``Custom::TritonModelSync`` and
``...ModelFiles``.

The function needs nothing but boto3 and the standard library. No archive and no large file passes
through it: S3 itself copies from the CDK's asset bucket to the prefix. When the 15 minutes of a run
are almost over, the function invokes itself with the work that is left. It stops early enough to
report a reason within the hour that CloudFormation waits.

An update never deletes what it no longer lists: a running endpoint, or one that a failed deployment
rolls back to, may load it at any time. Such an archive, or folder of files, is noted in
``index.json``. A later deployment prunes it if ``PruneAfterSeconds`` is set.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from ..continuation import continue_in_another_run
from ..response import CustomResourceError, Event, Response, handle_request, is_failed_create
from ..retries import make_client, read_object, wait_for_policies
from . import FILES_RESOURCE_TYPE
from .content import Content, Task, content_of
from .encryption import DecryptionError, Encryption
from .index import DamagedIndexError, Index, read_index, update_index
from .key_failures import explained_key_failures
from .placement import (
    CONCURRENT_PARTS,
    OutOfTimeError,
    Placement,
    SyncError,
    several_at_once,
)
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
    """What a run passes to the next: the first task that may be unfinished,
    and the unfinished uploads.
    """

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
    try:
        return _respond(event, context, physical_id)
    except CustomResourceError as error:
        raise SyncError(f"{error}; {_next_step(event)}") from error


def _respond(event: Event, context: Any, physical_id: str) -> Response | None:
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
    """Invoke the function again for the rest, if that run is sure to end while
    CloudFormation waits.
    """
    reason = (
        "not everything was done within an hour, CloudFormation's limit; divide the models between "
        "several repositories if this happens again"
    )
    LOGGER.info("this run's time is up; another run continues at task %d", left.cursor)
    continue_in_another_run(event, context, left.to_event(), left.started_at, reason)


def _client() -> Any:
    connections = CONCURRENT_TASKS * CONCURRENT_PARTS
    return wait_for_policies(make_client("s3", max_pool_connections=connections))


def _clock(context: Any, reserve_seconds: float) -> Callable[[], bool]:
    """A function that returns whether less than the reserve is left of this run's time."""
    return lambda: bool(context.get_remaining_time_in_millis() / 1000 < reserve_seconds)


def _delete(event: Event, context: Any, physical_id: str, progress: Progress) -> Progress | None:
    """Empty the prefix if ``RemoveOnDelete`` is set; returns the progress if time runs out."""
    properties = _properties_to_delete(event, physical_id)
    if properties is None or not properties.remove_on_delete:
        return None
    is_time_up = _clock(context, RESERVED_SECONDS)
    # Files below the prefix of the archives belong to other resources, which may still be in use.
    others = (
        "" if _resource_type(event) == FILES_RESOURCE_TYPE else properties.prefix + FILES_FOLDER
    )
    is_empty = empty_prefix(
        _client(), properties.destination_bucket, properties.prefix, is_time_up, others
    )
    return None if is_empty else progress


def _properties_to_delete(event: Event, physical_id: str) -> SyncProperties | None:
    """The properties; ``None`` if they cannot be read,
    which must not keep a stack from being deleted.
    """
    # A failed create leaves its objects too. RemoveOnDelete is set only if the repository created
    # the bucket.
    try:
        return SyncProperties.from_cloudformation(event["ResourceProperties"])
    except (KeyError, ValueError):
        if is_failed_create(physical_id):
            return None
        raise


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
        encryption=Encryption.of(properties, _old_properties(event)),
    )
    others, placement.refusal = _examine(event, content, placement)
    tasks = [*content.tasks(placement), *(_encryption_task(placement, each) for each in others)]
    cursor = _run_tasks(tasks, placement, progress.cursor, context, content.noun)
    if cursor < len(tasks):
        return Progress(
            progress.started_at, cursor, tuple(sorted(placement.uploads.copy().items()))
        )
    if placement.refusal is None:
        _finish(placement, properties, content)
    return None


def _old_properties(event: Event) -> SyncProperties | None:
    old = event.get("OldResourceProperties")
    return None if old is None else SyncProperties.from_cloudformation(old)


def _examine(
    event: Event, content: Content, placement: Placement
) -> tuple[list[str], CustomResourceError | None]:
    """Check before the first write that everything can be read; returns the objects of others, and
    a refusal.

    A rollback is an update, too. It returns to content that is in place, so an index that cannot be
    read is no reason to fail it, and is left as it is.
    """
    try:
        read_index(placement.client, placement.bucket, placement.prefix)
        return _others_to_encrypt(content, placement), None
    except (DamagedIndexError, DecryptionError) as error:
        if event["RequestType"] != "Update":
            raise
        LOGGER.warning("%s; nothing but content that is in place is accepted", error)
        return [], error


def _others_to_encrypt(content: Content, placement: Placement) -> list[str]:
    """The objects of others that may need another encryption, or ``DecryptionError``."""
    if not placement.encryption.may_differ:
        return []
    try:
        others = content.others(placement)
    except ClientError as error:
        raise DecryptionError(
            f"s3://{placement.bucket}/{placement.prefix}: cannot be listed ({error}), so objects "
            "with the previous KMS key cannot be found; nothing was changed. Set "
            "previous_encryption_keys=[<previous key>] on the TritonModelRepository"
        ) from error
    placement.expect_decryption(others)
    return others


def _encryption_task(placement: Placement, target_model: str) -> Task:
    return Task(target_model, lambda: placement.encrypt_again(target_model))


def _resource_type(event: Event) -> str:
    return str(event.get("ResourceType"))


def _owner(event: Event) -> str:
    return f"{event['StackId']}/{event['LogicalResourceId']}"


def _read_manifest(client: Any, properties: SyncProperties) -> bytes:
    bucket, key = properties.source_bucket, properties.manifest_key
    url = f"s3://{bucket}/{key}"
    with explained_key_failures(client, f"{url}: cannot be read", (bucket, key)):
        body, _ = read_object(client, Bucket=bucket, Key=key)
    digest = hashlib.sha256(body).hexdigest()
    if digest != properties.manifest_digest:
        raise SyncError(
            f"{url}: SHA-256 must be {properties.manifest_digest}, "
            f"got {digest}; publish the assets again"
        )
    return body


def _run_tasks(
    tasks: list[Task], placement: Placement, cursor: int, context: Any, noun: str
) -> int:
    """Run the tasks from ``cursor`` on, several at a time;
    returns the index of the first unfinished one.
    """
    executor = ThreadPoolExecutor(CONCURRENT_TASKS)

    def run(task: Task) -> None:
        if placement.is_time_up():
            raise OutOfTimeError(task.label)
        task.run()

    try:
        futures = [executor.submit(run, task) for task in tasks[cursor:]]
        wait(
            futures,
            timeout=max(0.0, context.get_remaining_time_in_millis() / 1000 - RESERVED_SECONDS),
        )
        _raise_failures(tasks[cursor:], futures, noun)
        unfinished = (
            number for number, future in enumerate(futures, cursor) if not _is_done(future)
        )
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
        count = f"{len(failures)} of {len(futures)} {noun} were not placed"
        raise SyncError(f"{count}: {'; '.join(failures)}; remove the causes of these errors")


def _finish(placement: Placement, properties: SyncProperties, content: Content) -> None:
    """Write the names into the index, now that everything is in place."""
    names = content.names(placement.owner)
    before = Index()

    def change(found: Index) -> Index:
        nonlocal before
        before = found
        return found.with_deployment(placement.owner, names, time.time())

    index = update_index(
        placement.client, placement.bucket, placement.prefix, change, placement.encryption
    )
    _place_what_was_pruned(placement, content, before)
    if properties.prune_after_seconds is not None:
        content.prune(placement, index.expired(properties.prune_after_seconds, time.time()))


def _place_what_was_pruned(placement: Placement, content: Content, before: Index) -> None:
    """Place again what another stack with the same prefix has pruned after it was found in place.

    From now on the index names it, so it is not pruned again.
    """
    is_shared = bool(before.retired) or bool(set(before.deployed.values()) - {placement.owner})
    names = set(content.names(placement.owner).values())
    new = names - set(before.target_models.values())
    if not is_shared or not new or placement.is_time_up():
        return
    tasks = [task for task in content.tasks(placement) if task.target_model in new]
    several_at_once(lambda task: task.run(), tasks)


def _next_step(event: Event) -> str:
    """What the person who deploys does after a failure, at the end of its reason.

    A function does not know whether an update is a rollback. CloudFormation refuses every update in
    the state UPDATE_ROLLBACK_FAILED until the rollback has been continued.
    """
    if event["RequestType"] == "Delete":
        return "then delete the stack again"
    if event["RequestType"] == "Update":
        return (
            "then deploy again, or run cdk rollback (aws cloudformation continue-update-rollback) "
            "if the stack is in UPDATE_ROLLBACK_FAILED"
        )
    properties = event["ResourceProperties"]
    if str(properties.get("RemoveOnDelete", "false")).lower() == "true":
        return "then deploy again"
    bucket = properties.get("DestinationBucket")
    return (
        f"then deploy again. What was placed stays in the bucket {bucket}; if this stack created "
        "it, the next attempt creates another and does not use this one. See what is in it: "
        f"aws s3 ls --recursive s3://{bucket}"
    )
