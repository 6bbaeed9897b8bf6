"""Triton's release versions: ``YY.MM``, ordered by time."""

from __future__ import annotations

import re

from constructs_triton_core.errors import InvalidValueError

__all__ = ["is_at_least", "parse_version"]

_VERSION = re.compile(r"(\d\d)\.(0[1-9]|1[0-2])")
_SIMILAR = re.compile(r"(\d\d)\.(0?[1-9]|1[0-2])(?!\d)")


def parse_version(version: str, property: str = "version") -> tuple[int, int]:
    """Return year and month of a version such as ``"26.05"``; they sort in the order of the
    releases.

    Raises:
        InvalidValueError: the version is not ``YY.MM``. ``property`` is its name in the message.
    """
    match = _VERSION.fullmatch(version)
    if match is None:
        raise InvalidValueError(
            f'{property}: must be a Triton release (year and month), got "{version}"; '
            f"write it as {_suggested(version)}"
        )
    return int(match[1]), int(match[2])


def _suggested(version: str) -> str:
    """Return the release that was probably meant, in quotes.

    ``25.1`` may have been the number 25.10.
    """
    match = _SIMILAR.search(version)
    if match is None:
        return '"26.05"'
    year, month = match[1], match[2]
    release = f'"{year}.{month:0>2}"'
    if month == "1":
        return f'{release} or "{year}.10"'
    return release


def is_at_least(version: str, other: str) -> bool:
    """Whether ``version`` is ``other`` or a later release."""
    return parse_version(version) >= parse_version(other)
