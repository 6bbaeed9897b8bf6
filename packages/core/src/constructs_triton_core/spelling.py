"""Suggests the name that was probably meant."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import islice

__all__ = [
    "closest",
    "did_you_mean",
    "is_misspelling",
    "limited_suggestions",
    "quoted",
    "words_of",
]

_CUTOFF = 0.6
# Comparing two names takes quadratic time, and names come from files that other people wrote.
_LONGEST_NAME = 100
_MOST_CANDIDATES, _MOST_ESTIMATED, _MOST_COMPARED = 2_000, 300, 30
_MOST_QUOTED = 50
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_suggestions_left: ContextVar[list[int] | None] = ContextVar("suggestions_left", default=None)


@contextmanager
def limited_suggestions(count: int = 50) -> Iterator[None]:
    """Suggest at most ``count`` names in this context: each takes milliseconds,
    and only people read them.
    """
    token = _suggestions_left.set([count])
    try:
        yield
    finally:
        _suggestions_left.reset(token)


def closest(name: str, candidates: Iterable[str]) -> str | None:
    """Return the candidate most similar to ``name``, or ``None`` if none is similar; ignores case.

    The time is bounded: names of more than 100 characters, and candidates after the first 2,000,
    are ignored.
    """
    import difflib  # noqa: PLC0415 - only a finding needs it

    if len(name) > _LONGEST_NAME or not _may_suggest():
        return None
    known = sorted(
        {each for each in islice(candidates, _MOST_CANDIDATES) if len(each) <= _LONGEST_NAME}
    )
    by_lower = {candidate.lower(): candidate for candidate in known}
    if name.lower() in by_lower:
        return by_lower[name.lower()]
    by_ends = sorted(known, key=lambda candidate: _differing(name, candidate))
    matcher = difflib.SequenceMatcher(b=name)

    def estimate(candidate: str) -> float:
        matcher.set_seq1(candidate)
        return matcher.quick_ratio()

    def similarity(candidate: str) -> tuple[float, float]:
        # Of equally similar names, one with the same letters: "tenant07" for "tenant70".
        letters = estimate(candidate)
        return matcher.ratio(), letters

    likely = sorted(by_ends[:_MOST_ESTIMATED], key=estimate, reverse=True)[:_MOST_COMPARED]
    best = max(likely, key=similarity, default=None)
    return best if best is not None and similarity(best)[0] >= _CUTOFF else None


def _differing(name: str, candidate: str) -> int:
    """Return the length of what is left without the common start and the common end.

    Of a thousand names such as ``tenant0571``, a misspelt one has these in common with the right
    one.
    """
    longest = min(len(name), len(candidate))
    start = next((n for n in range(longest) if name[n] != candidate[n]), longest)
    rest = longest - start
    end = next((n for n in range(rest) if name[-1 - n] != candidate[-1 - n]), rest)
    return max(len(name), len(candidate)) - start - end


def _may_suggest() -> bool:
    """Take one of the suggestions that are left; whether there was one."""
    left = _suggestions_left.get()
    if left is not None:
        left[0] -= 1
    return left is None or left[0] >= 0


def did_you_mean(
    name: str, candidates: Iterable[str], otherwise: str = "", *, used: Container[str] = ()
) -> str:
    """Return a hint that names the closest candidate, or ``otherwise``.

    Args:
        name: The name that does not exist.
        candidates: The names that exist.
        otherwise: The hint if no candidate is similar.
        used: Candidates that are written elsewhere, where they mean something else. One of them is
            named only if ``name`` is a misspelling of it: ``yolov4_post`` is another model than
            ``yolov4``.
    """
    known = list(islice(candidates, _MOST_CANDIDATES))
    misspelled = [candidate for candidate in known if is_misspelling(name, candidate)]
    free = [candidate for candidate in known if candidate not in used]
    guess = closest(name, misspelled) or closest(name, free)
    return f'did you mean "{guess}"?' if guess is not None else otherwise


_SHORTEST_NAME = 4
_BETWEEN_WORDS = re.compile(r"[\s_.-]+")


def is_misspelling(name: str, known: str) -> bool:
    """Whether a name is most likely another one with a typing error, and no name of its own.

    The two differ in case, in what is between words, by one letter, or in the order of the letters.
    Names with other numbers, such as ``model_1`` and ``model_2``, are two names.
    """
    if max(len(name), len(known)) > _LONGEST_NAME:
        return False
    one, other = (_BETWEEN_WORDS.sub("", each.lower()) for each in (name, known))
    if one == other:
        return True
    if min(len(one), len(other)) < _SHORTEST_NAME or _numbers(one) != _numbers(other):
        return False
    return sorted(one) == sorted(other) or _differ_by_one(one, other)


def _numbers(name: str) -> list[str]:
    return re.findall(r"\d+", name)


def _differ_by_one(one: str, other: str) -> bool:
    """Whether one letter was added, removed or changed."""
    start = next(
        (n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b),
        min(len(one), len(other)),
    )
    return (
        one[start + 1 :] == other[start:]
        or one[start:] == other[start + 1 :]
        or one[start + 1 :] == other[start + 1 :]
    )


def quoted(names: Iterable[str], most: int = _MOST_QUOTED) -> str:
    """Return names in double quotes as an enumeration: ``"image" and "boxes"``; "nothing" for no
    names.

    Of more than ``most`` names, the first ones and the number of the others; of a name, the first
    100 characters.
    """
    known = list(names)
    words = [f'"{_shortened(name)}"' for name in known[:most]]
    if len(known) > most:
        words.append(f"{len(known) - most:,} more")
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1]))) if words else "nothing"


def _shortened(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}…"


def words_of(name: str) -> list[str]:
    """Return the words of a name in lower case: ``hf`` and ``token`` for ``HF_TOKEN``."""
    return [word.lower() for word in _WORD.findall(name)]
