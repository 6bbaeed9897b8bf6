"""CloudFormation custom resource ``Custom::TritonModelSync``: copies model archives inside S3.

Runs in AWS Lambda with nothing but boto3 and the standard library. No model byte passes through the
function: S3 copies from the CDK asset bucket to the model prefix by itself. When its 15 minutes are almost
over, the function calls itself with what is left to do, until CloudFormation's hour is over.

Resource properties (CloudFormation hands every value over as a string)::

    SourceBucket        bucket of the CDK assets
    ManifestKey         key of the list of archives in it (see ``manifest.py``)
    ManifestDigest      SHA-256 of that list
    GivenBuckets        further buckets that archives of the list lie in; absent where there are none
    DestinationBucket   bucket of the model repository
    DestinationPrefix   key prefix, ends with "/", or "" for the whole bucket
    PruneAfterSeconds   removes an archive that it placed and that has had no name for so long; absent keeps
    RemoveOnDelete      "true" empties the prefix when the resource is deleted; absent keeps all

An archive is never removed because an update has dropped it: an endpoint that is still running, or that a
failed deployment rolls back to, may load it at any time. It is noted in ``index.json`` and pruned, if that
was asked for, by a later deployment.
"""

from __future__ import annotations

import hashlib
import json
import logging
import time
import urllib.request
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

from .index import update_index
from .manifest import ListedArchive, Manifest
from .placement import OutOfTimeError, Placement, Source, SyncError
from .pruning import empty_prefix, prune

LOGGER = logging.getLogger(__name__)
logging.getLogger(__package__).setLevel(logging.INFO)

CONCURRENT_ARCHIVES = 16
RESERVED_SECONDS = 20.0
"""Kept back of the function's time to hand over, or to answer CloudFormation."""
LAST_START_SECONDS = 90.0
"""No copy is begun with less time left: a part or a small archive takes no longer."""
SERVICE_SECONDS = 3600 - 120
"""CloudFormation waits for an hour at most; it is told before."""
FRESH_POLICY_SECONDS = 40.0
"""A role's new policy takes so long until it holds everywhere."""
REASON_CHARACTERS = 2_000
"""CloudFormation refuses an answer above 4,096 bytes."""
RESPONSE_ATTEMPTS = 4


@dataclass(frozen=True)
class Request:
    """The resource's properties, typed."""

    source_bucket: str
    manifest_key: str
    manifest_digest: str
    given_buckets: tuple[str, ...]
    destination_bucket: str
    prefix: str
    prune_after_seconds: float | None
    remove_on_delete: bool

    @classmethod
    def from_properties(cls, properties: Mapping[str, Any]) -> Request:
        prune_after = properties.get("PruneAfterSeconds")
        return cls(
            source_bucket=properties["SourceBucket"],
            manifest_key=properties["ManifestKey"],
            manifest_digest=properties["ManifestDigest"],
            given_buckets=tuple(properties.get("GivenBuckets") or ()),
            destination_bucket=properties["DestinationBucket"],
            prefix=properties.get("DestinationPrefix", ""),
            prune_after_seconds=None if prune_after is None else float(prune_after),
            remove_on_delete=str(properties.get("RemoveOnDelete", "false")).lower() == "true",
        )

    @property
    def model_data_url(self) -> str:
        return f"s3://{self.destination_bucket}/{self.prefix}"

    def source_of(self, archive: ListedArchive) -> Source:
        given = archive.given_bucket
        bucket = self.source_bucket if given is None else self.given_buckets[given]
        return Source(bucket, archive.source_key, archive.size_bytes)


@dataclass(frozen=True)
class Progress:
    """What a run hands to the next: the first archive that may be missing, and the uploads begun."""

    started_at: float
    cursor: int = 0
    uploads: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, event: Mapping[str, Any]) -> Progress:
        handed_over = event.get("Continuation")
        if handed_over is None:
            return cls(time.time())
        uploads = tuple(sorted(handed_over["Uploads"].items()))
        return cls(handed_over["StartedAt"], handed_over["Cursor"], uploads)

    def to_event(self) -> dict[str, Any]:
        return {"StartedAt": self.started_at, "Cursor": self.cursor, "Uploads": dict(self.uploads)}


