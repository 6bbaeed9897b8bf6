"""What a role does with encrypted data, and which further keys its policies allow for this data.

Objects keep the key with which they were written. A role that may decrypt with a key that no data
has now may do so for objects from before an earlier change of the key, as
``previous_encryption_keys`` of the constructs allow it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from constructs_triton_core.facts.encrypted_data import DataName

from ..permissions.policy import allowed_resources
from ..steps import Step

S3 = "arn:aws:s3:::"
"""The beginning of the ARNs of buckets and objects."""
ALARMS: DataName = "rollback alarms"
NOTICES: DataName = "alarm notifications"
SCHEDULES: DataName = "schedules"
EVENTS: DataName = "events"
MODELS: DataName = "models"
ARCHIVES: DataName = "uploaded archives"
_DECRYPT = "kms:Decrypt"
_OF_ARCHIVES = re.compile(r"DecryptModel\d*")
"""The ``Sid`` of the constructs for objects of the CDK's asset bucket."""


@dataclass(frozen=True)
class Use:
    """What a role, or a service, does with data of an endpoint; that of services has none.

    ``place`` is the ARN of an object below the prefix, of the topic, the queue or the log group, or
    the endpoint's name.
    ``is_own``: the role is the execution role. ``has_previous_key``: new data gets another key.
    """

    endpoint: str
    data: DataName
    action: Literal["reads", "writes"]
    place: str
    role: str
    is_own: bool
    key: str = ""
    has_previous_key: bool = False


@dataclass(frozen=True)
class DataReading:
    """Whether a role may use data after a step.

    ``waits`` is whether it was written before the update.
    """

    moment: Step
    use: Use
    waits: bool
    refusal: str = ""


def previous_uses(present: Sequence[Use], documents: Iterable[Mapping[str, Any]]) -> Iterator[Use]:
    """Yield what one role reads under each key that its policies name and that no data has now.

    ``present`` is what it does now. The keys of ``models`` are current, but models are encrypted
    again.
    """
    current = {use.key for use in present if use.key}
    reads = []
    for use in present:
        if use.action == "reads" and use.data not in (MODELS, SCHEDULES):
            reads.append(use)

    for statement, keys in _decrypting(documents):
        for use in reads:
            if _concerns(use, statement, keys & current):
                for key in sorted(keys - current):
                    yield replace(use, key=key, has_previous_key=True)


def _concerns(use: Use, statement: Mapping[str, Any], current: set[str]) -> bool:
    """Whether a statement is about data: it names the data's current key, or no data's current key.

    In the latter case it is about data without a key, or comes from ``key.grant_decrypt(reader)``.
    """
    is_of_archives = bool(_OF_ARCHIVES.fullmatch(statement.get("Sid", "")))
    if is_of_archives or use.data == ARCHIVES:
        return is_of_archives and use.data == ARCHIVES
    if current:
        return use.key in current
    return not use.key or (not use.is_own and statement.get("Action") == _DECRYPT)


def _decrypting(
    documents: Iterable[Mapping[str, Any]],
) -> Iterator[tuple[Mapping[str, Any], set[str]]]:
    """The statements that allow decryption with their keys;
    those that differ only in their keys are one.
    """
    found: dict[str, tuple[Mapping[str, Any], set[str]]] = {}
    for document in documents:
        given = document["Statement"]
        for statement in given if isinstance(given, list) else [given]:
            named = allowed_resources([{"Statement": [statement]}], _DECRYPT)
            keys = {arn for arn in named if ":key/" in arn and "*" not in arn}
            form = json.dumps({**statement, "Resource": ""}, sort_keys=True)
            found.setdefault(form, (statement, set()))[1].update(keys)
    yield from found.values()
