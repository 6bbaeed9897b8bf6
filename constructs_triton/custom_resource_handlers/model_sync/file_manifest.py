"""The list of the files of an uncompressed model: one JSON object in S3 for any number of files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["FileManifest", "ListedFile"]

_VERSION = 1


@dataclass(frozen=True)
class ListedFile:
    """One file: its path below ``/opt/ml/model``, its size, and where its content is.

    The content of a large file is the object ``source_key``. That of a small file is in the zip, from
    ``offset`` on, and has the checksum ``crc32``.
    """

    path: str
    size_bytes: int
    source_key: str | None = None
    offset: int = 0
    crc32: int = 0


@dataclass(frozen=True)
class FileManifest:
    """All files that belong below one prefix, and the key of the zip with the small ones.

    As JSON: ``{"version": 1, "zip": "<digest>.zip", "files": [{"Path": "resnet/1/model.onnx", "SizeBytes":
    9000000, "SourceKey": "<digest>.modelfile"}, {"Path": "resnet/config.pbtxt", "SizeBytes": 123, "Offset":
    49, "Crc32": 3735928559}]}``.
    """

    files: tuple[ListedFile, ...]
    zip_key: str | None = None

    @classmethod
    def of(cls, files: Iterable[ListedFile], zip_key: str | None) -> FileManifest:
        """A manifest of these files, sorted by path, so that equal lists give equal strings."""
        return cls(tuple(sorted(files, key=lambda file: file.path)), zip_key)

    @classmethod
    def from_json(cls, text: str | bytes) -> FileManifest:
        """Read a manifest.

        Raises:
            ValueError: the text is not JSON, or not a manifest of this version.
        """
        try:
            value = json.loads(text)
        except RecursionError as error:
            raise ValueError("manifest: must not be nested that deeply; deploy again") from error
        if not isinstance(value, dict) or value.get("version") != _VERSION:
            raise ValueError(f"manifest: must have version {_VERSION}; deploy again")
        rows, zip_key = value.get("files"), value.get("zip")
        if not isinstance(rows, list) or not all(_is_row(row, has_zip=zip_key is not None) for row in rows):
            raise ValueError("manifest: must list files with Path, SizeBytes and a source; deploy again")
        return cls(tuple(map(_listed, rows)), None if zip_key is None else str(zip_key))

    def to_json(self) -> str:
        """The manifest as JSON; equal manifests give equal strings."""
        value = {"version": _VERSION, "zip": self.zip_key, "files": [_row(file) for file in self.files]}
        return json.dumps(value, indent=1)

    @property
    def digest(self) -> str:
        """SHA-256 of the JSON, in hexadecimal."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()


def _row(file: ListedFile) -> dict[str, str | int]:
    row: dict[str, str | int] = {"Path": file.path, "SizeBytes": file.size_bytes}
    if file.source_key is None:
        return {**row, "Offset": file.offset, "Crc32": file.crc32}
    return {**row, "SourceKey": file.source_key}


def _listed(row: Mapping[str, Any]) -> ListedFile:
    return ListedFile(
        path=row["Path"],
        size_bytes=row["SizeBytes"],
        source_key=row.get("SourceKey"),
        offset=row.get("Offset", 0),
        crc32=row.get("Crc32", 0),
    )


def _is_row(row: object, *, has_zip: bool) -> bool:
    if not isinstance(row, dict) or not isinstance(row.get("Path"), str):
        return False
    if "SourceKey" in row:
        return isinstance(row["SourceKey"], str) and _is_count(row.get("SizeBytes"))
    return has_zip and all(_is_count(row.get(key)) for key in ("SizeBytes", "Offset", "Crc32"))


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
