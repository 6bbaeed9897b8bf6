"""Suggestions for misspelled names: the closest one, in bounded time."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from cpu_limit import cpu_limit

from constructs_triton_core.spelling import closest, did_you_mean, limited_suggestions, quoted


def test_closest_name_is_suggested() -> None:
    """The most similar name, whatever its case; otherwise the text for none."""
    assert closest("imgae", ["boxes", "image", "images"]) == "image"
    assert closest("OUTPUT", ["output_1", "Output"]) == "Output"
    assert did_you_mean("imgae", ["image"]) == 'did you mean "image"?'
    assert did_you_mean("x", ["image"], "remove it") == "remove it"


def test_names_are_enumerated() -> None:
    """One, two, several and no names."""
    shown = [quoted(names) for names in ("", "a", "ab", "abc")]
    assert shown == ["nothing", '"a"', '"a" and "b"', '"a", "b" and "c"']


HOSTILE: dict[str, tuple[str, Iterable[str]]] = {
    "long name": ("ab" * 5_000_000, ["ba" * 5_000_000]),
    "long candidate": ("ab", ["ab" * 5_000_000]),
    "many candidates": (
        "x" * 50 + "y" * 50,
        (f"{'y' * 20}{'x' * 20}{index}" for index in range(10**9)),
    ),
    "names of special characters": ("\0\ud800\n" * 33, ["\ud800\0" * 50, "", "\u0130"]),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_names_take_little_time(case: str) -> None:
    """Names come from files that other people wrote."""
    name, candidates = HOSTILE[case]
    with cpu_limit():
        did_you_mean(name, candidates)


def test_closest_of_many_names_is_found() -> None:
    """Names with the same start and end are compared first,
    and equal letters decide between two.
    """
    names = [*(f"a_rather_long_name_{index}" for index in range(1_900)), "image"]
    assert closest("imgae", names) == "image"
    tenants = [f"tenant{number:04}" for number in range(1_000)]
    assert [closest(name, tenants) for name in ("tenan0571", "tenant571", "tenat0999")] == [
        "tenant0571",
        "tenant0571",
        "tenant0999",
    ]
    assert closest("tenant70", [f"tenant{number:02}" for number in range(60)]) == "tenant07"


def test_a_run_suggests_a_limited_number_of_names() -> None:
    """A file with thousands of misspelled names takes no time for suggestions that are not read."""
    with limited_suggestions(2):
        assert [closest("imgae", ["image"]) for _ in range(3)] == ["image", "image", None]
    assert closest("imgae", ["image"]) == "image"


def test_long_enumerations_are_shortened() -> None:
    """Fifty names are shown, and a hundred characters of each."""
    assert quoted(map(str, range(60))).endswith('"48", "49" and 10 more')
    assert quoted(["a" * 101]) == f'"{"a" * 100}…"'
