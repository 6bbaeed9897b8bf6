"""Makes the inputs that cost a regular expression the most, from the expression itself.

An expression takes more than linear time where it can match the same characters in several ways, or
can begin to match at each of many places. So each repetition is pumped with what it matches, after
what has to precede it, and what precedes it is repeated as well; nothing of this matches in the
end.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any

__all__ = ["attacks"]

_MANY = 16
"""A repetition of at least as many may be long."""
_ENDS = ("\x00", "\n\x00")
_CANDIDATES = "a0A -_./:=,;\"'\\()[]{}<>#@$%&|*+?!~^`\t\n\rxzé中eEfF1"
_CLASSES = {
    codes.CATEGORY_DIGIT: r"\d",
    codes.CATEGORY_NOT_DIGIT: r"\D",
    codes.CATEGORY_SPACE: r"\s",
    codes.CATEGORY_NOT_SPACE: r"\S",
    codes.CATEGORY_WORD: r"\w",
    codes.CATEGORY_NOT_WORD: r"\W",
}


def attacks(pattern: re.Pattern[str], size: int) -> Iterator[str]:
    """Yield strings of about ``size`` characters."""
    tree = _parser.parse(pattern.pattern, pattern.flags & ~re.DEBUG)
    seen = set()
    for prefix, pump in _pumps(tree, ""):
        if not pump or (prefix, pump) in seen:
            continue
        seen.add((prefix, pump))
        count = max(1, (size - len(prefix)) // len(pump))
        for end in _ENDS:
            yield prefix + pump * count + end
        unit = prefix + pump
        yield unit * max(1, size // len(unit)) + "\x00"
        if prefix:
            yield prefix * max(1, size // len(prefix)) + "\x00"
    for character in " a0\n":
        yield character * size + "\x00"


def _pumps(tree: Sequence[Any], prefix: str) -> Iterator[tuple[str, str]]:
    """Yield for each long repetition what precedes it, and what it repeats."""
    for code, value in tree:
        for body in _bodies(code, value):
            yield from _pumps(body, prefix)
        if code in _REPEATS:
            _, most, body = value
            if most >= _MANY:
                for sample in _samples(body):
                    yield prefix, sample
        prefix += _sample([(code, value)])


_REPEATS = {codes.MAX_REPEAT, codes.MIN_REPEAT, getattr(codes, "POSSESSIVE_REPEAT", None)}


def _bodies(code: Any, value: Any) -> Iterator[Sequence[Any]]:
    if code in _REPEATS:
        yield value[2]
    elif code is codes.SUBPATTERN:
        yield value[3]
    elif code is codes.BRANCH:
        yield from value[1]
    elif code in (codes.ASSERT, codes.ASSERT_NOT):
        yield value[1]
    elif code is getattr(codes, "ATOMIC_GROUP", None):
        yield value
    elif code is codes.GROUPREF_EXISTS:
        yield from (each for each in value[1:] if each)


def _samples(body: Sequence[Any]) -> Iterator[str]:
    """Yield strings that a body matches; several if it is one character."""
    if len(body) == 1 and body[0][0] in (codes.IN, codes.ANY, codes.NOT_LITERAL):
        yield from _characters(*body[0], most=8)
    elif len(body) == 1 and body[0][0] is codes.BRANCH:
        yield from (_sample(each) for each in body[0][1][1])
    elif len(body) == 1 and body[0][0] is codes.SUBPATTERN:
        yield from _samples(body[0][1][3])
    else:
        yield _sample(body)


def _sample(tree: Sequence[Any]) -> str:
    """Return a string that the tree matches, as short as possible but for repetitions."""
    return "".join(_one(code, value) for code, value in tree)


def _one(code: Any, value: Any) -> str:
    if code is codes.LITERAL:
        return chr(value)
    if code in (codes.IN, codes.ANY, codes.NOT_LITERAL):
        return next(_characters(code, value, most=1), "a")
    if code in _REPEATS:
        least, most, body = value
        return _sample(body) * int(max(least, min(most, 1)))
    bodies = [] if code in (codes.ASSERT, codes.ASSERT_NOT) else [*_bodies(code, value)]
    return _sample(bodies[0]) if bodies else ""


def _characters(code: Any, value: Any, *, most: int) -> Iterator[str]:
    """Yield characters that a set, a dot or a negated character matches."""
    found = 0
    own = [chr(item[1]) for item in value if item[0] is codes.LITERAL] if code is codes.IN else []
    for character in [*own[:3], *_CANDIDATES, *own[3:]]:
        if found < most and _matches(code, value, character):
            found += 1
            yield character


def _matches(code: Any, value: Any, character: str) -> bool:
    if code is codes.ANY:
        return character != "\n"
    if code is codes.NOT_LITERAL:
        return character != chr(value)
    is_negated = value[0][0] is codes.NEGATE
    return is_negated is not any(_is_item(item, character) for item in value)


def _is_item(item: tuple[Any, Any], character: str) -> bool:
    code, value = item
    if code is codes.LITERAL:
        return character == chr(value)
    if code is codes.RANGE:
        return bool(value[0] <= ord(character) <= value[1])
    if code is codes.CATEGORY and value in _CLASSES:
        return re.fullmatch(_CLASSES[value], character) is not None
    return False
