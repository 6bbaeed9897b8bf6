"""Describes how to change an array whose shape does not fit a model's input."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["ANY_SIZE", "fits", "reshape_hint"]

ANY_SIZE = -1


def fits(shape: Sequence[int], expected: Sequence[int]) -> bool:
    """Return whether a shape has the expected sizes; ``ANY_SIZE`` is any size."""
    return len(shape) == len(expected) and not _wrong_axes(shape, expected)


def reshape_hint(shape: Sequence[int], expected: Sequence[int]) -> str:
    """Return the fix of a shape that does not fit."""
    if list(expected[:1]) == [ANY_SIZE] and fits(shape, expected[1:]):
        return "add the batch axis with array[None]"
    if len(shape) != len(expected):
        dimensions = "1 dimension" if len(expected) == 1 else f"{len(expected)} dimensions"
        return f"reshape it to {dimensions}"
    sizes = [f"axis {axis} has size {expected[axis]}" for axis in _wrong_axes(shape, expected)]
    return f"reshape it so that {' and '.join(sizes)}"


def _wrong_axes(shape: Sequence[int], expected: Sequence[int]) -> list[int]:
    pairs = enumerate(zip(shape, expected, strict=True))
    return [axis for axis, (size, wanted) in pairs if wanted not in (ANY_SIZE, size)]
