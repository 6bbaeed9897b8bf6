"""What is encrypted in S3, SNS, CloudWatch Logs and on volumes, and who uses it with which permissions.

The constructs grant from this list, the rehearsal asks for it, and a test compares the two.

Sources: Amazon S3 user guide, "Uploading and copying objects using multipart upload", permissions (a writer
needs kms:Decrypt too); Amazon SNS developer guide, "Key management" (a publisher needs both); SageMaker API
reference, InvokeEndpointAsync (``RequestTTLSeconds``) and CreateEndpointConfig (``KmsKeyId``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["ENCRYPTED_DATA", "EXECUTION_ROLE", "READ_ACTIONS", "WRITE_ACTIONS", "DataName"]

DataName = Literal[
    "models",
    "uploaded archives",
    "asynchronous requests",
    "asynchronous responses",
    "notifications",
    "captured data",
    "core dumps",
    "storage volumes",
    "logs",
]

READ_ACTIONS = ("kms:Decrypt",)
WRITE_ACTIONS = ("kms:Decrypt", "kms:GenerateDataKey")
EXECUTION_ROLE = "execution role"
_CALLERS = "roles with `grant_invoke_async`"
_FUNCTIONS = "deploy-time functions"
_YOURS = "roles that you allow"


@dataclass(frozen=True)
class EncryptedData:
    """One kind of data under a key.

    Args:
        name: What it is called in messages.
        key: Where its key is set.
        readers: Who reads it.
        writers: Who writes it.
        lifetime: How long something under a key exists.
        key_change: What happens to it when the key changes, and what to do.
    """

    name: DataName
    key: str
    readers: str
    writers: str
    lifetime: str
    key_change: str


_PREVIOUS = "keeps its key; set `previous_encryption_keys`"
_LIST = (
    EncryptedData(
        "models",
        "`encryption_key` of the repository, or of its `bucket`",
        EXECUTION_ROLE,
        _FUNCTIONS,
        "until the bucket is deleted, or `prune_after`",
        "is encrypted again in the same deployment",
    ),
    EncryptedData(
        "uploaded archives",
        "`asset_encryption_key` of the repository",
        f"{EXECUTION_ROLE}, {_FUNCTIONS}",
        "`cdk deploy`",
        "until `cdk gc`",
        "keeps its key: add the old key to `previous_encryption_keys` of the repository",
    ),
    EncryptedData(
        "asynchronous requests",
        "`encryption_key` of the `input_bucket`, or of the `bucket`",
        EXECUTION_ROLE,
        _CALLERS,
        "at most 6 hours in the queue, then as long as the bucket keeps it",
        _PREVIOUS,
    ),
    EncryptedData(
        "asynchronous responses",
        "`encryption_key` of `async_inference`, or of its `bucket`",
        _CALLERS,
        EXECUTION_ROLE,
        "as long as the bucket keeps it",
        _PREVIOUS,
    ),
    EncryptedData(
        "notifications",
        "`master_key` of `success_topic` and `error_topic`",
        "Amazon SNS",
        EXECUTION_ROLE,
        "until it is delivered",
        _PREVIOUS,
    ),
    EncryptedData(
        "captured data",
        "`encryption_key` of `data_capture`, or of its `bucket`",
        _YOURS,
        EXECUTION_ROLE,
        "as long as the bucket keeps it",
        _PREVIOUS,
    ),
    EncryptedData(
        "core dumps",
        "`encryption_key` of `core_dump`, or of its `bucket`",
        _YOURS,
        EXECUTION_ROLE,
        "as long as the bucket keeps it",
        _PREVIOUS,
    ),
    EncryptedData(
        "storage volumes",
        "`encryption_key` of the endpoint",
        EXECUTION_ROLE,
        EXECUTION_ROLE,
        "as long as the instance",
        "new instances get the new key",
    ),
    EncryptedData(
        "logs",
        "`log_encryption_key` of `DeployTimeFunctions`, or of your own log group",
        "CloudWatch Logs",
        "CloudWatch Logs",
        "`log_retention`",
        "keeps its key; keep the key for as long",
    ),
)
ENCRYPTED_DATA = {each.name: each for each in _LIST}
"""Every kind by its name."""
