"""Declares a value once: an item of a ``TypedDict`` that is annotated with a :class:`Value`.

Checks, defaults, signatures, ``help()``, the options of commands and their ``--help`` are derived
from it.
"""

from __future__ import annotations

import enum
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, MISSING, dataclass, replace
from functools import cache
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Required,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts.limits import RangeLimit, TextLimit
from constructs_triton_core.keywords import check_known
from constructs_triton_core.limit_checks import check_count, check_name, check_range
from constructs_triton_core.tokens import is_token

__all__ = [
    "DERIVED",
    "Value",
    "check_values",
    "complete",
    "declared_values",
    "default_values",
    "given_values",
    "part_of",
    "signature_with",
    "takes",
    "with_defaults",
]

OptionsT = TypeVar("OptionsT", bound=Mapping[str, Any])
FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])


class _Derived(enum.Enum):
    DERIVED = "derived"

    def __repr__(self) -> str:
        return "<derived>"


DERIVED = _Derived.DERIVED
"""The default of a value that is computed from others;
``None`` is then a value with its own meaning.
"""


@dataclass(frozen=True, slots=True)
class Value:
    """What a declaration says about a value. :func:`declared_values` adds its name and its type.

    Args:
        text: What the value is, without its default: sentences, or a phrase as ``--help`` shows it.
        default: The value if none is given. A function is called whenever the default is used.
        default_text: The default in words, where the value alone does not say enough.
        example: A value as users write it; errors show it.
        limit: The allowed length and characters of a string, or range of a number or a number of
            entries.
        flag: The option of a command, if not ``--the-name``. One that begins with ``--no-`` sets
            ``False``.
        short: A short form of the flag, such as ``-o``.
        metavar: What ``--help`` shows for the value.
        read: Reads the value of an entry of a mapping on the command line. Lists of one key are
            joined.
    """

    text: str
    _: KW_ONLY
    default: Any = None
    default_text: str = ""
    example: str = ""
    limit: RangeLimit | TextLimit | None = None
    flag: str = ""
    short: str = ""
    metavar: str | None = None
    read: Callable[[str], Any] | None = None
    name: str = ""
    annotation: Any = None
    is_required: bool = False

    @property
    def alternatives(self) -> list[Any]:
        """The type, or the members of a union, without ``None``."""
        is_union = get_origin(self.annotation) in (Union, UnionType)
        members = get_args(self.annotation) if is_union else (self.annotation,)
        return [member for member in members if member is not NoneType]

    @property
    def option(self) -> str:
        """The option of a command."""
        return self.flag or f"--{self.name.replace('_', '-')}"

    @property
    def is_negative(self) -> bool:
        """Whether the flag sets ``False``."""
        return self.flag.startswith("--no-")

    @property
    def sentence(self) -> str:
        """The text with a capital letter and a full stop."""
        full_stop = "" if self.text.endswith(".") else "."
        return f"{self.text[0].upper()}{self.text[1:]}{full_stop}"

    def documentation(self, has_defaults: bool = True) -> str:
        """Return the text and the default, for a docstring."""
        if not has_defaults:
            return self.sentence
        if self.is_required:
            return f"{self.sentence} Required."

        # A flag that sets False has the default True.
        default = True if self.is_negative else self.default
        text = self.default_text
        if not text and default not in (None, DERIVED):
            text = f'``"{default}"``' if isinstance(default, str) else f"``{default}``"
        return f"{self.sentence} Default: {text}." if text else self.sentence

    def parameter(self, has_defaults: bool = True) -> inspect.Parameter:
        """Return the parameter of a signature."""
        default = self.default if has_defaults or self.default is DERIVED else None
        default = inspect.Parameter.empty if self.is_required else default
        return inspect.Parameter(
            self.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=self.annotation
        )

    def check(self, value: Any) -> None:
        """Check a value against the limit; ``None`` and tokens pass.

        Raises:
            InvalidValueError: the value is outside its limit.
        """
        if value is None or self.limit is None or is_token(value):
            return
        if isinstance(self.limit, TextLimit):
            check_name(self.name, value, self.limit)
        elif any(get_origin(member) in (Sequence, Mapping) for member in self.alternatives):
            check_count(self.name, value, self.limit)
        else:
            check_range(self.name, value, self.limit)


