"""CloudFormation custom resource ``Custom::TritonModelSync``: copies model archives inside S3.

Runs in AWS Lambda with nothing but boto3 and the standard library. No model byte passes through the
function: S3 copies from the CDK asset bucket to the model prefix by itself (CopyObject, multipart above its
limit of 5 GB).

Resource properties (CloudFormation hands every value over as a string)::

    SourceBucket        bucket of the CDK assets
    DestinationBucket   bucket of the model repository
    DestinationPrefix   key prefix, ends with "/", or "" for the whole bucket
    Archives            [{"SourceKey": "<digest>.tar.gz", "TargetModel": "resnet.tar.gz", "SizeBytes": "123"}]
    RemoveOnDelete      "true" removes the placed archives when the resource is deleted; absent keeps them

An archive that was placed once is never removed by an update: an endpoint that is still running, or that a
failed deployment rolls back to, may load it at any time.
"""

from __future__ import annotations

import json
import logging
import time
import urllib.request
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any

import boto3
from boto3.s3.transfer import TransferConfig
from botocore.config import Config
from botocore.exceptions import ClientError

LOGGER = logging.getLogger(__name__)
LOGGER.setLevel(logging.INFO)

MULTIPART_THRESHOLD_BYTES = 5 * 1024**3  # Amazon S3 API reference: CopyObject copies up to 5 GB
MULTIPART_CHUNK_BYTES = 512 * 1024**2
CONCURRENT_ARCHIVES = 8
RESERVED_SECONDS = 15.0
"""Kept back of the function's time to answer CloudFormation, which else waits until its own time-out."""
REASON_CHARACTERS = 2_000
"""CloudFormation refuses an answer above 4,096 bytes."""
RESPONSE_ATTEMPTS = 4
SOURCE_METADATA = "triton-source-key"
"""Object metadata that names the archive's content, so that a repeated run copies nothing again."""


class SyncError(Exception):
    """Archives that could not be placed; the message becomes the reason of the failed deployment."""


@dataclass(frozen=True)
class Archive:
    """One archive: where it lies, the name it gets below the prefix, and its size in bytes."""

    source_key: str
    target_model: str
    size_bytes: int


@dataclass(frozen=True)
class Request:
    """The resource's properties, typed."""

    source_bucket: str
    destination_bucket: str
    prefix: str
    archives: tuple[Archive, ...]
    remove_on_delete: bool

    @classmethod
    def from_properties(cls, properties: Mapping[str, Any]) -> Request:
        archives = tuple(
            Archive(entry["SourceKey"], entry["TargetModel"], int(entry["SizeBytes"]))
            for entry in properties.get("Archives") or ()
        )
        return cls(
            source_bucket=properties["SourceBucket"],
            destination_bucket=properties["DestinationBucket"],
            prefix=properties.get("DestinationPrefix", ""),
            archives=archives,
            remove_on_delete=str(properties.get("RemoveOnDelete", "false")).lower() == "true",
        )

    @property
    def model_data_url(self) -> str:
        return f"s3://{self.destination_bucket}/{self.prefix}"


def handler(event: Mapping[str, Any], context: Any) -> None:
    """Serve one request of CloudFormation and answer it, whatever happens."""
    physical_id = event.get("PhysicalResourceId") or f"{event['LogicalResourceId']}-failed"
    try:
        properties = event["ResourceProperties"]
        if event["RequestType"] == "Delete":
            _remove(properties, physical_id)
        else:
            physical_id = _place(Request.from_properties(properties), _seconds_left(context))
    except Exception as error:
        LOGGER.exception("request %s failed", event.get("RequestId"))
        _respond(event, "FAILED", physical_id, reason=_reason(error, context))
    else:
        _respond(event, "SUCCESS", physical_id)


def _seconds_left(context: Any) -> float:
    remaining: int = context.get_remaining_time_in_millis()
    return max(1.0, remaining / 1000 - RESERVED_SECONDS)


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


def _place(request: Request, seconds: float) -> str:
    """Place all archives, several at a time; report every failure, not only the first.

    Returns the resource's physical id: the prefix, so that an update that moves elsewhere is a replacement.
    """
    client = _client()
    executor = ThreadPoolExecutor(CONCURRENT_ARCHIVES)
    try:
        futures = {
            archive.target_model: executor.submit(_place_one, client, request, archive)
            for archive in request.archives
        }
        wait(futures.values(), timeout=seconds)
        _raise_failures(futures)
    finally:
        executor.shutdown(wait=False, cancel_futures=True)
    return request.model_data_url


def _raise_failures(futures: Mapping[str, Future[None]]) -> None:
    failures = []
    for target_model, future in futures.items():
        if not future.done():
            failures.append(f"{target_model}: not placed within the function's time; deploy again to resume")
        elif (error := future.exception()) is not None:
            failures.append(f"{target_model}: {error}")
    if failures:
        raise SyncError(f"{len(failures)} of {len(futures)} archives were not placed: " + "; ".join(failures))


def _place_one(client: Any, request: Request, archive: Archive) -> None:
    key = request.prefix + archive.target_model
    if _is_placed(client, request.destination_bucket, key, archive):
        LOGGER.info("%s is already in place", key)
        return
    source = {"Bucket": request.source_bucket, "Key": archive.source_key}
    _verify_size(client.head_object(**source), archive, f"s3://{request.source_bucket}/{archive.source_key}")
    client.copy(
        source,
        request.destination_bucket,
        key,
        ExtraArgs={"Metadata": {SOURCE_METADATA: archive.source_key}, "MetadataDirective": "REPLACE"},
        Config=TransferConfig(
            multipart_threshold=MULTIPART_THRESHOLD_BYTES, multipart_chunksize=MULTIPART_CHUNK_BYTES
        ),
    )
    head = client.head_object(Bucket=request.destination_bucket, Key=key)
    _verify_size(head, archive, f"s3://{request.destination_bucket}/{key}")
    LOGGER.info("%s placed, %d bytes", key, archive.size_bytes)


def _is_placed(client: Any, bucket: str, key: str, archive: Archive) -> bool:
    """Whether exactly this content is there: its key names the content, so no byte needs to be compared."""
    try:
        head = client.head_object(Bucket=bucket, Key=key)
    except ClientError as error:
        # Without a permission to list the bucket S3 answers 403 for a key that is not there.
        if error.response["ResponseMetadata"]["HTTPStatusCode"] in (403, 404):
            return False
        raise
    is_same_source = head["Metadata"].get(SOURCE_METADATA) == archive.source_key
    return bool(is_same_source and head["ContentLength"] == archive.size_bytes)


def _verify_size(head: Mapping[str, Any], archive: Archive, url: str) -> None:
    if head["ContentLength"] != archive.size_bytes:
        raise SyncError(f"{url} holds {head['ContentLength']} bytes, expected {archive.size_bytes}")


def _remove(properties: Mapping[str, Any], physical_id: str) -> None:
    # A create that failed never took the prefix as its physical id: what lies there need not be its own, and
    # properties that could not be read must not keep the stack from being deleted.
    if not physical_id.startswith("s3://"):
        return
    request = Request.from_properties(properties)
    if not request.remove_on_delete:
        return
    client = _client()
    for archive in request.archives:
        client.delete_object(Bucket=request.destination_bucket, Key=request.prefix + archive.target_model)


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
