"""Finds words that each match of a pattern contains, so that most patterns need not be tried.

A message is compared with thousands of patterns. Whether a text contains a word costs a hundredth
of a search, and a pattern that is not tried need not be compiled. ``failure_needles.json`` has the
words of each entry: a match contains at least one of them, in lower case.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

# The only parser of Python's regular expressions; ``re`` has no public one.
from re import _constants as tokens  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

import constructs_triton_core.facts
from constructs_triton_core.facts.failures import bounded, known_failures

NEEDLES = Path(constructs_triton_core.facts.__file__).with_name("failure_needles.json")
_FEWEST_CHARACTERS = 3
_MOST_WORDS = 12
_MOST_CHARACTERS = 24
_REPEATS = (tokens.MAX_REPEAT, tokens.MIN_REPEAT, tokens.POSSESSIVE_REPEAT)


def needles_of_catalogue() -> dict[str, list[str]]:
    """Return the words of each entry that has some."""
    found = {each.id: sorted(needles(each.pattern_text)) for each in known_failures()}
    return {entry: words for entry, words in found.items() if words}


def write_needles() -> None:
    """Write the words of all entries."""
    lines = ",\n".join(
        f" {json.dumps(entry)}: {json.dumps(words, ensure_ascii=False)}"
        for entry, words in needles_of_catalogue().items()
    )
    NEEDLES.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


def needles(pattern: str) -> frozenset[str]:
    """Return words of which each match of a pattern contains at least one; empty if unknown."""
    words = {word[:_MOST_CHARACTERS] for word in _required(list(parser.parse(bounded(pattern))))}
    return frozenset(word for word in words if not any(other in word for other in words - {word}))


def _required(items: Sequence[Any]) -> frozenset[str]:
    """Return the best words of a sequence: those whose shortest is the longest."""
    choices: list[frozenset[str]] = []
    run = ""
    for operator, argument in _flat(items):
        character = _character(operator, argument)
        if character is not None:
            run += character
            continue
        choices.append(frozenset({run}))
        run = ""
        choices.append(_of_part(operator, argument))
    choices.append(frozenset({run}))
    usable = [words for words in choices if words and min(map(len, words)) >= _FEWEST_CHARACTERS]
    return max(usable, key=lambda words: (min(map(len, words)), -len(words)), default=frozenset())


def _flat(items: Iterable[Any]) -> Iterable[tuple[Any, Any]]:
    """Yield the parts of a sequence, and those of groups in it."""
    for operator, argument in items:
        if operator is tokens.SUBPATTERN:
            yield from _flat(argument[3])
        elif operator is tokens.ATOMIC_GROUP:
            yield from _flat(argument)
        else:
            yield operator, argument


def _character(operator: Any, argument: Any) -> str | None:
    """Return the only character, in lower case, that a part can be."""
    if operator is tokens.LITERAL:
        return chr(argument).lower()
    if operator is not tokens.IN:
        return None
    letters = {chr(each[1]).lower() for each in argument if each[0] is tokens.LITERAL}
    is_one = len(letters) == 1 and all(each[0] is tokens.LITERAL for each in argument)
    return letters.pop() if is_one else None


def _of_part(operator: Any, argument: Any) -> frozenset[str]:
    """Return the words of a repetition or of alternatives; none of anything else."""
    if operator in _REPEATS and argument[0] > 0:
        return _required(list(argument[2]))
    if operator is tokens.BRANCH:
        alternatives = [_required(list(each)) for each in argument[1]]
        words = frozenset().union(*alternatives)
        if all(alternatives) and len(words) <= _MOST_WORDS:
            return words
    return frozenset()
