"""Downloads objects of S3 into a temporary folder, up to a number of bytes in all."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from constructs_triton_core.aws.aws_reader import AwsError
from constructs_triton_core.errors import ArchiveError
from constructs_triton_core.untrusted.budget import UnpackBudget
from constructs_triton_tools.operations.adopting.reading import RecordingReader
from triton_model_check.untrusted.tar_reader import UnpackLimits

_CHUNK_BYTES = 1 << 20
_MOST_TIMES = 10
#: Archives under one prefix that are checked.
_MOST_OBJECTS = 1000
_MOST_MEMBERS = 1_000_000
_HINT = "add --max-download with more MiB"


class Downloads:
    """Objects that were downloaded."""

    def __init__(self, reader: RecordingReader, directory: Path, max_bytes: int) -> None:
        self._reader = reader
        self.directory = directory
        self._left = self._max_bytes = max_bytes
        # Weights compress by less than ten times.
        self._max_unpacked = max(1 << 30, _MOST_TIMES * max_bytes)
        self.budget = UnpackBudget(self._max_unpacked, _MOST_MEMBERS, _HINT)

    @property
    def limits(self) -> UnpackLimits:
        """What an archive may unpack to, as usual and together with the others."""
        return replace(UnpackLimits.from_environment(), budget=self.budget)

    def list(self, bucket: str, prefix: str) -> list[dict[str, Any]]:
        """Return up to a thousand objects under a prefix."""
        answer = self._reader.read(
            "s3", "list_objects_v2", Bucket=bucket, Prefix=prefix, MaxKeys=_MOST_OBJECTS
        )
        if answer.get("IsTruncated"):
            self._reader.not_read.append(
                f"s3://{bucket}/{prefix}: only the first {_MOST_OBJECTS} objects were read"
            )
        found: list[dict[str, Any]] = answer.get("Contents", [])
        return found

    def head(self, bucket: str, key: str) -> dict[str, Any] | None:
        """Return the properties of an object; ``None`` if the credentials may not read them."""
        return self._read("head_object", bucket, key)

    def fetch(self, bucket: str, key: str, size: int) -> Path | None:
        """Download an object into a folder of its own; ``None`` if it is too large or may not be read."""
        if self.budget.is_spent:
            self.skip(bucket, key)
            return None
        if size > self._left:
            self._reader.not_read.append(
                f"s3://{bucket}/{key}: was not downloaded and checked, since it has {size:,} bytes and "
                f"{self._max_bytes:,} may be downloaded; {_HINT}"
            )
            return None
        answer = self._read("get_object", bucket, key)
        if answer is None:
            return None
        self._left -= size
        path = Path(tempfile.mkdtemp(dir=self.directory)) / "archive.tar.gz"
        with path.open("wb") as file:
            # No more than S3 announced, whatever it sends.
            for chunk in answer["Body"].iter_chunks(_CHUNK_BYTES):
                file.write(chunk)
                if file.tell() > size:
                    break
        return path

    def skip(self, bucket: str, key: str) -> None:
        """Note that an archive was not checked, since the archives before it unpack to too much."""
        self._reader.not_read.append(
            f"s3://{bucket}/{key}: was not checked, since the archives together unpack to more than "
            f"{self._max_unpacked:,} bytes or {_MOST_MEMBERS:,} members; {_HINT}"
        )

    def _read(self, operation: str, bucket: str, key: str) -> dict[str, Any] | None:
        try:
            return self._reader.require("s3", operation, Bucket=bucket, Key=key)
        except AwsError as error:
            if not error.code or error.permission == "s3:GetObject":
                self._reader.note(error)
                return None
            raise ArchiveError(
                f"s3://{bucket}/{key}: cannot be read ({error.reason}), and new instances "
                "load it from there; upload the archive again, or restore its KMS key"
            ) from None
