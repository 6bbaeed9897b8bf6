"""How the models of an endpoint are stored in S3: in an archive, or as files."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["CompressionType"]


class CompressionType(StrEnum):
    """How the models of a single-model endpoint are stored in S3."""

    GZIP = "Gzip"
    """One ``.tar.gz`` archive, which SageMaker unpacks on each instance."""

    NONE = "None"
    """One object for each file. After a change, only the changed files are uploaded."""
