"""The kinds of events that a user can name: subject, help, example,
and whether it is about endpoints.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from constructs_triton_core.errors import InvalidValueError

KINDS: Mapping[str, Mapping[str, str]] = json.loads(Path(__file__).with_suffix(".json").read_text())


def parsed(event: str) -> tuple[str, str]:
    """Return kind and subject of an event; raises ``InvalidValueError`` for an unknown kind."""
    kind, _, subject = event.partition("=")
    if kind not in KINDS or not subject:
        forms = ", ".join(f"{name}={each['subject']}" for name, each in KINDS.items())
        raise InvalidValueError(f"meanwhile: must be one of {forms}, got {event!r}")
    return kind, subject


def counted(subject: str) -> tuple[str, int]:
    """Return the name and the number in a subject."""
    name, _, count = subject.rpartition(":")
    if not (count.isdecimal() and count.isascii()):
        raise InvalidValueError(f"meanwhile: must end with a whole number, got {subject!r}")
    return name, int(count)
