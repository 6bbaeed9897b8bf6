"""Copies one archive below a prefix inside S3, in parts if it is large, and verifies the copy.

An archive that is already in place, with the same source key and size, is not copied again. A run
that was interrupted is therefore resumed by running it again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeVar

from botocore.exceptions import ClientError

from .. import SERVICE_TIMEOUT_SECONDS
from ..response import CustomResourceError
from ..retries import denied_means_missing
from .encryption import DecryptionError, Encryption, expect_decryption
from .key_failures import explained_key_failures

__all__ = [
    "OWNER_METADATA",
    "SOURCE_METADATA",
    "OutOfTimeError",
    "Placement",
    "Source",
    "SyncError",
    "head",
    "objects_below",
    "several_at_once",
]

LOGGER = logging.getLogger(__name__)
Item = TypeVar("Item")
Result = TypeVar("Result")

MULTIPART_THRESHOLD_BYTES = 1024**3
"""CopyObject copies up to 5 GB (Amazon S3 API reference). Copying parts in parallel is faster."""
MULTIPART_CHUNK_BYTES = 256 * 1024**2
CONCURRENT_PARTS = 8
CONCURRENT_CHECKS = 16
ABANDONED_SECONDS = SERVICE_TIMEOUT_SECONDS
"""An upload this old is not in use any more: CloudFormation waits no longer for the last run."""
SOURCE_METADATA = "triton-source-key"
"""Object metadata with the key of the source, so that a repeated run does not copy it again."""
OWNER_METADATA = "constructs-triton-owner"
"""Object metadata with the owner that placed the archive: only that owner may prune it."""
_CHECKSUMS = (
    "ChecksumCRC32",
    "ChecksumCRC32C",
    "ChecksumCRC64NVME",
    "ChecksumSHA1",
    "ChecksumSHA256",
)
_MISSING = (
    403,
    404,
)  # without permission to list the bucket, S3 returns 403 for a key that does not exist


class SyncError(CustomResourceError):
    """Archives could not be placed; the message is for the user."""


class OutOfTimeError(Exception):
    """The run's time ended before an archive was in place; the archive itself is fine."""


@dataclass(frozen=True)
class Source:
    """An object to copy, and its size in bytes if known."""

    bucket: str
    key: str
    size_bytes: int | None = None

    @property
    def url(self) -> str:
        return f"s3://{self.bucket}/{self.key}"


