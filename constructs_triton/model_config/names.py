"""Did-you-mean: the name that was probably meant."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["closest", "did_you_mean", "quoted"]


def closest(name: str, candidates: Iterable[str]) -> str | None:
    """The candidate nearest to ``name``, or ``None`` where none is near; case is not minded."""
    import difflib  # noqa: PLC0415 - only a finding needs it

    known = sorted(set(candidates))
    by_lower = {candidate.lower(): candidate for candidate in known}
    if name.lower() in by_lower:
        return by_lower[name.lower()]
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    return near[0] if near else None


def did_you_mean(name: str, candidates: Iterable[str], otherwise: str) -> str:
    """A hint that names the nearest candidate, or ``otherwise``."""
    guess = closest(name, candidates)
    return f'did you mean "{guess}"?' if guess is not None else otherwise


def quoted(names: Iterable[str]) -> str:
    """Names in double quotes, as an enumeration: ``"image" and "boxes"``; "nothing" where there are none."""
    words = [f'"{name}"' for name in names]
    if not words:
        return "nothing"
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))
