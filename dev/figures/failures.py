"""How many of the error texts of Triton's sources ``diagnose`` explains."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

from failure_texts import table
from failure_texts.aws_exceptions import aws_exceptions
from failure_texts.collected_messages import collected_messages
from failure_texts.public_messages import public_messages
from failure_texts.reviewed_messages import reviewed_messages

from constructs_triton_core.facts.failures import known_failures
from figures.table import Row, at_least, at_most

#: Texts that only say that something failed.
_NOTHING_SAID = "triton-other"
PLACE = "dev/failure_texts"


def failures() -> Iterator[Row]:
    """The texts, and how many have a cause of their own, a family, or nothing."""
    content = json.loads(table.TABLE.read_text(encoding="utf-8"))
    newest = max(content["newest"].values())
    counts = {entry: len(rows) for entry, rows in content["texts"].items()}
    total = sum(counts.values())
    families = {failure.id for failure in known_failures() if failure.id in counts} - {
        _NOTHING_SAID
    }
    explained = sum(count for entry, count in counts.items() if entry in families)
    yield Row(f"error texts of Triton's sources, 21.08 to {newest}", total, "", PLACE)
    yield Row("of these with a cause and a step", explained, at_least(round(0.95 * total)), PLACE)
    yield Row("of these that say only that something failed", counts[_NOTHING_SAID], "", PLACE)
    yield Row("of these without an entry", counts.get("", 0), at_most(5), PLACE)
    verdicts = Counter(row.first_verdict for row in public_messages())
    posted = sum(verdicts.values())
    yield Row("messages that people posted", posted, "", PLACE)
    # Goals, because these were tried before the kinds that they showed were fixed.
    what = "public messages, explained at the first try"
    yield Row(what, verdicts["right"], at_least(round(posted * 2 / 3)), PLACE, is_goal=True)
    what = "public messages, with a wrong cause at the first try"
    yield Row(what, verdicts["wrong"], at_most(round(posted * 0.02)), PLACE, is_goal=True)
    yield from _reviewed()
    yield from _collected()
    exceptions = list(aws_exceptions())
    yield Row("exceptions of the AWS calls in botocore's models", len(exceptions), "", PLACE)
    named = sum(bool(each.entry) for each in exceptions)
    yield Row("of these with a cause and a step", named, "", PLACE)


def _reviewed() -> Iterator[Row]:
    """How a reader who had not written the catalogue reviewed each round of public messages."""
    rows = reviewed_messages()
    for number in sorted({row.round for row in rows}):
        verdicts = Counter(row.first_verdict for row in rows if row.round == number)
        reviewed = sum(verdicts.values())
        what = f"reviewed messages of round {number}, {reviewed}"
        right = at_least(round(reviewed * 2 / 3))
        yield Row(f"{what}: right", verdicts["right"], right, PLACE, is_goal=True)
        yield Row(f"{what}: partly", verdicts["partly"], "", PLACE)
        yield Row(f"{what}: unknown", verdicts["unknown"], "", PLACE)
        wrong = at_most(round(reviewed * 0.02))
        yield Row(f"{what}: wrong", verdicts["wrong"], wrong, PLACE, is_goal=True)


def _collected() -> Iterator[Row]:
    """How many messages of each batch were explained as they were found.

    What is explained today is no figure: the entries were written for these messages.
    """
    rows = collected_messages()
    for number in sorted({row.batch for row in rows}):
        batch = [row for row in rows if row.batch == number]
        first = Counter(row.first_verdict for row in batch)
        what = f"collected messages of batch {number}, {len(batch)}"
        right = at_least(round(len(batch) * 2 / 3))
        yield Row(f"{what}: right when found", first["right"], right, PLACE, is_goal=True)
        yield Row(f"{what}: wrong when found", first["wrong"], "", PLACE)
