"""The list of archives of a repository: one JSON object in S3, however many models there are."""

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
    """One archive: the model's logical name, where it lies, and the name it gets below the prefix.

    ``size_bytes`` is ``None`` where the archive was not at hand when the list was made. ``given_bucket``
    counts the buckets of the request's ``GivenBuckets``; ``None`` is the bucket of the CDK assets.
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
    "TargetModel": "resnet-3f9c2a1b.tar.gz", "SizeBytes": 123}]}``, with ``GivenBucket`` where there is one.
    """

    archives: tuple[ListedArchive, ...]

    @classmethod
    def of(cls, archives: Iterable[ListedArchive]) -> Manifest:
        """The archives in the order of their names, so that equal lists make equal text."""
        return cls(tuple(sorted(archives, key=lambda archive: archive.name)))

    @classmethod
    def from_json(cls, text: str | bytes) -> Manifest:
        """Read a manifest; raises ``ValueError`` for another version or text that is none."""
        value = json.loads(text)
        if not isinstance(value, dict) or value.get("version") != _VERSION:
            raise ValueError(f"manifest: must be of version {_VERSION}")
        return cls(
            tuple(
                ListedArchive(
                    name=row["Name"],
                    source_key=row["SourceKey"],
                    target_model=row["TargetModel"],
                    size_bytes=row.get("SizeBytes"),
                    given_bucket=row.get("GivenBucket"),
                )
                for row in value["archives"]
            )
        )

    def to_json(self) -> str:
        """The text, the same for equal manifests."""
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
        """SHA-256 of the text, in hexadecimal."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    @property
    def target_models(self) -> dict[str, str]:
        """Logical name to target model."""
        return {archive.name: archive.target_model for archive in self.archives}


def content_name(name: str, content_digest: str) -> str:
    """The target model of a model with this content: ``resnet-3f9c2a1b.tar.gz``.

    SageMaker never loads a key again that it has loaded once, so that new content needs a new name.
    """
    return f"{name}-{content_digest[:_SHORT_DIGEST]}.tar.gz"
