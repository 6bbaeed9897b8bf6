"""Messages that people posted, collected in batches to find kinds that the catalogue lacks.

No message is in another list of this project. Each was tried as it was found (``first_verdict``,
``first_entry``); then the kinds that the batch showed were added, and it was given verdicts again
(``verdict``, ``entry``). Batch 2 was tried with the kinds of batch 1, and batch 3 with those of
both. Batch 4 was tried before ``Rank.KIND`` existed, and batch 5 with the kinds that were written
from the forms of messages after it. Batch 6 was tried with those of both, and batch 7 with the
kinds of batch 6 and those of frequent exceptions. Their messages are from threads that a search for
symptoms of the audience returned, not from a random choice.

The verdicts are by the author of the entries, in the words of ``reviewed_messages``; the first
verdicts of batch 8, which was collected with the kinds of batch 7, are by another person, who has
not seen the entries, and so are those of batches 9 and 10 by a third: 100 messages in two halves
by chance. Batch 9 was tried with the kinds of batch 8, and batch 10 with those of batch 9.
Batch 11 is by the author of entries again, tried with the kinds of batch 9, and batch 12, of 99
messages, by a fourth person, tried with all kinds before it. Four in five of the threads that a
search returned then were in a list already, so that its messages are the rarer ones. Batch 13,
by six authors of entries, each for one field, is 1,088 messages that were tried with the catalogue
before it. Its authors often searched for what was unknown, and where a thread was read in part
only, its cause says "inferred". Batch 14, of 150 messages, is by two persons who had not seen the
entries, one for Triton and one for AWS, tried with the kinds of batch 13: 65 right, 33 partly, 33
unknown and 19 wrong. Batch 15, of 150 messages, is by two others, after all entries were read
again: 88 right, 32 partly, 22 unknown and 8 wrong. Batch 16 is by five authors of entries, as batch
13 was. Batch 17, by two persons, with verdicts by two others, none of whom had seen the entries,
was tried with the kinds of batch 16: 97 of 140 right, 25 partly, 9 unknown and 9 wrong. Batch 18,
by four, with verdicts by four, was tried after general messages had got a meaning, which is no
cause: 92 of 152 right, 34 partly, 19 unknown and 7 wrong. Messages are shortened to the line that
counts; causes are in our words.
Threads without an owner are in the organization triton-inference-server.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import NamedTuple

TABLE = Path(__file__).parent / "collected_messages.csv"


class CollectedMessage(NamedTuple):
    """A message, its public thread and cause there, the first answer to it, and that of today."""

    batch: str
    message: str
    thread: str
    cause: str
    first_verdict: str
    first_entry: str
    verdict: str
    entry: str


def collected_messages() -> list[CollectedMessage]:
    """Return the messages in the order in which they were collected."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        return [CollectedMessage(**row) for row in csv.DictReader(file)]
