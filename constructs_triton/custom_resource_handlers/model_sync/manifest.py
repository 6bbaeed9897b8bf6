"""The list of a repository's archives: one JSON object in S3 for any number of models."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["ListedArchive", "Manifest", "content_name"]

_VERSION = 1
_SHORT_DIGEST = 8


@dataclass(frozen=True)
class ListedArchive:
    """One archive: the model's logical name, the key of its source, and its name below the prefix.

    ``size_bytes`` is ``None`` if the archive was not on the machine that made the list. ``given_bucket`` is
    an index into the resource's ``GivenBuckets``; ``None`` is the bucket of the CDK assets.
    """

    name: str
    source_key: str
    target_model: str
    size_bytes: int | None = None
    given_bucket: int | None = None


@dataclass(frozen=True)
class Manifest:
    """All archives that belong below one prefix.

    As JSON: ``{"version": 1, "archives": [{"Name": "resnet", "SourceKey": "<digest>.tar.gz",
    "TargetModel": "resnet-3f9c2a1b.tar.gz", "SizeBytes": 123}]}``, with ``GivenBucket`` if there is one.
    """

    archives: tuple[ListedArchive, ...]

    @classmethod
    def of(cls, archives: Iterable[ListedArchive]) -> Manifest:
        """A manifest of these archives, sorted by name, so that equal lists give equal strings."""
        return cls(tuple(sorted(archives, key=lambda archive: archive.name)))

    @classmethod
    def from_json(cls, text: str | bytes) -> Manifest:
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
        rows = value.get("archives")
        if not isinstance(rows, list) or not all(map(_is_row, rows)):
            raise ValueError(
                "manifest: must list archives with Name, SourceKey and TargetModel; deploy again"
            )
        return cls(
            tuple(
                ListedArchive(
                    name=row["Name"],
                    source_key=row["SourceKey"],
                    target_model=row["TargetModel"],
                    size_bytes=row.get("SizeBytes"),
                    given_bucket=row.get("GivenBucket"),
                )
                for row in rows
            )
        )

    def to_json(self) -> str:
        """The manifest as JSON; equal manifests give equal strings."""
        rows = [
            {
                "Name": archive.name,
                "SourceKey": archive.source_key,
                "TargetModel": archive.target_model,
                "SizeBytes": archive.size_bytes,
                "GivenBucket": archive.given_bucket,
            }
            for archive in self.archives
        ]
        kept = [{key: value for key, value in row.items() if value is not None} for row in rows]
        return json.dumps({"version": _VERSION, "archives": kept}, indent=1)

    @property
    def digest(self) -> str:
        """SHA-256 of the JSON, in hexadecimal."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    @property
    def target_models(self) -> dict[str, str]:
        """The target model of each logical name."""
        return {archive.name: archive.target_model for archive in self.archives}


def _is_row(row: object) -> bool:
    if not isinstance(row, dict):
        return False
    strings = (row.get(key) for key in ("Name", "SourceKey", "TargetModel"))
    numbers = (row.get(key, 0) for key in ("SizeBytes", "GivenBucket"))
    return all(isinstance(each, str) for each in strings) and all(isinstance(each, int) for each in numbers)


def content_name(name: str, content_digest: str) -> str:
    """Return the target model for this content, such as ``resnet-3f9c2a1b.tar.gz``.

    SageMaker does not load a key again that it has loaded before, so new content needs a new name.
    """
    return f"{name}-{content_digest[:_SHORT_DIGEST]}.tar.gz"
