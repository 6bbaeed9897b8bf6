"""``index.json`` beside the archives: the target model of each logical name.

Deployments and the command line may write it at the same time. Each writes only over the version
that it has read, and reads again if another was faster. Two fields are for these writers only:
``deployed`` says which deployment a name belongs to, ``retired`` since when an archive has had no
name.
"""

from __future__ import annotations

import json
import logging
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from botocore.exceptions import ClientError

from ..retries import denied_means_missing, read_object
from .encryption import DecryptionError, Encryption, denied_message
from .key_failures import explained_key_failures, is_denied_or_key_failure
from .placement import SyncError, head
from .properties import INDEX_FILE

__all__ = ["DamagedIndexError", "Index", "read_index", "update_index"]

LOGGER = logging.getLogger(__name__)

_VERSION = 1
_ATTEMPTS = 12
_WRITTEN_BY_ANOTHER = (409, 412)
_DENIED, _NOT_FOUND = 403, 404
_ANY_ENCRYPTION = Encryption()


class DamagedIndexError(SyncError):
    """The object is not an index; the message is for the user."""


@dataclass(frozen=True)
class Index:
    """The names of the models below a prefix.

    ``target_models`` maps logical names to target models, and ``deployed`` maps those that belong
    to a deployment to its owner, also if they were removed by hand since. ``retired`` maps archives
    without a name to the Unix time when they lost it.
    """

    target_models: Mapping[str, str] = field(default_factory=dict)
    deployed: Mapping[str, str] = field(default_factory=dict)
    retired: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def from_json(cls, text: str | bytes) -> Index:
        """Read an index; raises ``ValueError`` if the text is not JSON,
        or not an index of this version.
        """
        try:
            value = json.loads(text)
        except RecursionError as error:
            raise ValueError("must not be nested that deeply") from error
        if not isinstance(value, dict) or value.get("version") != _VERSION:
            raise ValueError(f"must be a JSON object of version {_VERSION}")
        target_models = _mapping(value.get("target_models"), "target_models", str)
        deployed = _mapping(value.get("deployed", {}), "deployed", str)
        return cls(
            target_models, deployed, _mapping(value.get("retired", {}), "retired", (int, float))
        )

    def to_json(self) -> str:
        """The index as JSON; equal indexes give equal strings."""
        value = {
            "version": _VERSION,
            "target_models": dict(self.target_models),
            "deployed": dict(self.deployed),
            "retired": dict(self.retired),
        }
        return json.dumps(value, indent=1, sort_keys=True)

    def with_deployment(self, owner: str, target_models: Mapping[str, str], now: float) -> Index:
        """The index after a deployment that has exactly the names of ``target_models``.

        Names that the deployment had before and no longer has are removed. Names that belong to
        others are kept, unless the deployment has them too.
        """
        lost = {
            name for name, whose in self.deployed.items() if whose == owner
        } - target_models.keys()
        kept = {name: target for name, target in self.target_models.items() if name not in lost}
        whose = {name: each for name, each in self.deployed.items() if name not in lost}
        return self._changed(
            {**kept, **target_models}, {**whose, **dict.fromkeys(target_models, owner)}, now
        )

    def with_models(self, target_models: Mapping[str, str], now: float) -> Index:
        """The index after models were added by hand; a name of a deployment still belongs to it.

        A name that was removed by hand before does so only with an archive that had a name before,
        which is what the deployment placed.
        """
        others = {name for name, target in target_models.items() if target not in self.retired}
        taken = others & set(self.removed)
        whose = {each: owner for each, owner in self.deployed.items() if each not in taken}
        return self._changed({**self.target_models, **target_models}, whose, now)

    def without_model(self, name: str, now: float) -> Index:
        """The index after a name was removed; its archive is kept.

        A name of a deployment still belongs to it, so that it is known to be missing.
        """
        kept = {each: target for each, target in self.target_models.items() if each != name}
        return self._changed(kept, self.deployed, now)

    @property
    def removed(self) -> list[str]:
        """The names of deployments that were removed by hand since."""
        return sorted(self.deployed.keys() - self.target_models.keys())

    def without_retired(self, target_models: set[str]) -> Index:
        """The index after archives were deleted."""
        kept = {
            target: since for target, since in self.retired.items() if target not in target_models
        }
        return replace(self, retired=kept)

    def expired(self, retention_seconds: float, now: float) -> list[str]:
        """Archives that have had no name for longer than the retention."""
        return sorted(
            target for target, since in self.retired.items() if now - since > retention_seconds
        )

    def _changed(
        self, target_models: Mapping[str, str], deployed: Mapping[str, str], now: float
    ) -> Index:
        named = set(target_models.values())
        unnamed = set(self.target_models.values()) - named
        retired = {**dict.fromkeys(unnamed, now), **self.retired}
        return Index(
            target_models, deployed, {key: at for key, at in retired.items() if key not in named}
        )


