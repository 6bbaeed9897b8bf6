"""Reads the public names of the package: signatures, properties and members."""

from __future__ import annotations

import enum
import inspect
import re
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, is_dataclass
from typing import Any

from constructs_triton_core.declared_values import DERIVED, declared_values
from constructs_triton_core.facts.limits import TextLimit
from documentation.docstrings import Docstring, Entry

_REQUIRED = inspect.Parameter.empty
#: Names of whole numbers. Shares, weights, times and percentages may have a fraction, and so may
#: cores.
_WHOLE = re.compile(
    r"(?:^|_)(?:counts?|capacity|accelerator_devices|periods|executions|zone_imbalance|prefix_length|step_size)$"
    r"|^(?:datapoints_to_alarm|min_adjustment_magnitude|concurrency_threshold)$"
    r"|^max_concurrent_invocations_per_instance$"
)


@dataclass(frozen=True, slots=True)
class Row:
    """One parameter of a list."""

    name: str
    type: str
    default: str
    meaning: str


def rows_of(value: Any, docstring: Docstring) -> list[Row]:
    """Return a row for each parameter of a class or a function,
    or for each key of a ``TypedDict``.
    """
    if typing.is_typeddict(value):
        return list(_rows_of_keys(value, docstring))
    parameters = signature_of(value).parameters
    hidden = ("self", "cls", "scope", "id") if "scope" in parameters else ("self", "cls")
    shown = [
        each for each in parameters.values() if each.name not in hidden and each.name[0] != "_"
    ]
    if is_dataclass(value):  # the fields of the class itself before those of its base class
        shown.sort(key=lambda each: each.name not in value.__annotations__)
    return [
        _row(each, docstring)
        for each in shown
        if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
        or each.name in docstring.entries
    ]


def signature_of(value: Any) -> inspect.Signature:
    """Return the signature; an empty one where Python has none."""
    if inspect.isclass(value) and issubclass(value, enum.Enum):
        return inspect.Signature()
    if inspect.isclass(value) and not hasattr(value, "__signature__") and "__init__" in vars(value):
        value = vars(value)["__init__"]
    try:
        return inspect.signature(value)
    except (TypeError, ValueError):
        return inspect.Signature()


def type_of(annotation: Any, name: str = "") -> str:
    """Write a type as the signature of a Python function has it, without modules.

    JavaScript has one type of numbers, so jsii annotates counts with ``float``; a count is an
    ``int``.
    """
    if annotation is _REQUIRED:
        return ""
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    text = re.sub(r"ForwardRef\('([^']+)'.*?\)", r"\1", text)
    text = re.sub(r"\b(?:\w+\.)+(?=\w)", "", text)
    text = re.sub(r"^Optional\[(.*)\]$", r"\1 | None", text)
    text = re.sub(r"^Union\[([^\[\]]*)\]$", lambda found: found[1].replace(", ", " | "), text)
    text = re.sub(r"\bNoneType\b", "None", text)
    return re.sub(r"\bfloat\b", "int", text) if _WHOLE.search(name) else text


def members_of(value: type, *, with_abstract: bool = True) -> Iterator[tuple[str, Any]]:
    """Yield the methods and properties that a class itself defines."""
    for name, member in vars(value).items():
        is_member = isinstance(member, classmethod | staticmethod | property) or inspect.isfunction(
            member
        )
        is_left_out = not with_abstract and getattr(member, "__isabstractmethod__", False)
        if is_member and not is_left_out and not name.startswith("_"):
            yield name, member


def nested_classes(value: type) -> Iterator[tuple[str, type]]:
    """Yield the public classes inside a class with their names,
    each before the classes inside it.
    """
    for name, member in vars(value).items():
        is_nested = (
            inspect.isclass(member) and member.__qualname__ == f"{value.__qualname__}.{name}"
        )
        if is_nested and not name.startswith("_"):
            yield f"{value.__qualname__}.{name}", member
            yield from nested_classes(member)


def hidden_bases(value: type) -> list[type]:
    """Return the base classes of the package that are not public themselves."""
    return [
        base
        for base in inspect.getmro(value)[1:]
        if base.__module__.startswith("constructs_triton") and any(True for _ in members_of(base))
    ]


def _rows_of_keys(value: type, docstring: Docstring) -> Iterator[Row]:
    hints: Mapping[str, Any] = getattr(value, "__annotations__", {})
    declared = declared_values(value) if "Value(" in str(list(hints.values())) else {}
    for name, entry in declared.items():
        default = "required" if entry.is_required else _declared_default(entry)
        meaning = f"{entry.sentence}{_limit(entry.limit)}"
        yield Row(name, type_of(entry.annotation, name), default, meaning.replace("``", "`"))
    for name, annotation in hints.items() if not declared else ():
        described = docstring.entries.get(name, Entry("", ""))
        yield Row(name, type_of(annotation, name), described.default, described.meaning)


def _declared_default(declared: Any) -> str:
    if declared.default_text:
        return str(declared.default_text).replace("``", "`")
    return "" if declared.default in (None, DERIVED) else f"`{declared.default!r}`"


def _limit(limit: object) -> str:
    if limit is None:
        return ""
    if isinstance(limit, TextLimit):
        allowed = f": {limit.allowed}" if limit.allowed else ""
        return f" At most {limit.max_length} characters{allowed}."
    return f" Allowed: {limit}."


def _row(parameter: inspect.Parameter, docstring: Docstring) -> Row:
    entry = docstring.entries.get(parameter.name, Entry("", ""))
    default = entry.default
    if parameter.default is _REQUIRED and parameter.kind not in (
        parameter.VAR_KEYWORD,
        parameter.VAR_POSITIONAL,
    ):
        default = "required"
    elif not default and parameter.default not in (None, DERIVED, _REQUIRED):
        # A dataclass hides the value of a default_factory; all of this package are empty
        # containers.
        is_factory = repr(parameter.default) == "<factory>"
        default = "empty" if is_factory else f"`{_literal(parameter.default)}`"
    return Row(
        parameter.name, type_of(parameter.annotation, parameter.name), default, entry.meaning
    )


def _literal(value: object) -> str:
    return f"{type(value).__name__}.{value.name}" if isinstance(value, enum.Enum) else repr(value)
