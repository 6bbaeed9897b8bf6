"""Which KMS key the objects below a prefix must have, and what has to be encrypted again.

S3 leaves existing objects as they are when the default encryption of their bucket changes (S3 user
guide, "Specifying server-side encryption with AWS KMS"). The roles that read them lose the
permission for the old key at the end of the deployment, so the function copies what has another key
onto itself. It does not use UpdateObjectEncryption, which cannot return to S3-managed keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from ..response import CustomResourceError
from .key_failures import is_denied_or_key_failure, remedy
from .properties import SyncProperties


class DecryptionError(CustomResourceError):
    """An object exists and cannot be decrypted; the message is for the user."""


@dataclass(frozen=True)
class Encryption:
    """The encryption of the objects below a prefix.

    ``key`` is the ARN of their KMS key; ``None`` leaves the encryption of new objects to the
    bucket. ``left_keys`` are the KMS keys that they must no longer have. ``uses_managed_keys``
    encrypts new objects with S3-managed keys. ``is_changed`` is whether this operation changes
    ``key``.
    """

    key: str | None = None
    left_keys: frozenset[str] = frozenset()
    uses_managed_keys: bool = False
    is_changed: bool = False

    @classmethod
    def of(cls, properties: SyncProperties, old: SyncProperties | None) -> Encryption:
        """The encryption after a change of the properties;
        ``old`` is ``None`` for a new resource.
        """
        left = set(properties.previous_encryption_keys)
        # A bucket policy may demand the header. A bucket of others may encrypt with a key that is
        # not known.
        uses_managed_keys = properties.creates_bucket
        if old is not None and old.destination_bucket == properties.destination_bucket:
            left |= {old.encryption_key} if old.encryption_key else set()
            uses_managed_keys = uses_managed_keys or (bool(left) and old.creates_bucket)
        key = properties.encryption_key
        is_changed = old is not None and old.encryption_key != key
        if key is not None:
            return cls(key, is_changed=is_changed)
        return cls(None, frozenset(map(_key_id, left)), uses_managed_keys, is_changed)

    @property
    def may_differ(self) -> bool:
        """Whether there can be objects that have to be encrypted again."""
        return self.key is not None or bool(self.left_keys)

    def is_applied(self, found: Mapping[str, Any]) -> bool:
        """Whether an object that S3 describes has this encryption."""
        given = _key_id(found.get("SSEKMSKeyId") or "")
        if self.key is None:
            return given not in self.left_keys
        # S3 describes an object by its key and not by the alias that it was written with.
        return ":alias/" in self.key or given == _key_id(self.key)

    @property
    def arguments(self) -> dict[str, str]:
        """The arguments of a request that writes an object."""
        if self.key is not None:
            return {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": self.key}
        return {"ServerSideEncryption": "AES256"} if self.uses_managed_keys else {}


def expect_decryption(client: Any, bucket: str, key: str, found: Mapping[str, Any]) -> None:
    """Read one byte of an object with a KMS key, or raise ``DecryptionError``."""
    if not found.get("SSEKMSKeyId") or not found["ContentLength"]:
        return
    try:
        client.get_object(Bucket=bucket, Key=key, Range="bytes=0-0")
    except ClientError as error:
        if not is_denied_or_key_failure(error):
            raise
        raise DecryptionError(denied_message(bucket, key, found, error)) from error


def denied_message(bucket: str, key: str, found: Mapping[str, Any], error: ClientError) -> str:
    """The message for an object that exists and cannot be read."""
    encryption_key = found.get("SSEKMSKeyId")
    if not encryption_key:
        return (
            f"s3://{bucket}/{key}: S3 denies access; "
            "allow s3:GetObject for this function in the policy of the bucket"
        )
    if advice := remedy(error):
        return (
            f"s3://{bucket}/{key}: cannot be decrypted ({error}), its KMS key is {encryption_key}; "
            f"nothing was changed. {advice}"
        )
    return (
        f"s3://{bucket}/{key}: cannot be decrypted, its KMS key is {encryption_key}; nothing was "
        'changed. Set previous_encryption_keys=[kms.Key.from_key_arn(self, "PreviousKey", '
        f'"{encryption_key}")] on the TritonModelRepository'
    )


def _key_id(key_arn: str) -> str:
    """The id of a key, which S3 and CloudFormation may give as an ARN."""
    return key_arn.rpartition("/")[2]
