"""Reads the values of arguments, as argparse's ``type``: numbers, pairs and versions."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts.limits import RangeLimit
from constructs_triton_core.facts.versions import parse_version
from constructs_triton_core.limit_checks import check_range

__all__ = [
    "add_common",
    "argument_type",
    "number",
    "pair_argument",
    "version_argument",
    "whole_number",
]

_NUMBER = re.compile(r"[-+]?([0-9]+\.?|[0-9]*\.[0-9]+)(e[-+]?[0-9]+)?", re.IGNORECASE)
_FORMS = {int: re.compile(r"-?[0-9]{1,18}"), float: _NUMBER}
_ANY = RangeLimit(None, None)
NumericT = TypeVar("NumericT", int, float)
ValueT = TypeVar("ValueT")


def whole_number(limit: RangeLimit = _ANY) -> Callable[[str], int]:
    """Return what reads a whole number in a range."""
    return argument_type(partial(_in_range, int, limit))


def number(limit: RangeLimit = _ANY) -> Callable[[str], float]:
    """Return what reads a finite number in a range."""
    return argument_type(partial(_in_range, float, limit))


def _in_range(type_: type[NumericT], limit: RangeLimit, place: str, text: str) -> NumericT:
    """Return the number that an argument is, after checking its form and its range."""
    if _FORMS[type_].fullmatch(text) is None:
        what = "whole number" if type_ is int else "number"
        bounds = f", {limit}" if str(limit) else ""
        raise InvalidValueError(f"{place}: must be a {what}{bounds}, got {text!r}")
    value = type_(text)
    check_range(place, value, limit)
    return value


def pair_argument(
    form: str, example: str, value_type: Any = str
) -> Callable[[str], tuple[str, Any]]:
    """Return what reads a string and a value with an equals sign between them,
    such as NAME=PATH.
    """

    def read(text: str) -> tuple[str, Any]:
        name, _, value = text.partition("=")
        if not (name and value):
            raise argparse.ArgumentTypeError(
                f"must have the form {form}, got {text!r}; write for example {example}"
            )
        return name, value_type(value)

    return read


#: The options that mean the same in every command.
_COMMON: dict[str, dict[str, Any]] = {
    "--json": {"action": "store_true", "help": "print JSON instead of text"},
    "--yes": {"action": "store_true", "help": "do not ask before what costs money, time or data"},
    "--stack": {"metavar": "NAME", "help": "only this CloudFormation stack"},
    "--region": {"metavar": "REGION", "help": "AWS Region (default: that of the AWS profile)"},
    "--profile": {"metavar": "PROFILE", "help": "AWS profile"},
    "--endpoint-url": {"metavar": "URL", "help": "URL of a local run (default: AWS)"},
    "--prices": {
        "metavar": "FILE",
        "help": "CSV file: instance_type, price_per_hour, optionally currency",
    },
}


def add_common(parser: argparse._ActionsContainer, *flags: str, **changes: Any) -> None:
    """Declare options that mean the same in every command,
    with what this command changes of them.
    """
    for flag in flags:
        parser.add_argument(flag, **{**_COMMON[flag], **changes})


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
