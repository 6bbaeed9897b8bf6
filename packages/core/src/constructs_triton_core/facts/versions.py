"""Triton's release versions: ``YY.MM``, ordered by time."""

from __future__ import annotations

import re

from constructs_triton_core.errors import InvalidValueError

__all__ = ["is_at_least", "parse_version"]

_VERSION = re.compile(r"(\d\d)\.(0[1-9]|1[0-2])")


def parse_version(version: str, property: str = "version") -> tuple[int, int]:
    """Return year and month of a version such as ``"26.05"``; they sort in the order of the releases.

    Raises:
        InvalidValueError: the version is not ``YY.MM``. ``property`` is its name in the message.
    """
    match = _VERSION.fullmatch(version)
    if match is None:
        raise InvalidValueError(
            f'{property}: must be a Triton release (year and month), got "{version}"; write it as "26.05"'
        )
    return int(match[1]), int(match[2])


def is_at_least(version: str, other: str) -> bool:
    """Whether ``version`` is ``other`` or a later release."""
    return parse_version(version) >= parse_version(other)
