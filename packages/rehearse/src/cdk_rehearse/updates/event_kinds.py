"""The kinds of events that a user can name: subject, help, example,
and whether it is about endpoints.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

from constructs_triton_core.errors import InvalidValueError

MAXIMUM_COUNT = 100_000
"""The most days, instances, or instances of a quota that an event may name."""
_MAXIMUM_LENGTH = 2_048
"""As long as the longest ARN; an S3 key has half of it."""
_LOG_GROUP = re.compile(r"[.\-_/#A-Za-z0-9]{1,512}")
"""CloudWatch Logs API reference, CreateLogGroup."""
KINDS: Mapping[str, Mapping[str, str]] = json.loads(Path(__file__).with_suffix(".json").read_text())


def parsed(event: str) -> tuple[str, str]:
    """Return kind and subject of an event; raises ``InvalidValueError`` for an unknown kind."""
    kind, _, subject = event.partition("=")
    if kind not in KINDS or not subject:
        forms = ", ".join(f"{name}={facts['subject']}" for name, facts in KINDS.items())
        raise InvalidValueError(
            f"meanwhile: must be one of {forms}, got {event[:_MAXIMUM_LENGTH]!r}"
        )
    if len(subject) > _MAXIMUM_LENGTH:
        raise InvalidValueError(
            f"meanwhile: {kind} must name something in at most {_MAXIMUM_LENGTH} characters, "
            f"got {len(subject)}; pass the name from the template"
        )
    if kind == "log-group" and not _LOG_GROUP.fullmatch(subject):
        raise InvalidValueError(
            "meanwhile: the name of a log group has up to 512 letters, digits and characters of "
            f"._-/#, got {subject!r}; pass such a name"
        )
    return kind, subject


def counted(subject: str) -> tuple[str, int]:
    """Return the name and the number in a subject."""
    name, _, count = subject.rpartition(":")
    if not (count.isdecimal() and count.isascii()):
        raise InvalidValueError(f"meanwhile: must end with a whole number, got {subject!r}")
    # Python refuses to read a number of more than 4,300 digits.
    if len(count) > len(str(MAXIMUM_COUNT)) or int(count) > MAXIMUM_COUNT:
        raise InvalidValueError(
            f"meanwhile: must end with a number up to {MAXIMUM_COUNT}, got {subject!r}"
        )
    return name, int(count)