@cache
def declared_values(options: Any) -> Mapping[str, Value]:
    """Return the values that a ``TypedDict`` or a dataclass declares, by name;
    required ones come first.
    """
    hints = get_type_hints(options, include_extras=True)
    values = [
        _declared(options, name, hint)
        for name, hint in hints.items()
        if get_origin(hint) in (Annotated, Required)
    ]
    return {value.name: value for value in sorted(values, key=lambda value: not value.is_required)}


def _declared(options: Any, name: str, hint: Any) -> Value:
    is_required = name in getattr(options, "__required_keys__", ())
    if get_origin(hint) is Required:
        (hint,) = get_args(hint)
        is_required = True
    annotation, value = cast(tuple[Any, Value], get_args(hint))

    # A dataclass declares its defaults itself.
    field = getattr(options, "__dataclass_fields__", {}).get(name)
    if field is not None:
        is_required = field.default is MISSING and field.default_factory is MISSING
        if field.default not in (MISSING, ()):
            value = replace(value, default=field.default)
    return replace(value, name=name, annotation=annotation, is_required=is_required)


def check_values(
    callee: str,
    given: Mapping[str, Any],
    options: type,
    *,
    others: Sequence[str] = (),
    check: Callable[[Value, Any], None] = Value.check,
) -> None:
    """Check the names of keyword arguments, whether a required one is missing, and each value.

    ``others`` are the keyword arguments that ``callee`` takes besides ``options``.

    Raises:
        TypeError: ``options`` declares no value of that name.
        InvalidValueError: a value is outside its limit, or a required one is missing.
    """
    declared = declared_values(options)
    check_known(given, [*others, *declared], callee)
    for value in declared.values():
        if value.is_required and given.get(value.name) is None:
            raise InvalidValueError(
                f"{value.name}: is required; write {value.name}={value.example}"
            )
    for name, value_given in given.items():
        check(declared[name], value_given)


def complete(callee: str, given: OptionsT, options: type[OptionsT]) -> OptionsT:
    """Check keyword arguments as :func:`check_values`,
    and add the defaults that are not ``None``.
    """
    check_values(callee, given, options)
    return given_values(with_defaults(given, options), options)


def given_values(given: OptionsT, options: type[OptionsT]) -> OptionsT:
    """Return ``given`` without the values whose ``None`` means that they are not given."""
    declared = declared_values(options)
    values = {
        name: value
        for name, value in given.items()
        if value is not None or declared[name].default is DERIVED
    }
    return cast(OptionsT, values)


def part_of(given: Mapping[str, Any], part: type[OptionsT]) -> OptionsT:
    """Return the values that ``part`` declares."""
    return cast(OptionsT, {name: given[name] for name in declared_values(part) if name in given})


def with_defaults(given: OptionsT, options: type[OptionsT]) -> OptionsT:
    """Return ``given`` together with the default of every other value, except derived ones."""
    return cast(OptionsT, {**default_values(options), **given_values(given, options)})


def default_values(options: type[OptionsT]) -> OptionsT:
    """Return the default of every value, except derived ones."""
    defaults = {name: value.default for name, value in declared_values(options).items()}
    values = {
        name: default() if callable(default) else default
        for name, default in defaults.items()
        if default is not DERIVED
    }
    return cast(OptionsT, values)


def takes(options: type) -> Callable[[FunctionT], FunctionT]:
    """Document a function with ``**options: Unpack[options]``, whose docstring ends with ``Args:``.

    ``help()`` and ``inspect.signature`` then show each value with its type, default and meaning.
    """

    def show(function: FunctionT) -> FunctionT:
        function.__signature__ = signature_with(function, options)  # type: ignore[attr-defined]
        lines = [
            f"    {value.name}: {value.documentation()}"
            for value in declared_values(options).values()
        ]
        function.__doc__ = "\n".join([inspect.getdoc(function) or "", *lines])
        return function

    return show


def signature_with(function: Any, options: type, *, has_defaults: bool = True) -> inspect.Signature:
    """Return the signature of a function with the values in place of its ``**options``."""
    own = inspect.signature(function)
    fixed = [
        parameter
        for parameter in own.parameters.values()
        if parameter.kind is not parameter.VAR_KEYWORD
    ]
    added = [value.parameter(has_defaults) for value in declared_values(options).values()]
    return own.replace(parameters=[*fixed, *added])
