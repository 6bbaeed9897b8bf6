"""Declares an option once: for the signature and ``help()`` of functions, and for commands and ``--help``.

The options of a function are the items of a ``TypedDict``, each annotated with an :class:`Option`. The
function has ``**options: Unpack[...]`` and the decorator :func:`takes`, so type checkers, editors and
``help()`` show each of them.
"""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts.limits import RangeLimit, plain_number
from constructs_triton_core.program.argument_types import number, pair_argument, whole_number
from constructs_triton_core.spelling import did_you_mean

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])
OptionsT = TypeVar("OptionsT")
_ANY = RangeLimit(None, None)


@dataclass(frozen=True, slots=True)
class Option:
    """What a declaration says about an option besides its name and its type.

    Args:
        flag: The option of the command. A flag that begins with ``--no-`` sets ``False``.
        metavar: What ``--help`` writes for the value.
        text: What the option does, for ``help()`` and ``--help``, without the default.
        default: The default, for people, if ``value`` does not say it.
        limit: The allowed range of a number.
        example: A value of a mapping as users write it on the command line.
        value: The default.
        read: Reads the value of an item of a mapping on the command line. Lists of one key are joined.
        short: A short form of the flag, such as ``-o``.
    """

    flag: str
    metavar: str
    text: str
    default: str = ""
    limit: RangeLimit = _ANY
    example: str = ""
    value: Any = None
    read: Callable[[str], Any] | None = None
    short: str = ""

    @property
    def is_negative(self) -> bool:
        """Whether the flag sets ``False``."""
        return self.flag.startswith("--no-")

    @property
    def default_text(self) -> str:
        """The default for ``--help``; empty if there is none."""
        if self.default or self.value is None or isinstance(self.value, bool):
            return self.default
        return plain_number(self.value) if isinstance(self.value, int | float) else str(self.value)


@cache
def declared(options: Any) -> Mapping[str, tuple[Any, Option]]:
    """Return the type and the declaration of each option of a ``TypedDict``, by name."""
    hints = get_type_hints(options, include_extras=True)
    return {name: cast(tuple[Any, Option], get_args(hint)) for name, hint in hints.items()}


# --- functions --------------------------------------------------------------------------------------------


def takes(options: type) -> Callable[[FunctionT], FunctionT]:
    """Let ``help()`` show each option of a function with ``**options: Unpack[...]``.

    The section ``Args:`` is the last one of the function's docstring.
    """

    def show(function: FunctionT) -> FunctionT:
        own = inspect.signature(function)
        fixed = [each for each in own.parameters.values() if each.kind is not each.VAR_KEYWORD]
        added = [_parameter(options, name) for name in declared(options)]
        function.__signature__ = own.replace(parameters=[*fixed, *added])  # type: ignore[attr-defined]
        lines = [f"    {name}: {_sentences(option)}" for name, (_, option) in declared(options).items()]
        function.__doc__ = "\n".join([inspect.getdoc(function) or "", *lines])
        return function

    return show


def _parameter(options: Any, name: str) -> inspect.Parameter:
    annotation, option = declared(options)[name]
    default = inspect.Parameter.empty if name in options.__required_keys__ else option.value
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _sentences(option: Option) -> str:
    default = "``True``" if option.is_negative else option.default_text
    return f"{option.text[0].upper()}{option.text[1:]}.{default and f' Default: {default}.'}"


def refuse_unknown(function: str, names: Collection[str], options: type) -> None:
    """Reject names that are no options, as Python does.

    Raises:
        TypeError: there is no option of that name.
    """
    for name in names:
        if name not in declared(options):
            hint = did_you_mean(name, declared(options), f"the options are {', '.join(declared(options))}")
            raise TypeError(f"{function} got an unexpected keyword argument {name!r}; {hint}")


def complete(function: str, values: Mapping[str, Any], options: type[OptionsT]) -> OptionsT:
    """Return options with their defaults. ``None`` means the default.

    Raises:
        InvalidValueError: a number is out of its range.
        TypeError: there is no option of that name, or a required one is missing.
    """
    kind: Any = options
    refuse_unknown(function, values, kind)
    defaults = {name: option.value for name, (_, option) in declared(kind).items()}
    found = {**defaults, **{name: value for name, value in values.items() if value is not None}}
    for name in kind.__required_keys__:
        if found[name] is None:
            raise TypeError(f"{function} missing 1 required keyword-only argument: {name!r}")
    for name, (_, option) in declared(kind).items():
        if isinstance(found[name], int | float) and not _allows(option.limit, found[name]):
            raise InvalidValueError(
                f"{name}: must be {option.limit}, got {plain_number(found[name])}; use {option.default_text}"
            )
    return cast(OptionsT, {name: value for name, value in found.items() if value is not None})


def _allows(limit: RangeLimit, value: float) -> bool:
    above = limit.minimum is None or value >= limit.minimum
    return above and (limit.maximum is None or value <= limit.maximum)


def part(values: Any, options: type[OptionsT]) -> OptionsT:
    """Return those of the values that are options of ``options``."""
    kind: Any = options
    return cast(OptionsT, {name: value for name, value in values.items() if name in declared(kind)})


# --- commands ---------------------------------------------------------------------------------------------


def add_option(parser: argparse._ActionsContainer, options: Any, name: str) -> None:
    """Declare an option of a command."""
    annotation, option = declared(options)[name]
    flags = [each for each in (option.short, option.flag) if each]
    form = {**_form(annotation, option), "dest": name, "default": option.value, "help": _help(option)}
    if name in options.__required_keys__:
        form["required"] = True
    parser.add_argument(*flags, **form)


def _form(annotation: Any, option: Option) -> dict[str, Any]:
    """Return argparse's words for an option of a type: how its value is written, read and kept."""
    alternatives = get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)
    kinds = {get_origin(each) or each: each for each in alternatives}
    if bool in kinds:
        return {"action": "store_false" if option.is_negative else "store_true"}
    if Literal in kinds:
        return {"choices": get_args(kinds[Literal])}
    if Mapping in kinds:
        return {"action": "append", "type": _pair(option), "metavar": option.metavar}
    reader: Any = Path if Path in kinds else str
    if int in kinds or float in kinds:
        reader = whole_number(option.limit) if int in kinds else number(option.limit)
    return {"type": reader, "metavar": option.metavar}


def _pair(option: Option) -> Callable[[str], tuple[str, Any]]:
    read_pair = pair_argument(option.metavar, option.example)

    def read(text: str) -> tuple[str, Any]:
        key, value = read_pair(text)
        try:
            return key, option.read(value) if option.read else value
        except ValueError:
            return read_pair(key)  # has no equals sign, so it raises the error about the form

    return read


def _help(option: Option) -> str:
    text = f"do not {option.text}" if option.is_negative else option.text
    text += "; may be repeated" if option.example else ""
    return f"{text} (default: {option.default_text})" if option.default_text else text


def given(arguments: argparse.Namespace, options: type) -> dict[str, Any]:
    """Return the options that were given on the command line, or have a default."""
    values = {name: getattr(arguments, name, None) for name in declared(options)}
    return {
        name: _joined(value) if isinstance(value, list) else value
        for name, value in values.items()
        if value is not None
    }


def _joined(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        found[key] = [*found.get(key, ()), *value] if isinstance(value, list) else value
    return found
