"""Declares options once that are fields of a dataclass: see ``declared_options``."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import MISSING, fields, replace
from functools import cache
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts.limits import RangeLimit, plain_number
from constructs_triton_tools.declared_options import declared, takes

KindT = TypeVar("KindT")


@cache
def options_of(kind: Any) -> Any:
    """Return the fields of a dataclass that have an :class:`Option` as ``declared_options`` reads them.

    The default of a field is that of its option. A ``TypedDict`` is returned as it is.
    """
    if not hasattr(kind, "__dataclass_fields__"):
        return kind
    hints, found, required = get_type_hints(kind, include_extras=True), {}, set[str]()
    for each in fields(kind):
        if get_origin(hints[each.name]) is Annotated:
            annotation, option = get_args(hints[each.name])
            if each.default not in (MISSING, ()):
                option = replace(option, value=each.default)
            elif each.default is MISSING and each.default_factory is MISSING:
                required.add(each.name)
            found[each.name] = Annotated.__class_getitem__((annotation, option))
    return type(kind.__name__, (), {"__annotations__": found, "__required_keys__": frozenset(required)})


def shows_options(kind: type[KindT]) -> type[KindT]:
    """Let ``help()`` show each option of a dataclass, at the end of its docstring and in its signature."""
    fields_of: Any = kind
    options = options_of(fields_of)

    def fields_only(**_options: Any) -> None: ...

    fields_only.__doc__ = f"{inspect.cleandoc(kind.__doc__ or '')}\n\nArgs:"
    shown: Callable[..., None] = takes(options)(fields_only)
    kind.__doc__ = shown.__doc__
    known = {name: annotation for name, (annotation, _) in declared(options).items()}
    own = inspect.signature(kind)
    parameters = [
        each.replace(annotation=known.get(each.name, each.annotation)) for each in own.parameters.values()
    ]
    kind.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    return kind


def check_limits(values: Any) -> None:
    """Check the numbers of a dataclass against the limits of their options.

    Raises:
        InvalidValueError: a number is out of its range.
    """
    kind: Any = type(values)
    for name, (_, option) in declared(options_of(kind)).items():
        value, limit = getattr(values, name), option.limit
        if isinstance(value, int | float) and not _least(limit) <= value <= _most(limit):
            fix = option.default_text or plain_number(_least(limit))
            raise InvalidValueError(f"{name}: must be {limit}, got {plain_number(value)}; use {fix}")


def _least(limit: RangeLimit) -> float:
    return -math.inf if limit.minimum is None else limit.minimum


def _most(limit: RangeLimit) -> float:
    return math.inf if limit.maximum is None else limit.maximum
