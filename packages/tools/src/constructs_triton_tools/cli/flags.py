"""The options of commands whose values are declared in a ``TypedDict``."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, cast, get_args, get_origin

from constructs_triton_core.declared_values import Value, declared_values
from constructs_triton_core.facts.limits import RangeLimit, plain_number
from constructs_triton_core.program.argument_types import number, pair_argument, whole_number

_ANY = RangeLimit(None, None)


def add_option(parser: argparse._ActionsContainer, options: type, name: str) -> None:
    """Declare an option of a command."""
    value = declared_values(options)[name]
    flags = [flag for flag in (value.short, value.option) if flag]
    form = {**_form(value), "dest": name, "default": value.default, "help": _help(value)}
    if value.is_required:
        form["required"] = True
    parser.add_argument(*flags, **form)


def _form(value: Value) -> dict[str, Any]:
    """Return argparse's words for a value of a type: how it is written, read and kept."""
    kinds = {
        get_origin(alternative) or alternative: alternative for alternative in value.alternatives
    }
    if bool in kinds:
        return {"action": "store_false" if value.is_negative else "store_true"}
    if Literal in kinds:
        return {"choices": get_args(kinds[Literal])}
    if Mapping in kinds:
        return {"action": "append", "type": _pair(value), "metavar": value.metavar}
    return {"type": _reader(value, kinds), "metavar": value.metavar}


def _reader(value: Value, kinds: Mapping[Any, Any]) -> Callable[[str], Any]:
    limit = cast(RangeLimit, value.limit or _ANY)
    if int in kinds:
        return whole_number(limit)
    if float in kinds:
        return number(limit)
    return Path if Path in kinds else str


def _pair(value: Value) -> Callable[[str], tuple[str, Any]]:
    read_pair = pair_argument(str(value.metavar), value.example)

    def read(text: str) -> tuple[str, Any]:
        key, entry = read_pair(text)
        try:
            return key, value.read(entry) if value.read else entry
        except ValueError:
            return read_pair(key)  # has no equals sign, so it raises the error about the form

    return read


def _help(value: Value) -> str:
    text = f"do not {value.text}" if value.is_negative else value.text
    is_mapping = any(get_origin(alternative) is Mapping for alternative in value.alternatives)
    repeated = "; may be repeated" if is_mapping else ""
    return f"{text}{repeated}{default_words(value)}"


def default_words(value: Value) -> str:
    """Return the end of the help of a value with a default."""
    text = value.default_text
    default = value.default
    if not text and default is not None and not isinstance(default, bool):
        text = plain_number(default) if isinstance(default, int | float) else str(default)
    return text and f" (default: {text})"


def given(arguments: argparse.Namespace, options: type) -> dict[str, Any]:
    """Return the values that were given on the command line, or have a default."""
    values = {name: getattr(arguments, name, None) for name in declared_values(options)}
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


def add_concurrency(parser: argparse.ArgumentParser) -> None:
    """Declare the option that sends requests together."""
    parser.add_argument(
        "--concurrency",
        type=whole_number(RangeLimit(1, 256)),
        default=1,
        metavar="N",
        help=(
            "also send N requests together, several times, so that dynamic batching puts them into "
            "batches; finds models that mix the requests of a batch (default: "
            "one request at a time)"
        ),
    )
