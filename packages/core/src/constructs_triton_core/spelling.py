"""Suggests the name that was probably meant."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import islice

__all__ = ["closest", "did_you_mean", "limited_suggestions", "quoted"]

_CUTOFF = 0.6
# Comparing two names takes quadratic time, and names come from files that other people wrote.
_LONGEST_NAME = 100
_MOST_CANDIDATES, _MOST_ESTIMATED, _MOST_COMPARED = 2_000, 300, 30
_MOST_QUOTED = 50
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
    left = _suggestions_left.get()
    if left is not None:
        left[0] -= 1
    return left is None or left[0] >= 0


def did_you_mean(name: str, candidates: Iterable[str], otherwise: str = "") -> str:
    """Return a hint that names the closest candidate, or ``otherwise``."""
    guess = closest(name, candidates)
    return f'did you mean "{guess}"?' if guess is not None else otherwise


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
