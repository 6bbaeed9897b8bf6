"""A folder in place of S3: ``s3://bucket/key`` is ``<folder>/bucket/key``.

ListObjectsV2 for a folder in place of S3: pages of at most 1,000 keys, in the order of S3.

Source: S3's API reference. Keys are sorted by the bytes of UTF-8. A page reads only the folders
that it needs.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote
from uuid import uuid4
from xml.sax.saxutils import escape

from constructs_triton_core.untrusted.written_files import write_whole
from constructs_triton_tools.local.gateway.runtime_errors import RuntimeApiError, validation_error

#: No bucket has a name that begins with a dot.
_METADATA = ".metadata"
_PARTIAL = ".partial"
#: As for S3's oldest buckets, because the names of a template that is not deployed are logical IDs.
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,254}", re.ASCII)
_MOST_KEY_BYTES = 1024
_MOST_NAME_BYTES = 250  # with ".json", a name of the file system
_MOST_READ_BYTES = 1 << 30  # SageMaker's limit for the input of an asynchronous inference
#: What uploads leave of the disk.
FREE_BYTES = 1 << 30
_PAGE_KEYS = 1000
_SURROGATES = re.compile("[\\ud800-\\udfff]")
_Encode = Callable[[str], str]


class BucketFolder:
    """A folder in place of S3, with a subfolder for each bucket."""

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()

    def path_of(self, location: str) -> Path:
        """Return the file for ``s3://bucket/key``."""
        scheme, _, rest = location.partition("://")
        bucket, _, key = rest.partition("/")
        if scheme != "s3" or not key:
            raise _wrong(location)
        folder = self.bucket(bucket)
        if "\0" in key:
            raise RuntimeApiError(400, "InvalidURI", "Couldn't parse the specified URI.")
        parts = key.encode(errors="surrogateescape").split(b"/")
        if len(key) > _MOST_KEY_BYTES or max(map(len, parts)) > _MOST_NAME_BYTES:
            raise RuntimeApiError(
                400,
                "KeyTooLongError",
                "Your key is too long: a local run allows 250 bytes between slashes",
            )
        path = (folder / key).resolve()
        if not path.is_relative_to(folder) or path == folder:
            raise _wrong(location)
        return path

    def bucket(self, name: str) -> Path:
        """Return the folder of a bucket, which may not exist."""
        if _BUCKET.fullmatch(name) is None:
            raise RuntimeApiError(400, "InvalidBucketName", "The specified bucket is not valid.")
        return self._root / name

    def read(self, location: str) -> bytes:
        """Return the content of an object."""
        path = self.path_of(location)
        try:
            if path.stat().st_size > _MOST_READ_BYTES:
                raise validation_error(f"an input may have at most 1 GiB: {location}")
            return path.read_bytes()
        except OSError:
            raise no_such_key(location) from None

    def write(self, location: str, content: bytes) -> None:
        """Write an object. Readers never see a part of it."""
        partial = self.partial_file()
        partial.write_bytes(content)
        self.place(location, partial, {})

    def partial_file(self) -> Path:
        """Return the path of a new file that becomes an object when it is complete."""
        folder = self._root / _PARTIAL
        folder.mkdir(parents=True, exist_ok=True)
        return folder / uuid4().hex

    def place(self, location: str, complete: Path, metadata: Mapping[str, str]) -> None:
        """Move a complete file to its location, with the metadata that ``metadata_of`` returns."""
        path = self.path_of(location)
        path.parent.mkdir(parents=True, exist_ok=True)
        if metadata:
            note = self._note(path)
            note.parent.mkdir(parents=True, exist_ok=True)
            write_whole(note, json.dumps([etag_of(complete), dict(metadata)]))
        complete.replace(path)

    def metadata_of(self, location: str) -> dict[str, str]:
        """Return the metadata of an object; a file that was placed by hand has none."""
        path = self.path_of(location)
        try:
            etag, metadata = json.loads(self._note(path).read_text(encoding="utf-8"))
            return dict(metadata) if etag == etag_of(path) else {}
        except (OSError, ValueError):
            return {}

    def delete(self, location: str) -> None:
        """Delete an object; S3 does not report that there was none."""
        path = self.path_of(location)
        with suppress(NotADirectoryError, IsADirectoryError):  # so there is no such object
            self._note(path).unlink(missing_ok=True)
            path.unlink(missing_ok=True)

    def expect_room(self, size: int) -> None:
        """Refuse an upload that leaves too little of the disk:
        every user of the machine can upload.
        """
        place = next(folder for folder in (self._root, *self._root.parents) if folder.exists())
        if shutil.disk_usage(place).free - size < FREE_BYTES:
            raise RuntimeApiError(
                507,
                "InsufficientStorage",
                "a local run leaves 1 GiB of the disk free; delete files",
            )

    def new_upload(self) -> Path:
        """Return a new folder for the parts of an upload."""
        folder = self.partial_file()
        folder.mkdir()
        return folder

    def upload(self, name: str) -> Path:
        """Return the folder of an upload."""
        folder = self._root / _PARTIAL / name
        if not name.isalnum() or not folder.is_dir():
            raise RuntimeApiError(
                404, "NoSuchUpload", f"The specified upload does not exist: {name[:64]!r}"
            )
        return folder

    def join(self, upload: Path) -> Path:
        """Return a file with the parts of an upload, in the order of their numbers;
        delete the parts.
        """
        whole = self.partial_file()
        numbered = (path for path in upload.iterdir() if path.name.isdecimal())
        parts = sorted(numbered, key=lambda path: int(path.name))
        self.expect_room(sum(path.stat().st_size for path in parts))
        with whole.open("wb") as file:
            for part in parts:
                with part.open("rb") as source:
                    shutil.copyfileobj(source, file)
        shutil.rmtree(upload)
        return whole

    def _note(self, path: Path) -> Path:
        return self._root / _METADATA / f"{path.relative_to(self._root)}.json"


