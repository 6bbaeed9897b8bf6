"""Uploads a file to S3, and compares the object with the file.

S3 computes a checksum of what it stored, which ``HeadObject`` returns: of the whole object, or of
the digests of its parts. Source: Amazon S3 user guide, "Checking object integrity in Amazon S3".
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from constructs_triton_core.aws_reader import AwsError, reaching_aws
from constructs_triton_core.errors import ArchiveError

__all__ = ["upload_verified"]

#: The size of the parts. S3 takes 10,000 of them, and objects of 5 TiB at most (Amazon S3 user
#: guide, "Amazon S3 multipart upload limits"); a part of the next larger power of two holds these.
_PART_BYTES = 64 << 20
_MOST_PARTS = 10_000
_READ_BYTES = 1 << 20


def upload_verified(client: Any, file: Path, bucket: str, key: str) -> str:
    """Upload a file, and compare size and checksum of the object with it.

    S3 refuses a part whose checksum differs, so the comparison finds what happens later.

    Returns:
        Why the content was not compared; empty if it was.

    Raises:
        AwsError: S3 cannot be reached, or refuses a call.
        ArchiveError: the object differs from the file.
    """
    from boto3.s3.transfer import TransferConfig

    size = file.stat().st_size
    part_bytes = _part_bytes(size)
    config = TransferConfig(multipart_threshold=part_bytes, multipart_chunksize=part_bytes)
    with reaching_aws("s3"):
        client.upload_file(
            str(file), bucket, key, ExtraArgs={"ChecksumAlgorithm": "SHA256"}, Config=config
        )

    try:
        with reaching_aws("s3"):
            found = client.head_object(Bucket=bucket, Key=key, ChecksumMode="ENABLED")
    except AwsError as error:
        if error.permission is None:
            raise
        return f"{error.permission} is denied, so the object was not compared with the file"

    if found["ContentLength"] != size:
        raise ArchiveError(
            f"s3://{bucket}/{key}: must have {size} bytes, got {found['ContentLength']}; "
            "copy it again"
        )
    checksum = found.get("ChecksumSHA256")
    if checksum is None:
        return "the store has no checksum, so only the size was compared"
    # After a hyphen S3 writes the number of parts.
    if checksum.partition("-")[0] != _checksum(file, size, part_bytes):
        raise ArchiveError(
            f"s3://{bucket}/{key}: its content is not that of the file; copy it again"
        )
    return ""


def _part_bytes(size: int) -> int:
    part_bytes = _PART_BYTES
    while part_bytes * _MOST_PARTS < size:
        part_bytes *= 2
    return part_bytes


def _checksum(file: Path, size: int, part_bytes: int) -> str:
    """Return the checksum that S3 has of the file."""
    digests = list(_digests(file, part_bytes))
    # A file of the size of one part is already uploaded in parts: in one.
    whole = digests[0] if size < part_bytes else hashlib.sha256(b"".join(digests)).digest()
    return base64.b64encode(whole).decode()


def _digests(file: Path, part_bytes: int) -> Iterator[bytes]:
    """Yield the digest of each part; an empty file has one part."""
    with file.open("rb") as content:
        is_first = True
        while True:
            digest = hashlib.sha256()
            left = part_bytes
            while left and (block := content.read(min(left, _READ_BYTES))):
                digest.update(block)
                left -= len(block)
            if left == part_bytes and not is_first:
                return
            yield digest.digest()
            is_first = False
