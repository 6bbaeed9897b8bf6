"""Maps model names to the archives of a multi-model endpoint.

The key of an archive contains a digest of its content, because an object that a multi-model
endpoint may load must not be overwritten (AWS documentation: "Don't overwrite model artifacts in
Amazon S3"). ``index.json`` beside the archives lists the current key of each model.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from constructs_triton_core.bounded_json import parse_bounded_json
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.spelling import closest, quoted

__all__ = [
    "INDEX_FILE",
    "MAXIMUM_INDEX_BYTES",
    "ModelIndex",
    "is_archive",
    "some_of",
    "split_s3_uri",
]

_VERSION = 1
_ARCHIVE_SUFFIX = ".tar.gz"
INDEX_FILE = "index.json"
MAXIMUM_INDEX_BYTES = 64 * 1024**2
#: Names that a message shows of an endpoint that may have thousands.
_SHOWN_NAMES = 3
_SYNC_HINT = "deploy the stack, or run `constructs-triton models sync`, to write it again"


@dataclass(frozen=True, slots=True)
class ModelIndex:
    """The archive of each model of a multi-model endpoint.

    As JSON: ``{"version": 1, "target_models": {"resnet": "resnet-3f9c2a1b.tar.gz"}}``.

    Args:
        target_models: InvokeEndpoint's ``TargetModel`` by model name.
        source: Where the index was read, for messages: an S3 URI, or the URL of a local run.
        removed: Names of models that a stack has deployed and that were removed by hand since.
    """

    target_models: Mapping[str, str]
    source: str = field(default="the index", compare=False)
    removed: tuple[str, ...] = ()

    @property
    def listing(self) -> str:
        """The command that lists all names; empty if the source has none."""
        if self.source.startswith("http://"):
            return f"curl {shlex.quote(self.source)}"
        if not self.source.startswith("s3://"):
            return ""
        bucket, key = split_s3_uri(self.source)
        prefix = key.removesuffix(INDEX_FILE)
        return (
            f"constructs-triton models list --bucket {shlex.quote(bucket)} --prefix "
            f"{shlex.quote(prefix)}"
        )

    @classmethod
    def from_json(cls, text: str | bytes, source: str = INDEX_FILE) -> ModelIndex:
        """Read an index.

        Args:
            text: The JSON.
            source: Name of the index in error messages.

        Raises:
            InvalidValueError: the text is not an index, or has more than ``MAXIMUM_INDEX_BYTES`` or
                a million values.
        """
        if len(text) > MAXIMUM_INDEX_BYTES:
            raise InvalidValueError(
                f"{source}: may have at most {MAXIMUM_INDEX_BYTES} bytes; check that it is an index"
            )
        try:
            value = parse_bounded_json(text)
        except ValueError as error:
            raise InvalidValueError(f"{source}: is not JSON, got {error}; {_SYNC_HINT}") from None
        models = value.get("target_models") if isinstance(value, dict) else None
        if not _is_index(value, models):
            raise InvalidValueError(
                f'{source}: must be {{"version": {_VERSION}, "target_models": {{name: key}}}}, '
                f"got {_beginning(text)}; {_SYNC_HINT}"
            )
        deployed = value.get("deployed")
        known = deployed if isinstance(deployed, dict) else {}
        targets = models or {}
        return cls(targets, source, tuple(sorted(known.keys() - targets.keys())))

    @classmethod
    def from_s3(cls, uri: str, s3_client: Any) -> ModelIndex:
        """Read an index from S3.

        Args:
            uri: ``s3://bucket/key`` of the index.
            s3_client: boto3 client of S3.

        Raises:
            InvalidValueError: the URI is malformed, or the object is not an index.
        """
        bucket, key = split_s3_uri(uri)
        body = s3_client.get_object(Bucket=bucket, Key=key)["Body"]
        return cls.from_json(body.read(MAXIMUM_INDEX_BYTES + 1), uri)

    def target_model(self, name: str) -> str:
        """Return the archive of a model.

        Args:
            name: Name of a model, or of an archive (``.tar.gz``), which is returned unchanged.

        Raises:
            InvalidValueError: the index has no model of that name.
        """
        if name in self.target_models:
            return self.target_models[name]
        if is_archive(name):
            return name
        raise self.unknown_name(name)

    def unknown_name(self, name: str) -> InvalidValueError:
        """Return the error for a name that the index does not have.

        Args:
            name: The name.
        """
        return InvalidValueError(
            f"target_model: {self.source} has {_count(self.target_models)}, and none is named "
            f'"{name}"; {self._hint(name)}'
        )

    def _hint(self, name: str) -> str:
        if name in self.removed:
            return "it was deployed and removed since; `constructs-triton models add` restores it"
        if not self.target_models:
            return "add models with `constructs-triton models add`"
        guess = closest(name, self.target_models)
        if guess is None:
            return f"use one of {some_of(self.target_models, self.listing)}"
        everything = f" `{self.listing}` lists all names" if self.listing else ""
        return f'did you mean "{guess}"?{everything}'


def is_archive(name: str) -> bool:
    """Whether a target model is an archive; other names are those of models."""
    return name.endswith(_ARCHIVE_SUFFIX)


def some_of(names: Iterable[str], listing: str = "") -> str:
    """Return all of a few names; of many, the first ones, how many more there are, and what lists
    them all.

    Args:
        names: The names, in any order.
        listing: Command that lists all names. Default: none.
    """
    known = sorted(names)
    everything = f" (all: `{listing}`)" if listing and len(known) > _SHOWN_NAMES else ""
    return quoted(known, _SHOWN_NAMES) + everything


def _count(names: Mapping[str, str]) -> str:
    return "1 model" if len(names) == 1 else f"{len(names):,} models"


def split_s3_uri(uri: str) -> tuple[str, str]:
    """Split ``s3://bucket/key`` into bucket and key.

    Raises:
        InvalidValueError: the bucket or the key is missing, or the URI is not one of S3.
    """
    # urllib.parse would cut a key at "?" or "#", which S3 allows in keys.
    scheme, _, rest = uri.partition("://")
    bucket, _, key = rest.partition("/")
    if scheme != "s3" or not bucket or not key.strip("/"):
        raise InvalidValueError(
            f"S3 URI: must be s3://bucket/key, got {uri!r}; add the bucket and the key"
        )
    return bucket, key


def _beginning(text: str | bytes) -> str:
    """Return the first characters of a file, for a message."""
    return (text if isinstance(text, str) else text.decode("utf-8", "replace"))[:100]


def _is_index(value: Any, models: Any) -> bool:
    """Whether a value is an index of a known version whose ``models`` all have an object key."""
    if not isinstance(value, dict) or value.get("version") != _VERSION:
        return False
    if not isinstance(models, dict):
        return False
    return all(isinstance(key, str) and key for key in models.values())