@dataclass
class Placement:
    """Places archives below ``prefix`` of ``bucket`` for ``owner``.

    ``is_time_up`` is called before each part of a large copy. ``uploads`` maps keys to the ids of
    unfinished multipart uploads. Pass them to the next run, and it continues with the parts that
    are missing. ``encryption`` is that of the objects. With a ``refusal``, new content raises it.
    Content in place may still be encrypted again, unless the key changes and other objects cannot
    be. Both ways to write raise ``SyncError`` if the copy is not as expected, and
    ``OutOfTimeError`` between two parts.
    """

    client: Any
    bucket: str
    prefix: str
    owner: str
    is_time_up: Callable[[], bool] = lambda: False
    uploads: dict[str, str] = field(default_factory=dict)
    encryption: Encryption = field(default_factory=Encryption)
    refusal: CustomResourceError | None = None

    def place(self, source: Source, target_model: str) -> None:
        """Copy ``source`` to ``target_model``."""
        key = self.prefix + target_model
        found = self.find(source.key, source.size_bytes, target_model)
        if found is not None and self.encryption.is_applied(found):
            LOGGER.info("%s is already in place", key)
            return
        self.expect_no_refusal(is_new=found is None)
        self._place(source, key, self.metadata(source.key))

    def encrypt_again(self, target_model: str) -> None:
        """Copy an object that exists onto itself unless it has the right encryption."""
        key = self.prefix + target_model
        found = self.client.head_object(Bucket=self.bucket, Key=key)
        if not self.encryption.is_applied(found):
            self._place(Source(self.bucket, key), key, found["Metadata"])

    def expect_decryption(self, target_models: Iterable[str]) -> None:
        """Check, before anything is written, that the role may decrypt objects
        to encrypt them again.
        """
        keys = [self.prefix + target_model for target_model in target_models]

        def describe(key: str) -> Any:
            return self.client.head_object(Bucket=self.bucket, Key=key)

        by_key: dict[str, tuple[str, Any]] = {}
        for key, found in zip(keys, several_at_once(describe, keys), strict=True):
            if "SSEKMSKeyId" in found and not self.encryption.is_applied(found):
                by_key.setdefault(found["SSEKMSKeyId"], (key, found))
        for key, found in by_key.values():
            expect_decryption(self.client, self.bucket, key, found)

    def expect_no_refusal(self, *, is_new: bool) -> None:
        """Raise the refusal before content is written."""
        if self.refusal is None:
            return
        # With another key, a part of the models would have the new one and a part the old one.
        if is_new or (isinstance(self.refusal, DecryptionError) and self.encryption.is_changed):
            raise self.refusal

    def _place(self, source: Source, key: str, metadata: Mapping[str, str]) -> None:
        with explained_key_failures(
            self.client,
            f"{source.url} cannot be copied to s3://{self.bucket}/{key}",
            (source.bucket, source.key),
            (self.bucket, key),
            key=self.encryption.key,
        ):
            self._copy_and_verify(source, key, metadata)

    def _copy_and_verify(self, source: Source, key: str, metadata: Mapping[str, str]) -> None:
        origin = self.client.head_object(
            Bucket=source.bucket, Key=source.key, ChecksumMode="ENABLED"
        )
        _verify_size(origin, source.size_bytes, source.url)
        if origin["ContentLength"] > MULTIPART_THRESHOLD_BYTES:
            self._copy_in_parts(source, key, origin, metadata)
        else:
            self._copy(source, key, origin, metadata)
        placed = self.client.head_object(Bucket=self.bucket, Key=key, ChecksumMode="ENABLED")
        _verify_copy(origin, placed, f"s3://{self.bucket}/{key}")
        self._verify_encryption(placed, f"s3://{self.bucket}/{key}")
        LOGGER.info("%s placed, %d bytes", key, placed["ContentLength"])

    def is_placed(self, source_key: str, size_bytes: int | None, target_model: str) -> bool:
        """Whether exactly this content is in place, by the source's key and the size."""
        return self.find(source_key, size_bytes, target_model) is not None

    def find(self, source_key: str, size_bytes: int | None, target_model: str) -> Any:
        """The attributes of an object with exactly this content, or ``None``."""
        found = head(self.client, self.bucket, self.prefix + target_model)
        if found is None or found["Metadata"].get(SOURCE_METADATA) != source_key:
            return None
        return found if size_bytes in (None, found["ContentLength"]) else None

    def metadata(self, source_key: str) -> dict[str, str]:
        """The metadata of an object below the prefix."""
        return {SOURCE_METADATA: source_key, OWNER_METADATA: self.owner}

    def _verify_encryption(self, placed: Mapping[str, Any], url: str) -> None:
        if not self.encryption.is_applied(placed):
            raise SyncError(
                f"{url}: the bucket still encrypts new objects with {placed.get('SSEKMSKeyId')}; "
                "set encryption_key on the bucket that you pass as bucket, "
                "or change its default encryption"
            )

    def _copy(
        self, source: Source, key: str, origin: Mapping[str, Any], metadata: Mapping[str, str]
    ) -> None:
        self.client.copy_object(
            Bucket=self.bucket,
            Key=key,
            CopySource={"Bucket": source.bucket, "Key": source.key},
            CopySourceIfMatch=origin["ETag"],
            Metadata=metadata,
            MetadataDirective="REPLACE",
            **self.encryption.arguments,
        )

    def _copy_in_parts(
        self, source: Source, key: str, origin: Mapping[str, Any], metadata: Mapping[str, str]
    ) -> None:
        try:
            self._finish_upload(source, key, origin, metadata)
        except ClientError as error:
            if error.response["Error"]["Code"] != "NoSuchUpload":
                raise
            # Lambda may deliver an event twice, so another run may have completed the upload. A
            # lifecycle rule of the bucket may have aborted it.
            self.uploads.pop(key, None)
            if not self._is_copied(key, origin, metadata):
                self._finish_upload(source, key, origin, metadata)

    def _is_copied(self, key: str, origin: Mapping[str, Any], metadata: Mapping[str, str]) -> bool:
        """Whether an object is what a copy of ``origin`` would be, also in its encryption."""
        found = head(self.client, self.bucket, key)
        if found is None or not self.encryption.is_applied(found):
            return False
        is_complete: bool = found["ContentLength"] == origin["ContentLength"]
        return is_complete and found["Metadata"] == dict(metadata)

    def _finish_upload(
        self, source: Source, key: str, origin: Mapping[str, Any], metadata: Mapping[str, str]
    ) -> None:
        """Begin or continue an upload, copy the parts that are missing, and complete it."""
        upload = self._upload(key, metadata)
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

    def _upload(self, key: str, metadata: Mapping[str, str]) -> str:
        """The upload to continue, or a new one; abandoned uploads of earlier runs are aborted."""
        if key in self.uploads:
            return self.uploads[key]
        self._abort_abandoned(key)
        begun = self.client.create_multipart_upload(
            Bucket=self.bucket, Key=key, Metadata=metadata, **self.encryption.arguments
        )
        self.uploads[key] = str(begun["UploadId"])
        return self.uploads[key]

    def _abort_abandoned(self, key: str) -> None:
        found = self.client.list_multipart_uploads(Bucket=self.bucket, Prefix=key)
        for upload in found.get("Uploads", ()):
            if upload["Key"] == key and _age_seconds(upload["Initiated"]) >= ABANDONED_SECONDS:
                with suppress(ClientError):  # another run may have aborted it already
                    self.client.abort_multipart_upload(
                        Bucket=self.bucket, Key=key, UploadId=upload["UploadId"]
                    )

    def _finished_parts(self, key: str, upload: str) -> dict[int, str]:
        pages = self.client.get_paginator("list_parts").paginate(
            Bucket=self.bucket, Key=key, UploadId=upload
        )
        return {
            part["PartNumber"]: part["ETag"] for page in pages for part in page.get("Parts", ())
        }


