"""Messages that people posted, reviewed by a reader who had not written or read the catalogue.

Round 1: 150 messages, 78 of Triton and 72 of AWS, none in another list of this project. Their
causes were written down from the threads first; `constructs-triton diagnose` was run afterwards.
``first_verdict`` and ``first_entry`` are the record of that run and do not change; ``entry`` is
the entry of today.

Round 2: 50 more, 23 of Triton and 27 of AWS, from other threads, reviewed by the same reader after
the kinds of round 1 had been added, and before any change for round 2. Many are far from our
subject (other services, other tools of deployment), where the catalogue says that it does not
know. The verdicts:

- right: the cause of the thread comes first, with a step that works;
- partly: the family is right, and what to read next;
- unknown: no entry, and what to collect;
- wrong: a cause that is not the case, or a step that does not help.

Messages are shortened to the line that counts; causes are in our words. Threads without an owner
are in the organization triton-inference-server.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import NamedTuple

TABLE = Path(__file__).parent / "reviewed_messages.csv"


class ReviewedMessage(NamedTuple):
    """A message, its public thread and cause there, the first answer to it, and its entry today."""

    round: str
    message: str
    thread: str
    cause: str
    first_verdict: str
    first_entry: str
    entry: str


def reviewed_messages() -> list[ReviewedMessage]:
    """Return the messages in the order in which they were reviewed."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        return [ReviewedMessage(**row) for row in csv.DictReader(file)]
