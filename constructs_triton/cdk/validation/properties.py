"""Properties that are declared once, as annotated entries of a ``TypedDict``.

Checks, defaults, signatures and documentation of the constructs are all derived from these entries.
"""

from __future__ import annotations

import enum
import inspect
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, Required, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from aws_cdk import Duration, Size

from constructs_triton.cdk.validation.limit_checks import (
    check_count,
    check_name,
    check_range,
    whole_gibibytes,
    whole_seconds,
)
from constructs_triton.cdk.validation.property_types import check_type
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts.limits import RangeLimit, TextLimit
from constructs_triton_core.keywords import check_known
from constructs_triton_core.tokens import is_token

PartT = TypeVar("PartT", bound=Mapping[str, Any])
OptionsT = TypeVar("OptionsT", bound=Mapping[str, Any])


class _Derived(enum.Enum):
    DERIVED = "derived"

    def __repr__(self) -> str:
        return "<derived>"


DERIVED = _Derived.DERIVED
"""The default of a property that is computed from others; ``None`` is then a value with its own meaning."""


@dataclass(frozen=True, slots=True)
class DurationDefault:
    """A default that is created when it is used, because a ``Duration`` starts the CDK's process."""

    amount: int
    unit: Literal["seconds", "minutes", "hours", "days"]

    def create(self) -> Duration:
        """Return the duration."""
        return cast(Duration, getattr(Duration, self.unit)(self.amount))

    def __repr__(self) -> str:
        return f"Duration.{self.unit}({self.amount})"


@dataclass(frozen=True, slots=True)
class Property:
    """What a declaration says about a property besides its name and its type.

    ``documentation``
        One or two sentences for ``help()``, without the default.
    ``default``
        The value of a property that is not given.
    ``default_text``
        How the documentation describes the default, where the value alone does not say enough.
    ``example``
        A value as users write it; the error for a wrong type shows it.
    ``limit``
        The allowed length and characters of a string, or the allowed range of a number, of a duration in
        seconds, of a size in GiB, or of the number of entries in a list.
    """

    documentation: str
    default: object = None
    default_text: str = ""
    example: str = ""
    limit: RangeLimit | TextLimit | None = None


@dataclass(frozen=True, slots=True)
class DeclaredProperty:
    """One entry of a ``TypedDict``: its type without ``None`` and annotations, and its :class:`Property`."""

    name: str
    annotation: Any
    property: Property
    is_required: bool

    def check(self, value: object) -> None:
        """Check type and limit; ``None`` and tokens pass."""
        if value is None or is_token(value):
            return
        if isinstance(self.property.limit, TextLimit):
            check_name(self.name, cast(str, value), self.property.limit)
            return
        self._check_type(value)
        if isinstance(self.property.limit, RangeLimit):
            self._check_range(value, self.property.limit)

    def _check_type(self, value: object) -> None:
        example = self.property.example
        for alternative in _alternatives(self.annotation):
            if get_origin(alternative) is Sequence:
                check_type(self.name, value, (Sequence, f"[{example}]"))
                _check_entries(self.name, value, get_args(alternative)[0], example)
                return
        classes = tuple(each for each in map(_runtime_class, _alternatives(self.annotation)) if each)
        if classes:
            check_type(self.name, value, (classes, example))

    def _check_range(self, value: object, limit: RangeLimit) -> None:
        if isinstance(value, Sequence) and float not in _alternatives(self.annotation):
            check_count(self.name, value, limit)
        else:
            check_range(self.name, self._number(value), limit)

    def _number(self, value: object) -> float:
        """The number that a limit is about."""
        if isinstance(value, Duration):
            return whole_seconds(self.name, value)
        if isinstance(value, Size):
            return whole_gibibytes(self.name, value)
        return cast(float, value)


@cache
def declared_properties(options: type) -> Mapping[str, DeclaredProperty]:
    """Return the properties that a ``TypedDict`` declares, by name; required ones come first."""
    hints = get_type_hints(options, include_extras=True)
    entries = [_declared(name, hint) for name, hint in hints.items()]
    return {entry.name: entry for entry in sorted(entries, key=lambda entry: not entry.is_required)}


def check_options(
    callee: str, given: Mapping[str, object], options: type, *, others: Sequence[str] = ()
) -> None:
    """Check the names, types and limits of keyword arguments.

    ``others`` are the keyword arguments that ``callee`` takes besides ``options``.

    Raises:
        TypeError: ``options`` declares no property of that name.
        InvalidValueError: a value has the wrong type or is outside its limit, or a required one is missing.
    """
    declared = declared_properties(options)
    check_known(given, [*others, *declared], callee)
    for entry in declared.values():
        if entry.is_required and given.get(entry.name) is None:
            raise InvalidValueError(f"{entry.name}: is required; write {entry.name}={entry.property.example}")
    for name, value in given.items():
        declared[name].check(value)