def several_at_once(check: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """Call a function that asks S3 for each item; return the results in order.

    Every run of the function asks again, so thousands of objects must not take minutes.
    """
    with ThreadPoolExecutor(CONCURRENT_CHECKS) as pool:
        return list(pool.map(check, items))


def head(client: Any, bucket: str, key: str) -> Any:
    """The attributes of an object, or ``None`` if it does not exist or access is denied."""
    try:
        with denied_means_missing():
            return client.head_object(Bucket=bucket, Key=key)
    except ClientError as error:
        if error.response["ResponseMetadata"]["HTTPStatusCode"] in _MISSING:
            return None
        raise


def objects_below(client: Any, bucket: str, prefix: str) -> dict[str, int]:
    """The size of each object below a prefix, by its key without the prefix."""
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
    return {
        found["Key"].removeprefix(prefix): found["Size"]
        for page in pages
        for found in page.get("Contents", ())
    }


def _age_seconds(moment: datetime) -> float:
    return (datetime.now(UTC) - moment).total_seconds()


def _count_parts(size_bytes: int) -> int:
    return -(-size_bytes // MULTIPART_CHUNK_BYTES)


def _verify_size(found: Mapping[str, Any], expected: int | None, url: str) -> None:
    if expected is not None and found["ContentLength"] != expected:
        raise SyncError(
            f"{url}: must have {expected} bytes, got {found['ContentLength']}; upload it again"
        )


def _verify_copy(origin: Mapping[str, Any], placed: Mapping[str, Any], url: str) -> None:
    _verify_size(placed, origin["ContentLength"], url)
    for name, wanted in _checksums(origin).items():
        found = _checksums(placed).get(name, wanted)
        if found != wanted:
            raise SyncError(
                f"{url}: {name} must be {wanted} as in its source, got {found}; upload it again"
            )


def _checksums(found: Mapping[str, Any]) -> dict[str, str]:
    """Checksums of the whole content; those of parts, and MD5 of encrypted objects,
    are left out.
    """
    sums = {
        name: str(found[name]) for name in _CHECKSUMS if name in found and "-" not in found[name]
    }
    is_md5 = "-" not in found["ETag"] and found.get("ServerSideEncryption", "AES256") == "AES256"
    return {**sums, "ETag": str(found["ETag"])} if is_md5 else sums
