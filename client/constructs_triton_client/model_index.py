"""Maps model names to the archives of a multi-model endpoint.

The key of an archive contains a digest of its content, because an object that a multi-model endpoint may
load must not be overwritten (AWS documentation: "Don't overwrite model artifacts in Amazon S3").
``index.json`` beside the archives lists the current key of each model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from constructs_triton_client.bounded_json import parse_bounded_json
from constructs_triton_client.errors import InvalidValueError
from constructs_triton_client.spelling import did_you_mean, quoted

__all__ = ["ModelIndex", "split_s3_uri"]

_VERSION = 1
_ARCHIVE_SUFFIX = ".tar.gz"
MAXIMUM_INDEX_BYTES = 64 * 1024**2
_SYNC_HINT = "deploy the stack, or run `constructs-triton models sync`, to write it again"


@dataclass(frozen=True, slots=True)
class ModelIndex:
    """The archive of each model of a multi-model endpoint.

    As JSON: ``{"version": 1, "target_models": {"resnet": "resnet-3f9c2a1b.tar.gz"}}``.

    Args:
        target_models: InvokeEndpoint's ``TargetModel`` by model name.
    """

    target_models: Mapping[str, str]

    @classmethod
    def from_json(cls, text: str | bytes, source: str = "index.json") -> ModelIndex:
        """Read an index.

        Args:
            text: The JSON.
            source: Name of the index in error messages.

        Raises:
            InvalidValueError: the text is not an index, or has more than ``MAXIMUM_INDEX_BYTES`` or a million
                values.
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
        return cls(models or {})

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
        if name.endswith(_ARCHIVE_SUFFIX):
            return name
        otherwise = f"the index has {quoted(sorted(self.target_models))}"
        raise InvalidValueError(
            f'target_model: the index has no model "{name}"; '
            f"{did_you_mean(name, self.target_models, otherwise)}"
        )


def split_s3_uri(uri: str) -> tuple[str, str]:
    """Split ``s3://bucket/key`` into bucket and key.

    Raises:
        InvalidValueError: the bucket or the key is missing, or the URI is not one of S3.
    """
    # urllib.parse would cut a key at "?" or "#", which S3 allows in keys.
    scheme, _, rest = uri.partition("://")
    bucket, _, key = rest.partition("/")
    if scheme != "s3" or not bucket or not key.strip("/"):
        raise InvalidValueError(f"S3 URI: must be s3://bucket/key, got {uri!r}; add the bucket and the key")
    return bucket, key


def _beginning(text: str | bytes) -> str:
    return (text if isinstance(text, str) else text.decode("utf-8", "replace"))[:100]


def _is_index(value: Any, models: Any) -> bool:
    return (
        isinstance(value, dict)
        and value.get("version") == _VERSION
        and isinstance(models, dict)
        and all(isinstance(key, str) and key for key in models.values())
    )
