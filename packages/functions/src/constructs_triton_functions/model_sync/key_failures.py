"""Explains calls of S3 that failed because of a KMS key: which call, which key, and what to do.

Without a permission for the key S3 answers 403. If the key is disabled, pending deletion or
deleted, it answers 400 with the error of AWS KMS, such as ``KMS.DisabledException``. An answer to
``HeadObject`` has no body, so it has only the status. S3's own message often does not name the key.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from botocore.exceptions import ClientError

from ..response import CustomResourceError
from ..retries import denied_means_missing

__all__ = ["explained_key_failures", "is_denied_or_key_failure", "remedy"]

_REMEDIES = {
    "KMS.DisabledException": "Enable this key (aws kms enable-key)",
    "KMS.KMSInvalidStateException": (
        "If this key is pending deletion, keep it (aws kms cancel-key-deletion, then "
        "aws kms enable-key)"
    ),
    "KMS.NotFoundException": "This key does not exist; name another one as encryption_key",
}
_OTHER_REMEDY = (
    "Allow what S3 names; if it names nothing, enable this key, and allow this function "
    "kms:Decrypt and kms:GenerateDataKey in its policy"
)


class KeyFailureError(CustomResourceError):
    """S3 could not use a KMS key; the message is for the user."""


def is_denied_or_key_failure(error: ClientError) -> bool:
    """Whether S3 denied a call, or could not use the KMS key of an object."""
    status = error.response["ResponseMetadata"]["HTTPStatusCode"]
    is_bare = error.operation_name == "HeadObject" and status == 400
    return status == 403 or is_bare or _code(error).startswith("KMS.")


def remedy(error: ClientError) -> str:
    """What to do about the key, as one sentence without a full stop; empty if it was only
    denied.
    """
    return _REMEDIES.get(_code(error), "")


@contextmanager
def explained_key_failures(
    client: Any, subject: str, *objects: tuple[str, str], key: str | None = None
) -> Iterator[None]:
    """Raise ``KeyFailureError`` for calls in the block that fail because of a KMS key.

    Args:
        client: A client of S3.
        subject: What the calls do, at the beginning of the message.
        objects: Bucket and key of each object that the calls read or write.
        key: The KMS key of objects that are written, if it is known.
    """
    try:
        yield
    except ClientError as error:
        if not is_denied_or_key_failure(error):
            raise
        keys = dict.fromkeys([*([key] if key else []), *_keys_of(client, objects)])
        is_of_key = bool(keys) or _code(error).startswith("KMS.")
        if not is_of_key:
            raise
        named = f"The KMS key is {' or '.join(keys)}" if keys else "The bucket has a KMS key"
        advice = remedy(error) or _OTHER_REMEDY
        raise KeyFailureError(f"{subject}: {_answer(error)}. {named}. {advice}") from error


def _keys_of(client: Any, objects: tuple[tuple[str, str], ...]) -> Iterator[str]:
    """The KMS keys of objects. To read them takes no permission for a key, unlike checksums."""
    for bucket, key in objects:
        try:
            with denied_means_missing():
                found = client.head_object(Bucket=bucket, Key=key)
        except ClientError:
            continue  # it does not exist yet, or is denied too
        if found.get("SSEKMSKeyId"):
            yield found["SSEKMSKeyId"]


def _answer(error: ClientError) -> str:
    """The call and S3's answer, such as ``CopyObject: AccessDenied (…)``."""
    message = error.response["Error"].get("Message", "")
    return f"{error.operation_name} answered {_code(error)} ({message})"


def _code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))