def _mapping(value: Any, name: str, value_type: type | tuple[type, ...]) -> dict[str, Any]:
    if not isinstance(value, dict) or not all(
        isinstance(each, value_type) for each in value.values()
    ):
        what = "strings" if value_type is str else "numbers"
        raise ValueError(f"{name}: must be a JSON object of {what}, got {str(value)[:100]}")
    return value


def read_index(client: Any, bucket: str, prefix: str) -> Index:
    """The index of a prefix; an empty one if there is none."""
    return _read(client, bucket, prefix + INDEX_FILE)[0]


def update_index(
    client: Any,
    bucket: str,
    prefix: str,
    change: Callable[[Index], Index],
    encryption: Encryption = _ANY_ENCRYPTION,
) -> Index:
    """Change the index and return it; an unchanged index with the right encryption is not written.

    Raises:
        DamagedIndexError: the object is not an index.
        DecryptionError: the object cannot be decrypted.
        SyncError: it could not be written in twelve attempts.
    """
    key = prefix + INDEX_FILE
    for attempt in range(_ATTEMPTS):
        index, found = _read(client, bucket, key)
        changed = change(index)
        if found is not None and changed == index and encryption.is_applied(found):
            return index
        condition = {"IfNoneMatch": "*"} if found is None else {"IfMatch": found["ETag"]}
        with explained_key_failures(
            client,
            f"s3://{bucket}/{key}: cannot be written",
            (bucket, key),
            key=encryption.key,
        ):
            is_written = _write(client, bucket, key, changed, {**condition, **encryption.arguments})
        if is_written:
            return changed
        LOGGER.info("%s was written by another process, attempt %d", key, attempt + 1)
        time.sleep(random.uniform(0, 0.1 * (attempt + 1)))
    raise SyncError(f"s3://{bucket}/{key}: other processes keep writing it; stop them")


def _read(client: Any, bucket: str, key: str) -> tuple[Index, Any]:
    """The index, and what S3 says of the object; ``None`` if there is no index."""
    read = _get(client, bucket, key)
    if read is None:
        return Index(), None
    body, found = read
    try:
        return Index.from_json(body), found
    except ValueError as error:
        raise DamagedIndexError(
            f"s3://{bucket}/{key}: is not an index of models ({error}); "
            "move this object to another key, and deploy again"
        ) from error


def _get(client: Any, bucket: str, key: str) -> tuple[bytes, Any] | None:
    """The content and the attributes of the object; ``None`` if it does not exist.

    Without permission to list the bucket S3 returns 403 for a missing key too, but HeadObject finds
    an object that cannot be decrypted.
    """
    try:
        with denied_means_missing():
            return read_object(client, Bucket=bucket, Key=key)
    except ClientError as error:
        is_key = is_denied_or_key_failure(error)
        if is_key and (found := head(client, bucket, key)) is not None:
            return _get_or_name_the_key(client, bucket, key, found)
        if _status(error) in (_DENIED, _NOT_FOUND):
            return None
        raise


def _get_or_name_the_key(
    client: Any, bucket: str, key: str, found: Mapping[str, Any]
) -> tuple[bytes, Any]:
    """Read an object that exists, once new permissions have taken effect."""
    try:
        return read_object(client, Bucket=bucket, Key=key)
    except ClientError as error:
        if is_denied_or_key_failure(error):
            raise DecryptionError(denied_message(bucket, key, found, error)) from error
        raise


def _status(error: ClientError) -> int:
    return int(error.response["ResponseMetadata"]["HTTPStatusCode"])


def _write(client: Any, bucket: str, key: str, index: Index, arguments: Mapping[str, str]) -> bool:
    """Write over the version that was read; returns whether that was possible."""
    try:
        client.put_object(
            Bucket=bucket,
            Key=key,
            Body=index.to_json().encode(),
            ContentType="application/json",
            CacheControl="no-cache",
            **arguments,
        )
    except ClientError as error:
        if _status(error) in _WRITTEN_BY_ANOTHER:
            return False
        raise
    return True