def given_options(given: OptionsT, options: type[OptionsT]) -> OptionsT:
    """Return ``given`` without the properties whose ``None`` means that they are not given."""
    declared = declared_properties(options)
    values = {
        name: value
        for name, value in given.items()
        if value is not None or declared[name].property.default is DERIVED
    }
    return cast(OptionsT, values)


def part_of(given: Mapping[str, Any], part: type[PartT]) -> PartT:
    """Return the properties that ``part`` declares."""
    return cast(PartT, {name: given[name] for name in declared_properties(part) if name in given})


def with_defaults(given: OptionsT, options: type[OptionsT]) -> OptionsT:
    """Return ``given`` together with the default of every other property, except derived ones."""
    return cast(OptionsT, {**default_values(options), **given_options(given, options)})


def default_values(options: type[OptionsT]) -> OptionsT:
    """Return the default of every property, except derived ones."""
    defaults = {name: each.property.default for name, each in declared_properties(options).items()}
    values = {
        name: value.create() if isinstance(value, DurationDefault) else value
        for name, value in defaults.items()
        if value is not DERIVED
    }
    return cast(OptionsT, values)


def _declared(name: str, hint: Any) -> DeclaredProperty:
    is_required = get_origin(hint) is Required
    annotated = get_args(hint)[0] if is_required else hint
    annotation, declaration = get_args(annotated)
    return DeclaredProperty(name, annotation, declaration, is_required)


def _alternatives(annotation: Any) -> list[Any]:
    """The members of a union except ``None``."""
    members = get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)
    return [each for each in members if each is not NoneType]


def _runtime_class(annotation: Any) -> type | None:
    """The class to check for; ``None`` for a ``Literal``, and for a number, which the limit checks."""
    if get_origin(annotation) is Literal or annotation is float:
        return None
    return cast(type, get_origin(annotation) or annotation)


def _check_entries(name: str, values: object, annotation: Any, example: str) -> None:
    if isinstance(values, str):
        raise InvalidValueError(f'{name}: must be a list, got "{values}"; write [{example}]')
    for each in cast(Sequence[object], values):
        check_type(name, each, (annotation, example))


ClassT = TypeVar("ClassT", bound=type)
_LINE_LENGTH = 100


class _InitSignature:
    """Lets ``inspect.signature`` of a class be that of its ``__init__``, which jsii's metaclass hides."""

    def __get__(self, instance: object, owner: type) -> inspect.Signature:
        signature = inspect.signature(vars(owner).get("__init__") or getattr(owner, "__init__"))  # noqa: B009
        return signature.replace(parameters=list(signature.parameters.values())[1:])


def takes_options(options: type, *, has_defaults: bool = True) -> Callable[[ClassT], ClassT]:
    """Document a class whose ``__init__`` has the parameter ``**options: Unpack[options]``.

    ``help()`` and ``inspect.signature`` then show each property with its type, default and meaning.
    ``has_defaults`` is whether a property that is not given has its declared default.
    """

    def decorate(cls: ClassT) -> ClassT:
        init: Any = vars(cls)["__init__"]
        own = inspect.signature(init, eval_str=True)
        fixed = [each for each in own.parameters.values() if each.kind is not each.VAR_KEYWORD]
        declared = declared_properties(options).values()
        init.__signature__ = own.replace(
            parameters=[*fixed, *(_parameter(each, has_defaults) for each in declared)]
        )
        init.__checks_keywords_itself__ = True  # a class may have a better hint for a property of another one
        cls.__signature__ = _InitSignature()  # type: ignore[attr-defined] # read by inspect
        cls.__doc__ = f"{inspect.cleandoc(cls.__doc__ or '')}\n\n{_property_list(options, has_defaults)}"
        return cls

    return decorate


def _property_list(options: type, has_defaults: bool) -> str:
    return "\n".join(_paragraph(each, has_defaults) for each in declared_properties(options).values())


def _parameter(entry: DeclaredProperty, has_defaults: bool) -> inspect.Parameter:
    default = entry.property.default if has_defaults or entry.property.default is DERIVED else None
    if entry.is_required:
        default = inspect.Parameter.empty
    return inspect.Parameter(
        entry.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=entry.annotation
    )


def _paragraph(entry: DeclaredProperty, has_defaults: bool) -> str:
    default = _default(entry) if has_defaults else ""
    body = textwrap.fill(f"{entry.property.documentation} {default}".rstrip(), _LINE_LENGTH)
    return f"``{entry.name}``\n{textwrap.indent(body, '    ')}"


def _default(entry: DeclaredProperty) -> str:
    if entry.is_required:
        return "Required."
    default, text = entry.property.default, entry.property.default_text
    if not text and default not in (None, DERIVED):
        text = f'``"{default}"``' if isinstance(default, str) else f"``{default}``"
    return f"Default: {text}." if text else ""
