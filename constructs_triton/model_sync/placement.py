"""Puts one archive below a prefix: copied inside S3, in parts when it is large, and verified.

An archive that is there already, by the source's key and its size, is left alone: so a run that was broken
off is resumed by running again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from botocore.exceptions import ClientError

__all__ = ["OWNER_METADATA", "SOURCE_METADATA", "OutOfTimeError", "Placement", "Source", "SyncError", "head"]

LOGGER = logging.getLogger(__name__)

MULTIPART_THRESHOLD_BYTES = 1024**3
"""CopyObject takes up to 5 GB (Amazon S3 API reference); in parts, several of them at once, it is faster."""
MULTIPART_CHUNK_BYTES = 256 * 1024**2
CONCURRENT_PARTS = 8
ABANDONED_SECONDS = 20 * 60
"""An upload that was begun so long ago is nobody's: no run takes longer than Lambda's 15 minutes."""
SOURCE_METADATA = "triton-source-key"
"""Object metadata that names the archive's content, so that a repeated run copies nothing again."""
OWNER_METADATA = "constructs-triton-owner"
"""Object metadata that names who placed the archive: nobody else may prune it."""
_CHECKSUMS = ("ChecksumCRC32", "ChecksumCRC32C", "ChecksumCRC64NVME", "ChecksumSHA1", "ChecksumSHA256")
_HIDDEN = (403, 404)  # without a permission to list the bucket S3 answers 403 for a key that is not there


class SyncError(Exception):
    """Archives that could not be placed; the message is for the user."""


class OutOfTimeError(Exception):
    """The time is up before an archive was in place; nothing is wrong with it."""


@dataclass(frozen=True)
class Source:
    """An object to copy, and how long it has to be, where that is known."""

    bucket: str
    key: str
    size_bytes: int | None = None

    @property
    def url(self) -> str:
        return f"s3://{self.bucket}/{self.key}"


