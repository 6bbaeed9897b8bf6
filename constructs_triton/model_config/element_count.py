"""The number of elements of a tensor."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["count_elements"]

_MOST = 2**63


def count_elements(dims: Iterable[int]) -> int:
    """Return the product of the dims, at most 2**63: that of a hostile file has millions of digits."""
    count = 1
    for dim in dims:
        count = max(-_MOST, min(count * dim, _MOST))
    return count
