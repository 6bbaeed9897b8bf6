"""A value is declared once: its name, type, limit and default are checked, and shown to users."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Required, TypedDict, Unpack

import pytest

from constructs_triton_core.declared_values import (
    DERIVED,
    Value,
    complete,
    declared_values,
    default_values,
    part_of,
    takes,
    with_defaults,
)
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts.limits import RangeLimit, TextLimit


class _Rate(TypedDict):
    rate: Annotated[float, Value("requests per second", limit=RangeLimit(1, 10), example="5")]


class _Options(_Rate, total=False):
    name: Annotated[str | None, Value("Name of it.", default="x", limit=TextLimit(3))]
    share: Required[
        Annotated[float, Value("Share.", limit=RangeLimit(1, 100, "percent"), example="60")]
    ]
    pairs: Annotated[Mapping[str, int] | None, Value("pairs", limit=RangeLimit(1, 2, "pairs"))]
    image: Annotated[str | None, Value("Its image.", default=DERIVED, default_text="the newest")]
    folder: Annotated[Sequence[str], Value("folders", default=list, default_text="none")]
    compares: Annotated[bool | None, Value("compare them", flag="--no-comparison")]


GIVEN: Any = {"rate": 2, "share": 60}


@takes(_Options)
def _measure(place: str, **options: Unpack[_Options]) -> Any:
    """Measure.

    Args:
        place: Where.
    """
    return complete("measure()", options, _Options)


def test_signature_and_docstring_show_each_value() -> None:
    """Required values come first and have no default; the text is a sentence with the default."""
    parameters = inspect.signature(_measure).parameters
    assert [*parameters] == [
        "place",
        "rate",
        "share",
        "name",
        "pairs",
        "image",
        "folder",
        "compares",
    ]
    assert parameters["rate"].default is inspect.Parameter.empty
    assert parameters["name"].default == "x"
    assert (inspect.getdoc(_measure) or "").splitlines()[3:] == [
        "    place: Where.",
        "    rate: Requests per second. Required.",
        "    share: Share. Required.",
        '    name: Name of it. Default: ``"x"``.',
        "    pairs: Pairs.",
        "    image: Its image. Default: the newest.",
        "    folder: Folders. Default: none.",
        "    compares: Compare them. Default: ``True``.",
    ]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"rate": None}, r"rate: is required; write rate=5$"),
        ({"rate": 11}, r"rate: must be from 1 to 10, got 11; lower it to 10$"),
        ({"share": 0.6}, r"share: must be from 1 to 100 percent, got 0\.6; did you mean 60\?$"),
        ({"name": "long"}, r'name: must have at most 3 characters, got "long"; shorten it to 3$'),
        ({"pairs": {}}, r"pairs: must have 1 to 2 pairs, got 0; add one"),
    ],
)
def test_value_outside_its_limit_is_an_error(given: dict[str, Any], message: str) -> None:
    """Numbers, strings and collections are checked, and a required value must be given."""
    with pytest.raises(InvalidValueError, match=f"^{message}"):
        complete("measure()", {**GIVEN, **given}, _Options)


def test_unknown_name_is_an_error_like_those_of_python() -> None:
    """The error suggests the name that was probably meant."""
    with pytest.raises(
        TypeError, match=r"^measure\(\) got an unexpected keyword argument 'nam'; .*name"
    ):
        complete("measure()", {**GIVEN, "nam": "y"}, _Options)


def test_none_means_the_default_but_for_a_derived_value() -> None:
    """A derived value keeps its ``None``; a default that is a function is called each time."""
    given: Any = {**GIVEN, "name": None, "image": None, "pairs": "${Token[A.1]}"}
    assert complete("measure()", given, _Options) == {**given, "name": "x", "folder": []}
    assert "image" not in default_values(_Options)
    assert with_defaults({**GIVEN}, _Options)["pairs"] is None
    assert default_values(_Options)["folder"] is not default_values(_Options)["folder"]
    assert part_of(given, _Rate) == {"rate": 2}


def test_option_is_the_name_unless_it_has_a_flag() -> None:
    """The name with hyphens is the option of a command."""
    assert [each.option for each in declared_values(_Options).values()][-2:] == [
        "--folder",
        "--no-comparison",
    ]


@dataclass(frozen=True)
class _Fields:
    kind: str
    rate: Annotated[float, Value("requests per second")]
    seed: Annotated[int, Value("seed")] = 3
    names: Annotated[Sequence[str], Value("names", default_text="none")] = ()


def test_fields_of_a_dataclass_are_values_too() -> None:
    """A field that is annotated has the default of the field, and is required without one."""
    found = {
        name: (each.default, each.is_required) for name, each in declared_values(_Fields).items()
    }
    assert found == {"rate": (None, True), "seed": (3, False), "names": (None, False)}