@dataclass
class Placement:
    """Places archives below ``prefix`` of ``bucket`` in the name of ``owner``.

    ``is_time_up`` is asked between the parts of a large copy. ``uploads`` holds the multipart uploads that
    were begun and are not complete, by key: hand them to the next run and it goes on with their parts.
    """

    client: Any
    bucket: str
    prefix: str
    owner: str
    is_time_up: Callable[[], bool] = lambda: False
    uploads: dict[str, str] = field(default_factory=dict)

    def place(self, source: Source, target_model: str) -> None:
        """Copy ``source`` to ``target_model``.

        Raises:
            SyncError: the source, or the copy, is not as it has to be.
            OutOfTimeError: the time was up between two parts.
            ClientError: S3 refused.
        """
        key = self.prefix + target_model
        if self.is_placed(source.key, source.size_bytes, target_model):
            LOGGER.info("%s is already in place", key)
            return
        origin = self.client.head_object(Bucket=source.bucket, Key=source.key, ChecksumMode="ENABLED")
        _verify_size(origin, source.size_bytes, source.url)
        if origin["ContentLength"] > MULTIPART_THRESHOLD_BYTES:
            self._copy_in_parts(source, key, origin)
        else:
            self._copy(source, key, origin)
        placed = self.client.head_object(Bucket=self.bucket, Key=key, ChecksumMode="ENABLED")
        _verify_copy(origin, placed, f"s3://{self.bucket}/{key}")
        LOGGER.info("%s placed, %d bytes", key, placed["ContentLength"])

    def is_placed(self, source_key: str, size_bytes: int | None, target_model: str) -> bool:
        """Whether exactly this content is there: its key names it, so no byte needs to be compared."""
        found = head(self.client, self.bucket, self.prefix + target_model)
        if found is None or found["Metadata"].get(SOURCE_METADATA) != source_key:
            return False
        return size_bytes is None or bool(found["ContentLength"] == size_bytes)

    def metadata(self, source_key: str) -> dict[str, str]:
        """What an object below the prefix says of itself."""
        return {SOURCE_METADATA: source_key, OWNER_METADATA: self.owner}

    def _copy(self, source: Source, key: str, origin: Mapping[str, Any]) -> None:
        self.client.copy_object(
            Bucket=self.bucket,
            Key=key,
            CopySource={"Bucket": source.bucket, "Key": source.key},
            CopySourceIfMatch=origin["ETag"],
            Metadata=self.metadata(source.key),
            MetadataDirective="REPLACE",
        )

    def _copy_in_parts(self, source: Source, key: str, origin: Mapping[str, Any]) -> None:
        upload = self._upload(source, key)
        finished = self._finished_parts(key, upload)
        size = int(origin["ContentLength"])
        missing = [number for number in range(1, _count_parts(size) + 1) if number not in finished]

        def copy(number: int) -> None:
            if self.is_time_up():
                raise OutOfTimeError(key)
            finished[number] = self._copy_part(source, key, upload, number, origin)

        with ThreadPoolExecutor(CONCURRENT_PARTS) as pool:
            for _ in pool.map(copy, missing):
                pass
        parts = [{"PartNumber": number, "ETag": finished[number]} for number in sorted(finished)]
        self.client.complete_multipart_upload(
            Bucket=self.bucket, Key=key, UploadId=upload, MultipartUpload={"Parts": parts}
        )
        self.uploads.pop(key, None)

    def _copy_part(
        self, source: Source, key: str, upload: str, number: int, origin: Mapping[str, Any]
    ) -> str:
        first = (number - 1) * MULTIPART_CHUNK_BYTES
        last = min(first + MULTIPART_CHUNK_BYTES, origin["ContentLength"]) - 1
        copied = self.client.upload_part_copy(
            Bucket=self.bucket,
            Key=key,
            UploadId=upload,
            PartNumber=number,
            CopySource={"Bucket": source.bucket, "Key": source.key},
            CopySourceIfMatch=origin["ETag"],
            CopySourceRange=f"bytes={first}-{last}",
        )
        return str(copied["CopyPartResult"]["ETag"])

    def _upload(self, source: Source, key: str) -> str:
        """The upload to go on with, or a new one; what a run that died has begun is given up."""
        if key in self.uploads:
            return self.uploads[key]
        self._abort_abandoned(key)
        begun = self.client.create_multipart_upload(
            Bucket=self.bucket, Key=key, Metadata=self.metadata(source.key)
        )
        self.uploads[key] = str(begun["UploadId"])
        return self.uploads[key]

    def _abort_abandoned(self, key: str) -> None:
        found = self.client.list_multipart_uploads(Bucket=self.bucket, Prefix=key)
        for upload in found.get("Uploads", ()):
            if upload["Key"] == key and _age_seconds(upload["Initiated"]) >= ABANDONED_SECONDS:
                with suppress(ClientError):  # another run may have come first
                    self.client.abort_multipart_upload(
                        Bucket=self.bucket, Key=key, UploadId=upload["UploadId"]
                    )

    def _finished_parts(self, key: str, upload: str) -> dict[int, str]:
        pages = self.client.get_paginator("list_parts").paginate(Bucket=self.bucket, Key=key, UploadId=upload)
        return {part["PartNumber"]: part["ETag"] for page in pages for part in page.get("Parts", ())}


def head(client: Any, bucket: str, key: str) -> Any:
    """What S3 says of an object, or ``None`` where it is not there or hidden."""
    try:
        return client.head_object(Bucket=bucket, Key=key)
    except ClientError as error:
        if error.response["ResponseMetadata"]["HTTPStatusCode"] in _HIDDEN:
            return None
        raise


def _age_seconds(moment: datetime) -> float:
    return (datetime.now(UTC) - moment).total_seconds()


def _count_parts(size_bytes: int) -> int:
    return -(-size_bytes // MULTIPART_CHUNK_BYTES)


def _verify_size(found: Mapping[str, Any], expected: int | None, url: str) -> None:
    if expected is not None and found["ContentLength"] != expected:
        raise SyncError(f"{url} holds {found['ContentLength']} bytes, expected {expected}")


def _verify_copy(origin: Mapping[str, Any], placed: Mapping[str, Any], url: str) -> None:
    _verify_size(placed, origin["ContentLength"], url)
    for name, wanted in _checksums(origin).items():
        found = _checksums(placed).get(name, wanted)
        if found != wanted:
            raise SyncError(f"{url} has {name} {found}, its source {wanted}")


def _checksums(found: Mapping[str, Any]) -> dict[str, str]:
    """The check sums of the whole content: of parts and of encrypted objects, some say something else."""
    sums = {name: str(found[name]) for name in _CHECKSUMS if name in found and "-" not in found[name]}
    is_md5 = "-" not in found["ETag"] and found.get("ServerSideEncryption", "AES256") == "AES256"
    return {**sums, "ETag": str(found["ETag"])} if is_md5 else sums