def handler(event: Mapping[str, Any], context: Any) -> None:
    """Serve one request of CloudFormation; answer it, whatever happens, or hand it to the next run."""
    physical_id = event.get("PhysicalResourceId") or f"{event['LogicalResourceId']}-failed"
    try:
        left = _serve(event, context, physical_id)
        if left is not None:
            _continue(event, context, left)
            return
        if event["RequestType"] != "Delete":
            physical_id = Request.from_properties(event["ResourceProperties"]).model_data_url
    except Exception as error:
        LOGGER.exception("request %s failed", event.get("RequestId"))
        _respond(event, "FAILED", physical_id, reason=_reason(error, context))
    else:
        # The physical id is the prefix, so that an update that moves elsewhere is a replacement.
        _respond(event, "SUCCESS", physical_id)


def _serve(event: Mapping[str, Any], context: Any, physical_id: str) -> Progress | None:
    """Do as much as there is time for; what is left, or ``None`` when all is done."""
    progress = Progress.of(event)
    if event["RequestType"] != "Delete":
        return _place(event, context, progress)
    # A create that failed never took the prefix as its physical id: what lies there need not be its own, and
    # properties that could not be read must not keep the stack from being deleted.
    if physical_id.startswith("s3://"):
        request = Request.from_properties(event["ResourceProperties"])
        if request.remove_on_delete:
            is_time_up = _clock(context, RESERVED_SECONDS)
            if not empty_prefix(_client(), request.destination_bucket, request.prefix, is_time_up):
                return progress
    return None


def _continue(event: Mapping[str, Any], context: Any, left: Progress) -> None:
    """Call the function again with what is left."""
    if time.time() - left.started_at > SERVICE_SECONDS:
        raise SyncError("not everything was done within an hour; deploy again to resume")
    LOGGER.info("time is up, going on at archive %d", left.cursor)
    boto3.client("lambda").invoke(
        FunctionName=context.invoked_function_arn,
        InvocationType="Event",
        Payload=json.dumps({**event, "Continuation": left.to_event()}).encode(),
    )


def _reason(error: Exception, context: Any) -> str:
    text = str(error) if isinstance(error, SyncError) else f"{type(error).__name__}: {error}"
    text = text.encode("ascii", "replace").decode()
    return f"{text[:REASON_CHARACTERS]} (log stream {getattr(context, 'log_stream_name', 'unknown')})"


def _client() -> Any:
    return boto3.client(
        "s3",
        config=Config(
            retries={"mode": "standard", "max_attempts": 8}, max_pool_connections=CONCURRENT_ARCHIVES * 8
        ),
    )


def _clock(context: Any, reserve_seconds: float) -> Callable[[], bool]:
    """Tells whether less than the reserve is left of the function's time."""
    return lambda: bool(context.get_remaining_time_in_millis() / 1000 < reserve_seconds)


# Placing.


def _place(event: Mapping[str, Any], context: Any, progress: Progress) -> Progress | None:
    request = Request.from_properties(event["ResourceProperties"])
    client = _client()
    manifest = _read_manifest(client, request)
    placement = Placement(
        client=client,
        bucket=request.destination_bucket,
        prefix=request.prefix,
        owner=_owner(event),
        is_time_up=_clock(context, LAST_START_SECONDS),
        uploads=dict(progress.uploads),
    )
    cursor = _place_archives(placement, request, manifest.archives, progress.cursor, context)
    if cursor < len(manifest.archives):
        return Progress(progress.started_at, cursor, tuple(sorted(placement.uploads.copy().items())))
    _finish(placement, request, manifest)
    return None


def _owner(event: Mapping[str, Any]) -> str:
    return f"{event['StackId']}/{event['LogicalResourceId']}"


