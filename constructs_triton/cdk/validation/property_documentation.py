"""Puts declared properties into the signature and the docstring of the class that takes them."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from typing import Any, TypeVar

from constructs_triton.cdk.validation.properties import DERIVED, DeclaredProperty, declared_properties

__all__ = ["takes_options"]

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
