"""The properties of the custom resources: written at synth, read by the function and locally."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["FILES_FOLDER", "INDEX_FILE", "SyncProperties"]

INDEX_FILE = "index.json"
"""Name of the index below the prefix."""

FILES_FOLDER = "files/"
"""The folder below a repository's prefix for models that are placed as files.

Each model has its own prefix there, ``models/files/resnet/``, with a folder for each content and
``index.json``.
"""


@dataclass(frozen=True)
class SyncProperties:
    """The resource's properties, with Python types.

    ``source_bucket``
        Bucket of the CDK assets.
    ``manifest_key``, ``manifest_digest``
        Key of the list of archives, or files, in that bucket, and the SHA-256 of the list. See
        ``Manifest`` and ``FileManifest``.
    ``destination_bucket``
        Bucket of the model repository.
    ``prefix``
        Key prefix below which the archives are placed. Ends with ``/``; ``""`` is the whole bucket.
    ``folder``
        Folder of the files below that prefix; ends with ``/``. Default: ``""``, for archives.
    ``given_buckets``
        Further buckets that hold archives of the list. Default: none.
    ``prune_after_seconds``
        Delete what this resource placed and what has had no name for longer. Default: keep it.
    ``encryption_key``
        ARN of the KMS key of the models. Default: not known, or S3-managed keys.
    ``previous_encryption_keys``
        ARNs of the keys that earlier objects may have. Default: none.
    ``creates_bucket``
        Whether the bucket belongs to the repository. Default: not known.
    ``remove_on_delete``
        Delete every object below the prefix when the resource is deleted. Default: keep them.
    """

    source_bucket: str
    manifest_key: str
    manifest_digest: str
    destination_bucket: str
    prefix: str = ""
    folder: str = ""
    given_buckets: Sequence[str] = ()
    prune_after_seconds: float | None = None
    remove_on_delete: bool = False
    encryption_key: str | None = None
    previous_encryption_keys: Sequence[str] = ()
    creates_bucket: bool = False

    @classmethod
    def from_cloudformation(cls, properties: Mapping[str, Any]) -> SyncProperties:
        """Read the properties. CloudFormation passes every scalar as a string."""
        prune_after = properties.get("PruneAfterSeconds")
        return cls(
            source_bucket=properties["SourceBucket"],
            manifest_key=properties["ManifestKey"],
            manifest_digest=properties["ManifestDigest"],
            destination_bucket=properties["DestinationBucket"],
            prefix=properties.get("DestinationPrefix", ""),
            folder=properties.get("DestinationFolder", ""),
            given_buckets=tuple(properties.get("GivenBuckets") or ()),
            prune_after_seconds=None if prune_after is None else float(prune_after),
            remove_on_delete=_is_true(properties, "RemoveOnDelete"),
            encryption_key=properties.get("EncryptionKey"),
            previous_encryption_keys=tuple(properties.get("PreviousEncryptionKeys") or ()),
            creates_bucket=_is_true(properties, "CreatesBucket"),
        )

    def to_cloudformation(self) -> dict[str, object]:
        """The properties as a template has them; those with their default are left out."""
        properties: dict[str, object] = {
            "SourceBucket": self.source_bucket,
            "ManifestKey": self.manifest_key,
            "ManifestDigest": self.manifest_digest,
            "DestinationBucket": self.destination_bucket,
            "DestinationPrefix": self.prefix,
        }
        if self.folder:
            properties["DestinationFolder"] = self.folder
        if self.given_buckets:
            properties["GivenBuckets"] = list(self.given_buckets)
        if self.prune_after_seconds is not None:
            properties["PruneAfterSeconds"] = str(int(self.prune_after_seconds))
        if self.remove_on_delete:
            properties["RemoveOnDelete"] = "true"
        return {**properties, **self._encryption()}

    def _encryption(self) -> dict[str, object]:
        properties: dict[str, object] = {}
        if self.encryption_key is not None:
            properties["EncryptionKey"] = self.encryption_key
        if self.previous_encryption_keys:
            properties["PreviousEncryptionKeys"] = list(self.previous_encryption_keys)
        if self.creates_bucket:
            properties["CreatesBucket"] = "true"
        return properties

    @property
    def model_data_url(self) -> str:
        """What a multi-model endpoint's ``ModelDataUrl`` is: the bucket and the prefix."""
        return f"s3://{self.destination_bucket}/{self.prefix}"


def _is_true(properties: Mapping[str, Any], name: str) -> bool:
    return str(properties.get(name, "false")).lower() == "true"
