"""The values of a model library: the models of its index, and archives to upload."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class LibraryModel:
    """A model of the index.

    Args:
        name: Name of the model.
        target_model: Archive, relative to the prefix.
        size_bytes: Size of the archive; ``None`` if it is missing.
        modified: Time of the upload in ISO 8601; ``None`` if the archive is missing.
        is_deployed: Whether a deployment added the model.
    """

    name: str
    target_model: str
    size_bytes: int | None
    modified: str | None
    is_deployed: bool


@dataclass(frozen=True, slots=True)
class ArchiveFile:
    """A ``.tar.gz`` on this machine and the digest of its content."""

    path: Path
    digest: str
