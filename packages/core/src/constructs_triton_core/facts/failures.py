"""The failures of Triton on SageMaker: the message of each, its causes and its fix."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from typing import Any, NamedTuple

from constructs_triton_core.facts import load

__all__ = [
    "Failure",
    "Rank",
    "bounded",
    "fix_of",
    "harmless_lines",
    "known_failures",
    "unknown_values",
]


_MOST_REPEATED = 500
"""The most characters, or groups, that a repetition in a pattern of the catalogue matches."""
_REPEATED = re.compile(
    r"\\.|\[\^?\]?(?:\\.|[^\]\\])*+\]|(?P<all>\*)|(?P<some>\+)|\{(?P<least>\d+),\}",
    re.DOTALL,
)


class Rank(IntEnum):
    """What an entry says about the cause; a lower value is more specific."""

    #: The message names the cause.
    CAUSE = 0
    #: The form of the message names a kind of failure, which has few causes: an exception of
    #: Python, a status of HTTP, an exit code.
    KIND = 1
    #: The message says that something failed, and another message says why.
    WRAPPER = 2
    #: The message is written although nothing failed, or adds to another failure.
    NOTE = 3


#: Entries that come after all others, in this order.
_LAST = {Rank.KIND: 1, Rank.WRAPPER: 2}


class Explanation(NamedTuple):
    """What an entry says, with the values of a message."""

    causes: list[str]
    fix: str
    if_none_fits: str
    meaning: str


class OtherText(NamedTuple):
    """How other releases of Triton word the same message."""

    releases: str
    text: str


@dataclass(frozen=True, slots=True)
class Failure:
    """One entry of the catalogue.

    ``where`` is where the message occurs. ``pattern_text`` recognizes it, and ``example`` is such a
    message. The texts of Triton's sources that an entry explains besides are in ``failure_texts``.
    ``other_texts`` are the messages of releases that word it differently. ``causes`` are
    ordered by likelihood. ``if_none_fits`` is what decides between them and others that are not
    known; it is empty where the message itself proves its cause. ``meaning`` is what a general
    message proves whatever its cause is; it is empty where the first cause is the best answer.
    ``{name}`` in these texts is a group of the pattern, or one of ``unknown_values``. ``keywords``
    are this library's properties, checks and commands that help. ``evidence`` says how the message
    is known. With ``is_refusal``
    Triton writes the message when it refuses a request, before a model runs. Each match of the
    pattern contains one of ``needles`` in lower case; none means that this is not known.
    """

    id: str
    where: str
    rank: Rank
    pattern_text: str
    example: str
    other_texts: tuple[OtherText, ...]
    causes: tuple[str, ...]
    fix: str
    keywords: tuple[str, ...]
    source: str
    evidence: str
    is_refusal: bool = False
    if_none_fits: str = ""
    meaning: str = ""
    needles: tuple[str, ...] = ()

    def may_match(self, lower_case: str) -> bool:
        """Whether a text can contain a match, from its lower case; far faster than to search.

        Args:
            lower_case: The text in lower case.
        """
        for needle in self.needles:  # a generator would cost more than the comparison
            if needle in lower_case:
                return True
        return not self.needles

    @property
    def pattern(self) -> re.Pattern[str]:
        """The pattern, which is compiled when a message is first compared with it."""
        return _compiled(self.pattern_text)

    def filled(self, values: Mapping[str, str] | None = None) -> Explanation:
        """Return the texts with the values of a message (default: those of the example)."""
        names = dict.fromkeys(self.pattern.groupindex, "unknown")
        names.update(unknown_values())
        names.update(self._values_of_example() if values is None else values)
        causes = [cause.format(**names) for cause in self.causes]
        others = (text.format(**names) for text in (self.fix, self.if_none_fits, self.meaning))
        return Explanation(causes, *others)

    def _values_of_example(self) -> dict[str, str]:
        """Return the groups of the pattern that the example has, each up to its first ``\\n``."""
        found = self.pattern.search(self.example)
        if found is None:
            return {}
        groups = found.groupdict().items()
        return {name: text.partition("\\n")[0] for name, text in groups if text}


@cache
def known_failures() -> tuple[Failure, ...]:
    """Return the catalogue.

    The first entry whose pattern matches a message is the message's entry. So a kind of failure
    comes after all entries of single messages, and what only wraps another message comes last.
    """
    needles = load("failure_needles")
    failures = (_failure(row, needles.get(row["id"], ())) for row in load("failures")["failures"])
    return tuple(sorted(failures, key=lambda failure: _LAST.get(failure.rank, 0)))


def bounded(pattern: str, most: int = _MOST_REPEATED) -> str:
    """Return a pattern in which each repetition without an end has one.

    A message is foreign text, of any length. Where a repetition can begin at each character and
    end at each later one, Python's engine needs quadratic time. With a bound it is linear. An
    engine that always is, RE2, would be one more compiled dependency, which has no wheels for
    musl (google-re2 1.1.20251105), and knows no look-around.
    """
    return _REPEATED.sub(lambda found: _with_end(found, most), pattern)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(bounded(pattern))


def _with_end(found: re.Match[str], most: int) -> str:
    """Return a repetition of a pattern, such as ``*`` or ``{3,}``, with at most ``most``."""
    if found["all"]:
        return f"{{0,{most}}}"
    if found["some"]:
        return f"{{1,{most}}}"
    if found["least"]:
        return f"{{{found['least']},{most}}}"
    return found[0]  # an escaped character or a set


def _failure(row: dict[str, Any], needles: Iterable[str]) -> Failure:
    """Return the entry of a row of ``failures.json``, whose other keys are fields of it."""
    # An entry without a pattern is a family of texts, which failure_texts.json lists.
    pattern = row.get("pattern") or re.escape(row["example"])
    other_texts = [OtherText(**text) for text in row.get("other_texts", ())]
    fields = {
        **{name: value for name, value in row.items() if name != "pattern"},
        "rank": Rank[row["rank"].upper()],
        "pattern_text": pattern,
        "other_texts": tuple(other_texts),
        "causes": tuple(row["causes"]),
        "keywords": tuple(row["keywords"]),
        "needles": tuple(needles),
    }
    return Failure(**fields)


def fix_of(id: str) -> str:
    """Return the fix of an entry whose text contains no value of the message.

    Raises:
        KeyError: there is no such entry.
    """
    return {failure.id: failure.fix for failure in known_failures()}[id]


def unknown_values() -> Mapping[str, str]:
    """Return what a text has in the place of a value that a message cannot contain,
    while it is unknown.
    """
    values: Mapping[str, str] = load("failures")["values"]
    return values


@cache
def harmless_lines() -> tuple[str, ...]:
    """Return parts of lines that are written although nothing failed."""
    return tuple(row["text"] for row in load("failures")["benign"])
