"""Suggests the name that was probably meant."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["closest", "did_you_mean", "quoted"]

_CUTOFF = 0.6


def closest(name: str, candidates: Iterable[str]) -> str | None:
    """Return the candidate most similar to ``name``, or ``None`` if none is similar; ignores case."""
    import difflib  # noqa: PLC0415 - only a finding needs it

    known = sorted(set(candidates))
    by_lower = {candidate.lower(): candidate for candidate in known}
    if name.lower() in by_lower:
        return by_lower[name.lower()]
    near = difflib.get_close_matches(name, known, n=1, cutoff=_CUTOFF)
    return near[0] if near else None


def did_you_mean(name: str, candidates: Iterable[str], otherwise: str = "") -> str:
    """Return a hint that names the closest candidate, or ``otherwise``."""
    guess = closest(name, candidates)
    return f'did you mean "{guess}"?' if guess is not None else otherwise


def quoted(names: Iterable[str]) -> str:
    """Return names in double quotes as an enumeration: ``"image" and "boxes"``; "nothing" for no names."""
    words = [f'"{name}"' for name in names]
    if not words:
        return "nothing"
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))
