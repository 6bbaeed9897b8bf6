"""Messages that people posted, with the cause that their thread found.

Each was searched out after the entries of the catalogue were written, tried at once
(``first_verdict``: right, unknown or wrong), and then given an entry if it had none. Messages are
shortened; causes are in our words. The verdicts are by the author of the entries.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import NamedTuple

TABLE = Path(__file__).parent / "public_messages.csv"


class PublicMessage(NamedTuple):
    """A message, the public thread that has it, its cause there, and its entry today."""

    message: str
    thread: str
    cause: str
    first_verdict: str
    entry: str


def public_messages() -> list[PublicMessage]:
    """Return the messages in the order in which they were found."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        return [PublicMessage(**row) for row in csv.DictReader(file)]
