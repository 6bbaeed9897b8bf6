"""What belongs below a prefix: archives, or the files of an uncompressed model.

Each list is one JSON object in S3, for any number of entries. Equal lists give equal strings.
"""

from __future__ import annotations

import hashlib
import json
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["FileManifest", "ListedArchive", "ListedFile", "Manifest", "content_name"]

_VERSION = 1
# The fields of an entry, by their name in the JSON.
_ARCHIVE = {
    "Name": "name",
    "SourceKey": "source_key",
    "TargetModel": "target_model",
    "SizeBytes": "size_bytes",
    "GivenBucket": "given_bucket",
}
_COPIED_FILE = {"Path": "path", "SizeBytes": "size_bytes", "SourceKey": "source_key"}
_ZIPPED_FILE = {"Path": "path", "SizeBytes": "size_bytes", "Offset": "offset", "Crc32": "crc32"}
_SHORT_DIGEST = 8


@dataclass(frozen=True)
class ListedArchive:
    """One archive: the model's logical name, the key of its source, and its name below the prefix.

    ``size_bytes`` is ``None`` if the archive was not on the machine that made the list.
    ``given_bucket`` is an index into the resource's ``GivenBuckets``; ``None`` is the bucket of the
    CDK assets.
    """

    name: str
    source_key: str
    target_model: str
    size_bytes: int | None = None
    given_bucket: int | None = None


@dataclass(frozen=True)
class ListedFile:
    """One file: its path below ``/opt/ml/model``, its size, and where its content is.

    The content of a large file is the object ``source_key``. That of a small file is in the zip,
    from ``offset`` on, and has the checksum ``crc32``.
    """

    path: str
    size_bytes: int
    source_key: str | None = None
    offset: int = 0
    crc32: int = 0


class _Listing:
    """A list as JSON, and its digest."""

    @abstractmethod
    def _content(self) -> Mapping[str, Any]: ...

    def to_json(self) -> str:
        """The manifest as JSON."""
        return json.dumps({"version": _VERSION, **self._content()}, indent=1)

    @property
    def digest(self) -> str:
        """SHA-256 of the JSON, in hexadecimal."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()


@dataclass(frozen=True)
class Manifest(_Listing):
    """All archives that belong below one prefix.

    As JSON: ``{"version": 1, "archives": [{"Name": "resnet", "SourceKey": "<digest>.tar.gz",
    "TargetModel": "resnet-3f9c2a1b.tar.gz", "SizeBytes": 123}]}``, with ``GivenBucket`` if there is
    one.
    """

    archives: tuple[ListedArchive, ...]

    @classmethod
    def of(cls, archives: Iterable[ListedArchive]) -> Manifest:
        """A manifest of these archives, sorted by name."""
        return cls(tuple(sorted(archives, key=lambda archive: archive.name)))

    @classmethod
    def from_json(cls, text: str | bytes) -> Manifest:
        """Read a manifest; raises ``ValueError`` if the text is none of this version."""
        rows = _read(text).get("archives")
        if not isinstance(rows, list) or not all(map(_is_archive, rows)):
            raise ValueError(
                "manifest: must list archives with Name, SourceKey and TargetModel; deploy again"
            )
        return cls(tuple(ListedArchive(**_values(row, _ARCHIVE)) for row in rows))

    def _content(self) -> Mapping[str, Any]:
        return {"archives": [_row(archive, _ARCHIVE) for archive in self.archives]}

    @property
    def target_models(self) -> dict[str, str]:
        """The target model of each logical name."""
        return {archive.name: archive.target_model for archive in self.archives}


@dataclass(frozen=True)
class FileManifest(_Listing):
    """All files that belong below one prefix, and the key of the zip with the small ones.

    As JSON: ``{"version": 1, "zip": "<digest>.zip", "files": [{"Path": "resnet/1/model.onnx",
    "SizeBytes": 9000000, "SourceKey": "<digest>.modelfile"}, {"Path": "resnet/config.pbtxt",
    "SizeBytes": 123, "Offset": 49, "Crc32": 3735928559}]}``.
    """

    files: tuple[ListedFile, ...]
    zip_key: str | None = None

    @classmethod
    def of(cls, files: Iterable[ListedFile], zip_key: str | None) -> FileManifest:
        """A manifest of these files, sorted by path."""
        return cls(tuple(sorted(files, key=lambda file: file.path)), zip_key)

    @classmethod
    def from_json(cls, text: str | bytes) -> FileManifest:
        """Read a manifest; raises ``ValueError`` if the text is none of this version."""
        value = _read(text)
        rows, zip_key = value.get("files"), value.get("zip")
        if not isinstance(rows, list) or not all(
            _is_file(row, has_zip=zip_key is not None) for row in rows
        ):
            raise ValueError(
                "manifest: must list files with Path, SizeBytes and a source; deploy again"
            )
        files = (ListedFile(**_values(row, {**_ZIPPED_FILE, **_COPIED_FILE})) for row in rows)
        return cls(tuple(files), None if zip_key is None else str(zip_key))

    def _content(self) -> Mapping[str, Any]:
        rows = [
            _row(file, _COPIED_FILE if file.source_key is not None else _ZIPPED_FILE)
            for file in self.files
        ]
        return {"zip": self.zip_key, "files": rows}


def _read(text: str | bytes) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except RecursionError as error:
        raise ValueError("manifest: must not be nested that deeply; deploy again") from error
    if not isinstance(value, dict) or value.get("version") != _VERSION:
        raise ValueError(f"manifest: must have version {_VERSION}; deploy again")
    return value


def _row(entry: ListedArchive | ListedFile, fields: Mapping[str, str]) -> dict[str, Any]:
    values = {key: getattr(entry, name) for key, name in fields.items()}
    return {key: value for key, value in values.items() if value is not None}


def _values(row: Mapping[str, Any], fields: Mapping[str, str]) -> dict[str, Any]:
    return {name: row[key] for key, name in fields.items() if key in row}


def _is_archive(row: object) -> bool:
    if not isinstance(row, dict):
        return False
    strings = (row.get(key) for key in ("Name", "SourceKey", "TargetModel"))
    numbers = (row.get(key, 0) for key in ("SizeBytes", "GivenBucket"))
    return all(isinstance(each, str) for each in strings) and all(
        isinstance(each, int) for each in numbers
    )


def _is_file(row: object, *, has_zip: bool) -> bool:
    if not isinstance(row, dict) or not isinstance(row.get("Path"), str):
        return False
    if "SourceKey" in row:
        return isinstance(row["SourceKey"], str) and _is_count(row.get("SizeBytes"))
    return has_zip and all(_is_count(row.get(key)) for key in ("SizeBytes", "Offset", "Crc32"))


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def content_name(name: str, content_digest: str) -> str:
    """Return the target model for this content, such as ``resnet-3f9c2a1b.tar.gz``.

    SageMaker does not load a key again that it has loaded before, so new content needs a new name.
    """
    return f"{name}-{content_digest[:_SHORT_DIGEST]}.tar.gz"
