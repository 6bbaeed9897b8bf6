"""What declared values need as properties of constructs: the types,
durations and sizes of the CDK.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, TypeVar, cast, get_args, get_origin

from aws_cdk import Duration, Size

from constructs_triton.cdk.validation.limit_checks import (
    check_spelling,
    check_unit,
    whole_gibibytes,
    whole_seconds,
)
from constructs_triton.cdk.validation.property_types import check_type, is_instance, shown
from constructs_triton.cdk.validation.read_once import duration_of
from constructs_triton_core.declared_values import (
    Value,
    check_values,
    declared_values,
    signature_with,
)
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts import facts_of
from constructs_triton_core.facts.limits import TextLimit
from constructs_triton_core.tokens import is_token

ClassT = TypeVar("ClassT", bound=type)
_load = facts_of(__package__)
_LINE_LENGTH = 100
_SECONDS = {"seconds": 1, "minutes": 60, "hours": 3600, "days": 86400}


@dataclass(frozen=True, slots=True)
class DurationDefault:
    """A default that is created when it is used,
    because a ``Duration`` starts the CDK's process.
    """

    amount: int
    unit: Literal["seconds", "minutes", "hours", "days"]

    def __call__(self) -> Duration:
        """Return the duration."""
        return duration_of(self.amount * _SECONDS[self.unit])

    def __repr__(self) -> str:
        return f"Duration.{self.unit}({self.amount})"


def check_properties(
    callee: str,
    given: Mapping[str, Any],
    options: type,
    *,
    others: Sequence[str] = (),
    owner: str = "",
) -> None:
    """Check the names, types and limits of properties.

    ``others`` are the keyword arguments that ``callee`` takes besides ``options``. ``owner``
    precedes the name of a property in a message.

    Raises:
        TypeError: ``options`` declares no property of that name.
        InvalidValueError: a value has the wrong type or is outside its limit, or a required one is
            missing.
    """
    check_values(callee, given, options, others=others, check=partial(_check, owner))


def refuse_properties(given: Mapping[str, object], what: str) -> None:
    """Raise for a property that ``refused_properties.json`` has below ``what``,
    such as CloudFormation's.
    """
    for name, refused in _load("refused_properties")[what].items():
        if given.get(name) is not None:
            raise InvalidValueError(
                f"{name}: not supported on {what}, "
                f"because {refused['reason']}; {refused['instead']}"
            )


def _check(owner: str, value: Value, given: object) -> None:
    if given is None:
        return
    value = replace(value, name=f"{owner}{value.name}")
    if is_token(given):
        _check_token(value, given)
        return
    if not isinstance(value.limit, TextLimit):
        _check_type(value, given)
    value.check(_amount(value.name, given) if value.limit else None)


def _check_token(value: Value, given: object) -> None:
    """Check that a token can stand for a value: CloudFormation only knows text, numbers and lists.

    A token of another type, such as text for an ``InstanceType``, would be used as if it were one,
    and a ``bool`` would always be true.
    """
    if isinstance(given, Duration | Size) and type(given) in value.alternatives:
        check_unit(value.name, given, _unit(value))
        return
    if _takes_token(value.alternatives, given):
        return
    if isinstance(given, str) and float in value.alternatives:
        raise InvalidValueError(
            f"{value.name}: must be a number, got a string that is known only at deployment; "
            "write parameter.value_as_number, or cdk.Token.as_number(value)"
        )
    if bool in value.alternatives:
        raise InvalidValueError(
            f"{value.name}: must be known at synth, because it decides what the template contains, "
            "got a value that is known only at deployment; write True or False"
        )
    if float in value.alternatives:
        raise InvalidValueError(
            f"{value.name}: must be a number, got {shown(given)}; write cdk.Token.as_number(value)"
        )
    _check_type(value, given)
    from constructs_triton.cdk.validation.written_values import fix_of  # noqa: PLC0415 - for a message

    raise InvalidValueError(
        f"{value.name}: is of another type than {shown(given)} that was passed; "
        f"write {fix_of(value.example, given) or 'cdk.Token.as_string(value)'}"
    )


def _unit(value: Value) -> str:
    """The unit in which the template has an amount."""
    if Size in value.alternatives:
        return "mebibytes" if "mebibytes" in value.example else "gibibytes"
    return "minutes" if "minutes" in value.example else "seconds"


def _takes_token(alternatives: Sequence[Any], given: object) -> bool:
    """Whether a property of these types can have a token, which is a string, number or list."""
    if isinstance(given, str):
        return any(type_ is str or get_origin(type_) is Literal for type_ in alternatives)
    if isinstance(given, int | float):
        return float in alternatives or int in alternatives
    if isinstance(given, list):
        sequences = [type_ for type_ in alternatives if get_origin(type_) is Sequence]
        return any(str in get_args(sequence) for sequence in sequences)
    return False


def _amount(name: str, given: object) -> object:
    """The number that the limit of a duration or a size is about; other values as they are."""
    if isinstance(given, Duration):
        return whole_seconds(name, given)
    return whole_gibibytes(name, given) if isinstance(given, Size) else given


def _check_type(value: Value, given: object) -> None:
    for alternative in value.alternatives:
        if get_origin(alternative) is Literal:
            check_spelling(value.name, given, get_args(alternative))
            return
        if get_origin(alternative) is Sequence:
            _refuse_single(value, given, get_args(alternative)[0])
            check_type(value.name, given, (Sequence, f"[{value.example}]"))
            _check_entries(value, given, get_args(alternative)[0])
            return
    classes = tuple(each for each in map(_runtime_class, value.alternatives) if each)
    if classes:
        check_type(value.name, given, (classes, value.example))


def _runtime_class(annotation: Any) -> type | None:
    """The class to check for; ``None`` for a number, which the limit checks."""
    if annotation is float:
        return None
    return cast(type, get_origin(annotation) or annotation)


def _refuse_single(value: Value, given: object, annotation: Any) -> None:
    """Refuse one entry in place of a list, which people have at hand and need not write anew."""
    if not isinstance(given, str | Sequence) and is_instance(given, annotation):
        raise InvalidValueError(
            f"{value.name}: must be a list, got {shown(given)}; write it in brackets, "
            f"{value.name}=[...]"
        )


def _check_entries(value: Value, given: object, annotation: Any) -> None:
    if isinstance(given, str):
        raise InvalidValueError(
            f"{value.name}: must be a list, got {shown(given)}; write [{value.example}]"
        )
    for each in cast(Sequence[object], given):
        check_type(value.name, each, (annotation, value.example))


class _InitSignature:
    """Lets ``inspect.signature`` of a class be that of its ``__init__``,
    which jsii's metaclass hides.
    """

    def __get__(self, instance: object, owner: type) -> inspect.Signature:
        signature = inspect.signature(vars(owner).get("__init__") or getattr(owner, "__init__"))  # noqa: B009
        return signature.replace(parameters=list(signature.parameters.values())[1:])


def takes_properties(options: type, *, has_defaults: bool = True) -> Callable[[ClassT], ClassT]:
    """Document a class whose ``__init__`` has the parameter ``**options: Unpack[options]``.

    ``help()`` and ``inspect.signature`` then show each property with its type, default and meaning.
    ``has_defaults`` is whether a property that is not given has its declared default.
    """

    def decorate(cls: ClassT) -> ClassT:
        init: Any = vars(cls)["__init__"]
        init.__signature__ = signature_with(init, options, has_defaults=has_defaults)
        init.__checks_keywords_itself__ = (
            True  # a class may have a better hint for a property of another one
        )
        cls.__signature__ = _InitSignature()  # type: ignore[attr-defined] # read by inspect
        paragraphs = (_paragraph(each, has_defaults) for each in declared_values(options).values())
        cls.__doc__ = "\n".join([inspect.cleandoc(cls.__doc__ or ""), "", *paragraphs])
        return cls

    return decorate


def _paragraph(value: Value, has_defaults: bool) -> str:
    body = textwrap.fill(value.documentation(has_defaults), _LINE_LENGTH)
    return f"``{value.name}``\n{textwrap.indent(body, '    ')}"
