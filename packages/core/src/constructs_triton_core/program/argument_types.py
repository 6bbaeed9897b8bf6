"""Reads the values of arguments, as argparse's ``type``: numbers, pairs and versions."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable
from typing import TypeVar

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts.limits import RangeLimit
from constructs_triton_core.facts.versions import parse_version

__all__ = [
    "add_called_models",
    "argument_type",
    "called_models",
    "number",
    "pair_argument",
    "version_argument",
    "whole_number",
]

_WHOLE = re.compile(r"-?[0-9]{1,18}")
_ANY = RangeLimit(None, None)
NumericT = TypeVar("NumericT", int, float)
ValueT = TypeVar("ValueT")


def whole_number(limit: RangeLimit = _ANY) -> Callable[[str], int]:
    """Return what reads a whole number in a range."""

    def read(text: str) -> int:
        value = int(text) if _WHOLE.fullmatch(text) else None
        return _in_range("a whole number", text, value, limit)

    return read


def number(limit: RangeLimit = _ANY) -> Callable[[str], float]:
    """Return what reads a finite number in a range."""

    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        return _in_range("a number", text, value if math.isfinite(value) else None, limit)

    return read


def _in_range(what: str, text: str, value: NumericT | None, limit: RangeLimit) -> NumericT:
    lowest = -math.inf if limit.minimum is None else limit.minimum
    highest = math.inf if limit.maximum is None else limit.maximum
    if value is None or not lowest <= value <= highest:
        bounds = f", {limit}" if str(limit) else ""
        raise argparse.ArgumentTypeError(f"must be {what}{bounds}, got {text!r}")
    return value


def pair_argument(form: str, example: str) -> Callable[[str], tuple[str, str]]:
    """Return what reads two strings with an equals sign between them; ``form`` is for example NAME=PATH."""

    def read(text: str) -> tuple[str, str]:
        name, _, value = text.partition("=")
        if not (name and value):
            raise argparse.ArgumentTypeError(
                f"must have the form {form}, got {text!r}; write for example {example}"
            )
        return name, value

    return read


def add_called_models(parser: argparse._ActionsContainer) -> None:
    """Declare the option for models that are called by names that the source does not contain."""
    parser.add_argument(
        "--called-models",
        action="append",
        type=pair_argument("CALLER=MODEL,...", "pipeline=scale,score"),
        metavar="CALLER=MODEL,...",
        help="models that a Python model calls and whose names its source does not contain as strings; "
        "as calls in triton-models.toml, which needs no option; may be repeated",
    )


def called_models(arguments: argparse.Namespace) -> dict[str, list[str]]:
    """Return the models of the option ``--called-models`` by their caller."""
    found: dict[str, list[str]] = {}
    for caller, models in arguments.called_models or ():
        found.setdefault(caller, []).extend(filter(None, map(str.strip, models.split(","))))
    return found


def argument_type(read: Callable[[str, str], ValueT]) -> Callable[[str], ValueT]:
    """Return argparse's ``type`` of a function that takes the name of a place and a string."""

    def without_place(text: str) -> ValueT:
        try:
            return read("", text)
        except InvalidValueError as error:
            # argparse puts the option's name before the message.
            raise argparse.ArgumentTypeError(str(error).removeprefix(": ")) from None

    return without_place


def _version(place: str, text: str) -> str:
    parse_version(text, place)
    return text


#: Reads a Triton release, such as ``26.05``.
version_argument = argument_type(_version)