def _read_manifest(client: Any, request: Request) -> Manifest:
    body = _read_when_allowed(client, request)
    digest = hashlib.sha256(body).hexdigest()
    if digest != request.manifest_digest:
        url = f"s3://{request.source_bucket}/{request.manifest_key}"
        raise SyncError(f"{url}: has SHA-256 {digest}, expected {request.manifest_digest}; deploy again")
    return Manifest.from_json(body)


def _read_when_allowed(client: Any, request: Request) -> bytes:
    """The manifest. The role's policy is seconds old, and a refusal may only mean that it is on its way."""
    begun = time.monotonic()
    while True:
        try:
            found = client.get_object(Bucket=request.source_bucket, Key=request.manifest_key)
            return bytes(found["Body"].read())
        except ClientError as error:
            is_refusal = error.response["ResponseMetadata"]["HTTPStatusCode"] == 403
            if not is_refusal or time.monotonic() - begun > FRESH_POLICY_SECONDS:
                raise
        time.sleep(2)


def _place_archives(
    placement: Placement, request: Request, archives: tuple[ListedArchive, ...], cursor: int, context: Any
) -> int:
    """Place the archives from ``cursor`` on, several at a time; the index of the first that is missing."""
    executor = ThreadPoolExecutor(CONCURRENT_ARCHIVES)

    def place(archive: ListedArchive) -> None:
        if placement.is_time_up():
            raise OutOfTimeError(archive.target_model)
        placement.place(request.source_of(archive), archive.target_model)

    try:
        futures = [executor.submit(place, archive) for archive in archives[cursor:]]
        wait(futures, timeout=max(0.0, context.get_remaining_time_in_millis() / 1000 - RESERVED_SECONDS))
        _raise_failures(archives[cursor:], futures)
        missing = (number for number, future in enumerate(futures, cursor) if not _is_done(future))
        return next(missing, len(archives))
    finally:
        executor.shutdown(wait=False, cancel_futures=True)


def _is_done(future: Future[None]) -> bool:
    return future.done() and future.exception() is None


def _raise_failures(archives: tuple[ListedArchive, ...], futures: list[Future[None]]) -> None:
    """Report every failure, not only the first."""
    failures = [
        f"{archive.target_model}: {error}"
        for archive, future in zip(archives, futures, strict=True)
        if future.done() and (error := future.exception()) and not isinstance(error, OutOfTimeError)
    ]
    if failures:
        raise SyncError(f"{len(failures)} of {len(futures)} archives were not placed: " + "; ".join(failures))


def _finish(placement: Placement, request: Request, manifest: Manifest) -> None:
    """Only when all archives are there do the names stand for them."""
    index = update_index(
        placement.client,
        placement.bucket,
        placement.prefix,
        lambda before: before.with_deployment(placement.owner, manifest.target_models, time.time()),
    )
    if request.prune_after_seconds is not None:
        prune(placement, index.expired(request.prune_after_seconds, time.time()))


# Answering.


def _respond(
    event: Mapping[str, Any],
    status: str,
    physical_id: str,
    *,
    reason: str = "",
) -> None:
    answer = {
        "Status": status,
        "Reason": reason,
        "PhysicalResourceId": physical_id,
        "StackId": event["StackId"],
        "RequestId": event["RequestId"],
        "LogicalResourceId": event["LogicalResourceId"],
    }
    body = json.dumps(answer).encode()
    for attempt in range(RESPONSE_ATTEMPTS):
        try:
            _put(event["ResponseURL"], body)
            return
        except OSError:
            LOGGER.exception("answer %d of %d did not arrive", attempt + 1, RESPONSE_ATTEMPTS)
            time.sleep(attempt)
    raise SyncError("CloudFormation could not be answered")


def _put(url: str, body: bytes) -> None:
    # The pre-signed URL is signed for an empty content type.
    request = urllib.request.Request(url, data=body, method="PUT", headers={"Content-Type": ""})
    with urllib.request.urlopen(request, timeout=10) as response:
        response.read()
