"""Places the files of an uncompressed model: large ones are copied inside S3, small ones come from
a zip.

The zip is not compressed and the manifest says where each file is in it, so a part of the zip is
enough to place some of the files. A file that is already in place is not placed again.
"""

from __future__ import annotations

import base64
import logging
import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from ..retries import read_object
from .key_failures import explained_key_failures
from .manifest import FileManifest, ListedFile
from .placement import Placement, Source, SyncError, head, objects_below, several_at_once

LOGGER = logging.getLogger(__name__)

BATCH_BYTES = 4 * 1024**2
"""Content of the zip that is read at a time, by each of several threads."""
_LISTED_STRANGERS = 5

Step = tuple[str, Callable[[], None]]
"""What a step places, for errors, and the function that does it."""


class FilePlacement:
    """Places the files of ``manifest`` below ``folder``,
    which is relative to the prefix of ``placement``.
    """

    def __init__(
        self, placement: Placement, source_bucket: str, folder: str, manifest: FileManifest
    ) -> None:
        self._placement = placement
        self._source_bucket = source_bucket
        self._folder = folder
        self._manifest = manifest

    def steps(self) -> Iterator[Step]:
        """Yield the steps, in an order that does not depend on what is in place already.

        Raises:
            SyncError: there are objects below the folder that the model does not have.
        """
        present = self._present()
        self._refuse_strangers(present)
        small = []
        for file in self._manifest.files:
            if file.source_key is None:
                small.append(file)
            else:
                yield (
                    file.path,
                    partial(
                        self._copy,
                        Source(self._source_bucket, file.source_key, file.size_bytes),
                        file,
                    ),
                )
        for batch in _batches(small):
            are_present = several_at_once(partial(self._is_present, present=present), batch)
            missing = [
                file for file, is_present in zip(batch, are_present, strict=True) if not is_present
            ]
            yield batch[0].path, partial(self._unpack, missing)

    def _present(self) -> dict[str, int]:
        """The size of each object below the folder."""
        placement = self._placement
        return objects_below(placement.client, placement.bucket, placement.prefix + self._folder)

    def _is_present(self, file: ListedFile, present: dict[str, int]) -> bool:
        is_new = present.get(file.path) != file.size_bytes
        if not is_new and self._is_encrypted(file):
            return True
        self._placement.expect_no_refusal(is_new=is_new)
        return False

    def _is_encrypted(self, file: ListedFile) -> bool:
        placement = self._placement
        if (
            not placement.encryption.may_differ
        ):  # the list of objects does not say how they are encrypted
            return True
        found = head(
            placement.client, placement.bucket, placement.prefix + self._folder + file.path
        )
        return found is not None and placement.encryption.is_applied(found)

    def _refuse_strangers(self, present: dict[str, int]) -> None:
        # SageMaker downloads every object of the prefix, and fails if the key of one ends with "/".
        strangers = sorted(present.keys() - {file.path for file in self._manifest.files})
        if strangers:
            url = f"s3://{self._placement.bucket}/{self._placement.prefix}{self._folder}"
            raise SyncError(
                f"{url}: has {len(strangers)} objects that are not files of the model, got "
                f"{', '.join(map(repr, strangers[:_LISTED_STRANGERS]))}; move them to another "
                "prefix"
            )

    def _copy(self, source: Source, file: ListedFile) -> None:
        self._placement.place(source, self._folder + file.path)

    def _unpack(self, files: Sequence[ListedFile]) -> None:
        """Read the part of the zip that contains the files, and write each as an object."""
        if not files:
            return
        first, last = files[0].offset, max(file.offset + file.size_bytes for file in files)
        content = self._read(first, last)
        for file in files:
            start = file.offset - first
            self._write(file, content[start : start + file.size_bytes])

    def _read(self, first: int, last: int) -> bytes:
        if first == last:  # a range cannot be empty
            return b""
        zip_key = str(self._manifest.zip_key)
        client = self._placement.client
        with explained_key_failures(
            client,
            f"s3://{self._source_bucket}/{zip_key}: cannot be read",
            (self._source_bucket, zip_key),
        ):
            content, _ = read_object(
                client,
                Bucket=self._source_bucket,
                Key=zip_key,
                Range=f"bytes={first}-{last - 1}",
            )
        return content

    def _write(self, file: ListedFile, content: bytes) -> None:
        placement = self._placement
        if len(content) != file.size_bytes or zlib.crc32(content) != file.crc32:
            raise SyncError(
                f"s3://{self._source_bucket}/{self._manifest.zip_key}: the content of {file.path} "
                f"must have CRC-32 {file.crc32:08x}, "
                f"got {zlib.crc32(content):08x}; move the object to another key, and deploy "
                "again, which uploads it again"
            )
        key = placement.prefix + self._folder + file.path
        with explained_key_failures(
            placement.client,
            f"s3://{placement.bucket}/{key}: cannot be written",
            (placement.bucket, key),
            key=placement.encryption.key,
        ):
            placement.client.put_object(
                Bucket=placement.bucket,
                Key=key,
                Body=content,
                Metadata=placement.metadata(str(self._manifest.zip_key)),
                # S3 compares it with what it has received.
                ChecksumCRC32=base64.b64encode(file.crc32.to_bytes(4, "big")).decode(),
                **placement.encryption.arguments,
            )
        LOGGER.info("%s placed, %d bytes", file.path, file.size_bytes)


def _batches(files: Sequence[ListedFile]) -> Iterator[list[ListedFile]]:
    """Group files that are close to each other in the zip."""
    batch: list[ListedFile] = []
    for file in sorted(files, key=lambda each: each.offset):
        if batch and file.offset + file.size_bytes - batch[0].offset > BATCH_BYTES:
            yield batch
            batch = []
        batch.append(file)
    if batch:
        yield batch
