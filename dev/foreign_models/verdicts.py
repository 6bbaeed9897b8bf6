"""Compares a verdict of the checker with what the real program did, and the ledger of exceptions.

A model that a check refuses although the real program serves it, and a model that is called good
although the real program does not, are errors unless ``ledger.csv`` has a reason.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from enum import Enum
from pathlib import Path

LEDGER = Path(__file__).with_name("ledger.csv")
#: The verdicts of the checker that mean that the model is wrong.
_REFUSING = ("rejected", "cannot-be-served")


class Truth(Enum):
    """What the real program does with a model."""

    VALID = "valid"
    #: It loads, and the request gets an error or no answer.
    CANNOT_BE_SERVED = "cannot-be-served"
    REJECTED = "rejected"
    #: It answers with other outputs than config.pbtxt says, or the record does not settle it.
    DOUBTFUL = "doubtful"


class Kind(Enum):
    """How a verdict differs from the truth."""

    VALID_REFUSED = "valid refused"
    INVALID_GREEN = "invalid green"
    FAILED = "failed"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Said:
    """What the checker says of one model."""

    verdict: str
    #: The first finding, or what was not checked.
    text: str = ""


@dataclass(frozen=True, order=True)
class Disagreement:
    """A model of which the checker says something else than the real program."""

    kind: str
    name: str
    image: str
    said: str
    real: str

    def __str__(self) -> str:
        image = f" ({self.image})" if self.image else ""
        return (
            f"{self.kind}: {self.name}{image}\n    checker: {self.said}\n    real:    {self.real}"
        )


@dataclass(frozen=True, order=True)
class LedgerLine:
    """A line of the ledger: a disagreement that is known, and its reason."""

    kind: str
    name: str
    image: str
    #: The value of ``--onnx-runtime`` for which it holds, or "any".
    onnx_runtime: str
    reason: str


def disagreement(name: str, image: str, truth: Truth, real: str, said: Said) -> Disagreement | None:
    """Return how the checker's verdict differs from the truth, or ``None`` if it does not."""
    kind = _kind(truth, said.verdict)
    if kind is None:
        return None
    return Disagreement(kind.value, name, image, f"{said.verdict}: {said.text}", real)


def _kind(truth: Truth, verdict: str) -> Kind | None:
    if verdict == "failed":
        return Kind.FAILED
    if truth is Truth.DOUBTFUL:
        return None
    if verdict == "unknown":
        return Kind.UNKNOWN
    if truth is Truth.VALID:
        return Kind.VALID_REFUSED if verdict in _REFUSING else None
    return Kind.INVALID_GREEN if verdict == "loads" else None


def ledger() -> list[LedgerLine]:
    """Return the lines of the ledger."""
    with LEDGER.open(encoding="utf-8", newline="") as table:
        return [LedgerLine(**row) for row in csv.DictReader(table)]


def write_ledger(lines: Iterable[LedgerLine]) -> None:
    """Write the ledger."""
    with LEDGER.open("w", encoding="utf-8", newline="") as table:
        names = [field.name for field in fields(LedgerLine)]
        writer = csv.DictWriter(table, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(line) for line in sorted(lines))


@dataclass(frozen=True)
class Comparison:
    """The disagreements of one run, and the ledger for its option."""

    found: Sequence[Disagreement]
    #: The models that were compared, each with its image.
    compared: frozenset[tuple[str, str]]
    onnx_runtime: str
    lines: Sequence[LedgerLine]

    def unexplained(self) -> list[Disagreement]:
        """Return the disagreements that are errors and that the ledger does not explain."""
        known = {(line.kind, line.name, line.image) for line in self._of_run()}
        return [
            each
            for each in sorted(self.found)
            if each.kind != Kind.UNKNOWN.value and (each.kind, each.name, each.image) not in known
        ]

    def unneeded(self) -> list[LedgerLine]:
        """Return the lines of the ledger about models that now have the right verdict."""
        found = {(each.kind, each.name, each.image) for each in self.found}
        return [
            line
            for line in self._of_run()
            if (line.name, line.image) in self.compared
            and (line.kind, line.name, line.image) not in found
        ]

    def report(self) -> Iterator[str]:
        """Yield what to print: each unexplained disagreement, and how many there are of a kind."""
        unexplained = self.unexplained()
        yield from map(str, unexplained)
        yield f"{len(self.compared)} verdicts compared (onnx-runtime: {self.onnx_runtime})"
        counts = Counter(each.kind for each in self.found)
        new = Counter(each.kind for each in unexplained)
        for kind in Kind:
            explained = counts[kind.value] - new[kind.value]
            if kind is Kind.UNKNOWN:
                yield f"{kind.value:14}{counts[kind.value]:5}"
            else:
                yield f"{kind.value:14}{counts[kind.value]:5}, {explained} of them in {LEDGER.name}"

    def _of_run(self) -> Iterator[LedgerLine]:
        return (line for line in self.lines if line.onnx_runtime in ("any", self.onnx_runtime))
