"""What is encrypted in S3, SNS, CloudWatch Logs and on volumes, and who uses it with which
permissions.

The constructs grant from this list, the rehearsal asks for it, and a test compares the two.
``encrypted_data.json`` has it with the sources.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from constructs_triton_core.facts import load

__all__ = [
    "CLOUDWATCH",
    "ENCRYPTED_DATA",
    "EVENTBRIDGE",
    "EXECUTION_ROLE",
    "READ_ACTIONS",
    "SERVICE_ACTIONS",
    "WRITE_ACTIONS",
    "DataName",
]

DataName = Literal[
    "models",
    "uploaded archives",
    "asynchronous requests",
    "asynchronous responses",
    "notifications",
    "alarm notifications",
    "rollback alarms",
    "schedules",
    "events",
    "captured data",
    "core dumps",
    "storage volumes",
    "logs",
]

READ_ACTIONS = ("kms:Decrypt",)
WRITE_ACTIONS = ("kms:Decrypt", "kms:GenerateDataKey")
SERVICE_ACTIONS = ("kms:Decrypt", "kms:GenerateDataKey*")
"""What the policy of a topic's key must allow a service that publishes to the topic (Amazon SNS
developer guide, "Key management")."""
CLOUDWATCH = "cloudwatch.amazonaws.com"
"""The service that publishes the notifications of alarms."""
EVENTBRIDGE = "events.amazonaws.com"
"""The service that sends the events of rules."""
EXECUTION_ROLE = "execution role"


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


ENCRYPTED_DATA: Mapping[DataName, EncryptedData] = {
    each["name"]: EncryptedData(**each) for each in load("encrypted_data")["data"]
}
"""Every kind by its name."""
