"""Compares what a test expects with what a stack has, and words the differences."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from constructs_triton_core.spelling import did_you_mean

_MOST_LISTED = 5


def differing(what: str, expected: Any, found: Any) -> Iterator[str]:
    """Yield a sentence if two values differ. Numbers are equal whatever their types."""
    if expected != found:
        yield f"{what}: expected {expected!r}, got {found!r}"


def differing_names(
    what: str, expected: Collection[str], found: Collection[str] | None
) -> Iterator[str]:
    """Yield a sentence for each name that only one of two collections has,
    or one if each has one name.
    """
    if found is None:
        yield f"{what}: expected {listed(expected)}, but they are known only after the deployment"
        return
    if len(expected) == len(found) == 1:
        if set(expected) != set(found):
            yield f"{what}: expected {listed(expected)}, got {listed(found)}"
        return
    extra = set(found) - set(expected)
    for name in sorted(set(expected) - set(found)):
        hint = did_you_mean(name, extra) or f"it has {listed(found)}"
        yield f'{what}: "{name}" is missing; {hint}'
    for name in sorted(extra):
        yield f'{what}: "{name}" is not expected'


def differing_values(
    what: str, expected: Mapping[str, object], found: Mapping[str, object]
) -> Iterator[str]:
    """Yield a sentence for each expected key that is missing or has another value.

    ``None`` expects that the key is missing. Other keys are not compared.
    """
    for key, value in expected.items():
        where = f'{what}["{key}"]'
        if value is None:
            if key in found:
                yield f"{where}: must not be set, got {found[key]!r}"
        elif key not in found:
            yield f"{where}: expected {value!r}, but it is not set; {_nearest(key, found)}"
        elif found[key] != value:
            yield f"{where}: expected {value!r}, got {found[key]!r}"


def _nearest(key: str, found: Mapping[str, object]) -> str:
    others = (
        f"it has {listed(found)}" if len(found) <= _MOST_LISTED else f"{len(found)} others are set"
    )
    return did_you_mean(key, found, others)


def listed(names: Collection[str]) -> str:
    """Return names in a fixed order, such as ``"current", "next"``; "none" if there are none."""
    return ", ".join(f'"{name}"' for name in sorted(names)) or "none"