def etag_of(path: Path) -> str:
    """Return what changes with the content of a file, as aiohttp writes it."""
    status = path.stat()
    return f'"{status.st_mtime_ns:x}-{status.st_size:x}"'


def no_such_key(location: str) -> RuntimeApiError:
    """Return S3's error for an object that does not exist."""
    return RuntimeApiError(
        404, "NoSuchKey", f"NoSuchKey: The specified key does not exist: {location}"
    )


def _wrong(location: str) -> RuntimeApiError:
    return validation_error(f"a location must be s3://bucket/key, got {location!r}")


@dataclass(frozen=True, slots=True)
class _Listing:
    """What is listed: keys with a prefix after a key, and how their names are written."""

    prefix: str
    delimiter: str
    start: str
    limit: int
    encode: _Encode


def list_page(bucket: Path, query: Mapping[str, str]) -> str:
    """Return the content of a ``ListBucketResult``."""
    is_encoded = query.get("encoding-type") == "url"
    encode: _Encode = quote if is_encoded else escape
    listing = _Listing(
        query.get("prefix", ""), query.get("delimiter", ""), _start(query), _limit(query), encode
    )
    rows, last, is_truncated = _page(bucket, listing)
    token = base64.urlsafe_b64encode(last.encode()).decode() if is_truncated else ""
    values = {
        "Prefix": encode(listing.prefix),
        "Delimiter": encode(listing.delimiter),
        "EncodingType": "url" if is_encoded else "",
        "KeyCount": str(len(rows)),
        "MaxKeys": str(listing.limit),
        "IsTruncated": "true" if is_truncated else "false",
        "NextContinuationToken": token,
    }
    return "".join(
        [*(f"<{name}>{value}</{name}>" for name, value in values.items() if value), *rows]
    )


def _page(bucket: Path, listing: _Listing) -> tuple[list[str], str, bool]:
    """Return the rows of a page, the key that the next page begins after,
    and whether there is one.
    """
    rows: list[str] = []
    last = listing.start
    group = ""
    delimiter = listing.delimiter
    for key, path in _objects(bucket, listing):
        if not group or not key.startswith(group):
            if len(rows) == listing.limit:
                return rows, last, bool(rows)
            end = key.find(delimiter, len(listing.prefix)) if delimiter else -1
            group = key[: end + len(delimiter)] if end >= 0 else ""
            common = f"<CommonPrefixes><Prefix>{listing.encode(group)}</Prefix></CommonPrefixes>"
            rows.append(common if group else _row(key, path, listing))
        last = key
    return rows, last, False


def _row(key: str, path: Path, listing: _Listing) -> str:
    status = path.stat()
    modified = datetime.fromtimestamp(status.st_mtime, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    return (
        f"<Contents><Key>{listing.encode(key)}</Key><LastModified>{modified}</LastModified>"
        f"<ETag>{escape(etag_of(path))}</ETag><Size>{status.st_size}</Size></Contents>"
    )


def _objects(bucket: Path, listing: _Listing) -> Iterator[tuple[str, Path]]:
    """Yield the wanted keys of a bucket in order, with their files; other folders are not read."""
    prefix = listing.prefix
    start = listing.start
    waiting = _entries(bucket, "")
    while waiting:
        key, entry = waiting.pop()
        is_after = _bytes(key) > _bytes(start)
        if not key.endswith("/"):
            if is_after and key.startswith(prefix):
                yield key, Path(entry.path)
        elif (is_after or start.startswith(key)) and (
            key.startswith(prefix) or prefix.startswith(key)
        ):
            waiting += _entries(entry.path, key)


def _entries(folder: str | Path, name: str) -> list[tuple[str, os.DirEntry[str]]]:
    """Return the files of a folder, and its folders with a slash, in the opposite order of their
    keys.

    Links are left out, because they can lead out of the bucket, and names that are not UTF-8.
    """
    found: list[tuple[str, os.DirEntry[str]]] = []
    # There is no such bucket yet, or another process deleted the folder, or it may not be read.
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                found.append((f"{name}{entry.name}/", entry))
            elif entry.is_file(follow_symlinks=False):
                found.append((f"{name}{entry.name}", entry))
    named = [(key, entry) for key, entry in found if not _SURROGATES.search(key)]
    return sorted(named, key=lambda pair: _bytes(pair[0]), reverse=True)


def _bytes(key: str) -> bytes:
    return key.encode(errors="surrogateescape")


def _limit(query: Mapping[str, str]) -> int:
    given = query.get("max-keys", str(_PAGE_KEYS))
    if not (given.isascii() and given.isdecimal() and len(given) < 11):
        raise RuntimeApiError(
            400, "InvalidArgument", "Argument maxKeys must be an integer between 0 and 2147483647"
        )
    return min(int(given), _PAGE_KEYS)


def _start(query: Mapping[str, str]) -> str:
    """Return the key that a page begins after."""
    token = query.get("continuation-token")
    if token is None:
        return query.get("start-after", query.get("marker", ""))
    try:
        return base64.b64decode(token.encode(), b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        raise RuntimeApiError(
            400, "InvalidArgument", "The continuation token provided is incorrect"
        ) from None
