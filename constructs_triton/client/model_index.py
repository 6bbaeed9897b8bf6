"""Logical names of the models behind a multi-model endpoint.

An archive's key carries its content's digest, because a multi-model endpoint must never see a key
overwritten (AWS documentation: "Don't overwrite model artifacts in Amazon S3"). ``index.json`` beside the
archives says which key a model's plain name stands for now.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from constructs_triton.errors import InvalidValueError
from constructs_triton.spelling import did_you_mean, quoted

__all__ = ["ModelIndex", "split_s3_uri"]

_VERSION = 1
_ARCHIVE_SUFFIX = ".tar.gz"


@dataclass(frozen=True, slots=True)
class ModelIndex:
    """``target_models`` maps a model's name to what InvokeEndpoint's ``TargetModel`` must say.

    As JSON: ``{"version": 1, "target_models": {"resnet": "resnet-3f9c2a1b.tar.gz"}}``.
    """

    target_models: Mapping[str, str]

    @classmethod
    def from_json(cls, text: str | bytes, source: str = "index.json") -> ModelIndex:
        """Read an index; ``source`` names it in the ``InvalidValueError`` that a malformed one raises."""
        try:
            value = json.loads(text)
        except ValueError as error:
            raise InvalidValueError(f"{source}: is not JSON, got {error}; write the index again") from None
        models = value.get("target_models") if isinstance(value, dict) else None
        if not _is_index(value, models):
            raise InvalidValueError(
                f'{source}: must read {{"version": {_VERSION}, "target_models": {{name: key}}}}, '
                f"got {str(value)[:100]}; write the index again"
            )
        return cls(models or {})

    @classmethod
    def from_s3(cls, uri: str, s3_client: Any) -> ModelIndex:
        """Read the object at ``s3://bucket/key`` with a boto3 S3 client."""
        bucket, key = split_s3_uri(uri)
        return cls.from_json(s3_client.get_object(Bucket=bucket, Key=key)["Body"].read(), uri)

    def target_model(self, name: str) -> str:
        """The archive of model ``name``; the name of an archive stands for itself."""
        if name in self.target_models:
            return self.target_models[name]
        if name.endswith(_ARCHIVE_SUFFIX):
            return name
        fix = did_you_mean(name, self.target_models, f"the index has {quoted(sorted(self.target_models))}")
        raise InvalidValueError(f'target_model: no model of that name in the index, got "{name}"; {fix}')


def split_s3_uri(uri: str) -> tuple[str, str]:
    """Bucket and key of ``s3://bucket/key``; ``InvalidValueError`` for anything else."""
    parts = urlsplit(uri)
    if parts.scheme != "s3" or not parts.netloc or not parts.path.strip("/"):
        raise InvalidValueError(f"S3 URI: must read s3://bucket/key, got {uri!r}; name bucket and key")
    return parts.netloc, parts.path.removeprefix("/")


def _is_index(value: Any, models: Any) -> bool:
    return (
        isinstance(value, dict)
        and value.get("version") == _VERSION
        and isinstance(models, dict)
        and all(isinstance(key, str) and key for key in models.values())
    )
