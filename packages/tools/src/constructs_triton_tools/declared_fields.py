"""Shows and checks the declared fields of a dataclass: see ``declared_values`` of core."""

from __future__ import annotations

import inspect
from typing import Any, TypeVar

from constructs_triton_core.declared_values import declared_values

KindT = TypeVar("KindT")


def shows_options(kind: type[KindT]) -> type[KindT]:
    """Let ``help()`` show each declared field of a dataclass,
    in its docstring and in its signature.
    """
    fields: Any = kind
    values = declared_values(fields)
    lines = [f"    {declared.name}: {declared.documentation()}" for declared in values.values()]
    kind.__doc__ = "\n".join([inspect.cleandoc(kind.__doc__ or ""), "", "Args:", *lines])
    own = inspect.signature(kind)
    parameters = []
    for name, parameter in own.parameters.items():
        is_declared = name in values
        annotation = values[name].annotation if is_declared else parameter.annotation
        parameters.append(parameter.replace(annotation=annotation))
    kind.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined] # read by inspect
    return kind


def check_limits(values: Any) -> None:
    """Check the fields of a dataclass against the limits of their declarations.

    Raises:
        InvalidValueError: a number is out of its range.
    """
    fields: Any = type(values)
    for name, value in declared_values(fields).items():
        value.check(getattr(values, name))
