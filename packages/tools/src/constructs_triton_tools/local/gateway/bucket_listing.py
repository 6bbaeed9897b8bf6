"""ListObjectsV2 for a folder in place of S3: pages of at most 1,000 keys, in the order of S3.

Source: S3's API reference. Keys are sorted by the bytes of UTF-8. A page reads only the folders that it
needs.
"""

from __future__ import annotations

import base64
import binascii
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote
from xml.sax.saxutils import escape

from constructs_triton_tools.local.gateway.bucket_folder import etag_of
from constructs_triton_tools.local.gateway.runtime_errors import RuntimeApiError

_PAGE_KEYS = 1000
_SURROGATES = re.compile("[\\ud800-\\udfff]")
_Encode = Callable[[str], str]


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
    return "".join([*(f"<{name}>{value}</{name}>" for name, value in values.items() if value), *rows])


def _page(bucket: Path, listing: _Listing) -> tuple[list[str], str, bool]:
    """Return the rows of a page, the key that the next page begins after, and whether there is one."""
    rows: list[str] = []
    last, group, delimiter = listing.start, "", listing.delimiter
    for key, path in _objects(bucket, listing):
        if not group or not key.startswith(group):
            if len(rows) == listing.limit:
                return rows, last, bool(rows)
            end = key.find(delimiter, len(listing.prefix)) if delimiter else -1
            group = key[: end + len(delimiter)] if end >= 0 else ""
            rows.append(_group_row(group, listing) if group else _row(key, path, listing))
        last = key
    return rows, last, False


def _row(key: str, path: Path, listing: _Listing) -> str:
    status = path.stat()
    modified = datetime.fromtimestamp(status.st_mtime, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    return (
        f"<Contents><Key>{listing.encode(key)}</Key><LastModified>{modified}</LastModified>"
        f"<ETag>{escape(etag_of(path))}</ETag><Size>{status.st_size}</Size></Contents>"
    )


def _group_row(group: str, listing: _Listing) -> str:
    return f"<CommonPrefixes><Prefix>{listing.encode(group)}</Prefix></CommonPrefixes>"


def _objects(bucket: Path, listing: _Listing) -> Iterator[tuple[str, Path]]:
    """Yield the wanted keys of a bucket in order, with their files; other folders are not read."""
    prefix, start = listing.prefix, listing.start
    waiting = _entries(bucket, "")
    while waiting:
        key, entry = waiting.pop()
        is_after = _bytes(key) > _bytes(start)
        if not key.endswith("/"):
            if is_after and key.startswith(prefix):
                yield key, Path(entry.path)
        elif (is_after or start.startswith(key)) and (key.startswith(prefix) or prefix.startswith(key)):
            waiting += _entries(entry.path, key)


def _entries(folder: str | Path, name: str) -> list[tuple[str, os.DirEntry[str]]]:
    """Return the files of a folder, and its folders with a slash, in the opposite order of their keys.

    Links are left out, because they can lead out of the bucket, and names that are not UTF-8.
    """
    found: list[tuple[str, os.DirEntry[str]]] = []
    # There is no such bucket yet, or the folder was deleted meanwhile, or it may not be read.
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                found.append((f"{name}{entry.name}/", entry))
            elif entry.is_file(follow_symlinks=False):
                found.append((f"{name}{entry.name}", entry))
    known = (each for each in found if not _SURROGATES.search(each[0]))
    return sorted(known, key=lambda each: _bytes(each[0]), reverse=True)


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
