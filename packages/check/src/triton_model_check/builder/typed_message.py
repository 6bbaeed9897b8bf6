"""Converts typed values to and from the protobuf messages of the same name.

The fields have the names of ``model_config.proto``, and the descriptors say how each is written, so
the classes only declare fields. No part of a message is lost: ``extra`` keeps, as text, whatever a
class has no field for, such as an enum number without a name or a field of another version's
schema.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, ClassVar, Self, dataclass_transform

from constructs_triton_core.datatypes import by_datatype
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.spelling import did_you_mean
from triton_model_check.model_config.schema import message_class

_PACKAGE = "inference"


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(field,))
@dataclass(frozen=True, kw_only=True, repr=False)
class TypedMessage:
    """A message of ``model_config.proto`` as a frozen value.

    Args:
        extra: Further fields in the syntax of ``config.pbtxt``, which this class does not have.
    """

    extra: str = ""

    _CLASSES: ClassVar[dict[str, type[TypedMessage]]] = {}

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True, kw_only=True, repr=False)(cls)
        TypedMessage._CLASSES[f"{_PACKAGE}.{cls.__qualname__}"] = cls

    def __post_init__(self) -> None:
        for attribute, descriptor in self._described():
            object.__setattr__(self, attribute, _frozen(descriptor, getattr(self, attribute)))
        self.to_message()

    def __repr__(self) -> str:
        values = ((name, getattr(self, name), default) for name, default in _defaults(type(self)))
        given = (f"{name}={value!r}" for name, value, default in values if value != default)
        return f"{type(self).__qualname__}({', '.join(given)})"

    @classmethod
    def from_message(cls, message: Any) -> Self:
        """Return the value of a protobuf message, complete and without checks.

        Args:
            message: Message of Triton's protobuf schema, of the type with the same name.
        """
        typed = object.__new__(cls)
        rest = type(message)()
        rest.CopyFrom(message)
        for name, default in _defaults(cls):
            object.__setattr__(typed, name, default)
        for attribute, descriptor in typed._described():
            if _is_expressible(message, descriptor):
                object.__setattr__(typed, attribute, _read(message, descriptor))
                rest.ClearField(descriptor.name)
        object.__setattr__(typed, "extra", _text(rest))
        return typed

    def to_message(self) -> Any:
        """Return a new protobuf message with the same content.

        Raises:
            InvalidValueError: a value does not fit its field.
        """
        message = message_class(type(self).__qualname__)()
        self._raise_for_two_choices(message.DESCRIPTOR)
        for attribute, descriptor in self._described():
            value = getattr(self, attribute)
            if value is not None:
                _assign(message, descriptor, value)
        if self.extra:
            message.MergeFrom(_parsed(self.extra, type(message), type(self).__qualname__))
        return message

    def _described(self) -> Iterator[tuple[str, Any]]:
        """Yield attributes with the descriptor of their field;
        ``global_`` is the field ``global``.
        """
        known = message_class(type(self).__qualname__).DESCRIPTOR.fields_by_name
        for item in fields(type(self)):
            if item.name != "extra":
                yield item.name, known[item.name.rstrip("_")]

    def _raise_for_two_choices(self, descriptor: Any) -> None:
        """Raise ``InvalidValueError`` if several fields of a oneof are set."""
        for choice in descriptor.oneofs:
            names = [
                item.name for item in choice.fields if getattr(self, item.name, None) is not None
            ]
            if len(names) > 1:
                raise InvalidValueError(
                    f"{type(self).__qualname__}: only one field of {choice.name} can be set, "
                    f"got {' and '.join(names)}; remove all but one"
                )


def _defaults(cls: type[TypedMessage]) -> Iterator[tuple[str, Any]]:
    for item in fields(cls):
        factory = item.default_factory
        yield item.name, item.default if factory is MISSING else factory()


# --- shapes of fields -----------------------------------------------------------------------------


def _is_repeated(descriptor: Any) -> bool:
    # protobuf 6.31 added is_repeated, and warns about label.
    known = getattr(descriptor, "is_repeated", None)
    return bool(descriptor.label == descriptor.LABEL_REPEATED if known is None else known)


def _is_map(descriptor: Any) -> bool:
    return bool(descriptor.message_type and descriptor.message_type.GetOptions().map_entry)


def _place(descriptor: Any) -> str:
    owner: str = descriptor.containing_type.full_name.removeprefix(f"{_PACKAGE}.")
    return f"{owner}.{descriptor.name}"


def _error(descriptor: Any, wrong: str, got: Any, hint: str) -> InvalidValueError:
    return InvalidValueError(f"{_place(descriptor)}: {wrong}, got {got!r}; {hint}")


def _frozen(descriptor: Any, value: Any) -> Any:
    """Lists as tuples and mappings as copies, so that the caller may change the originals."""
    if _is_map(descriptor):
        if not isinstance(value, Mapping):
            raise _error(descriptor, "must be a mapping", value, "write {name: value}")
        return dict(value)
    if _is_repeated(descriptor):
        if isinstance(value, str | bytes | TypedMessage | Mapping) or not isinstance(
            value, Iterable
        ):
            raise _error(descriptor, "must be a list", value, "put it in brackets")
        return tuple(value)
    return value


# --- values into a message ------------------------------------------------------------------------


def _assign(message: Any, descriptor: Any, value: Any) -> None:
    """Set a field of a message to a value of Python."""
    name = descriptor.name
    if _is_map(descriptor):
        _assign_map(getattr(message, name), descriptor, value)
    elif _is_repeated(descriptor):
        _assign_list(getattr(message, name), descriptor, value)
    elif descriptor.message_type:
        getattr(message, name).SetInParent()
        getattr(message, name).MergeFrom(_as_message(descriptor, value))
    else:
        with _Fitting(descriptor, value):
            setattr(message, name, _as_scalar(descriptor, value))


def _assign_map(container: Any, descriptor: Any, mapping: Mapping[Any, Any]) -> None:
    value_of = descriptor.message_type.fields_by_name["value"]
    for key, value in mapping.items():
        with _Fitting(descriptor, {key: value}):
            if value_of.message_type:
                container[key].MergeFrom(_as_message(value_of, value, descriptor))
            else:
                container[key] = value


def _assign_list(container: Any, descriptor: Any, items: Iterable[Any]) -> None:
    for item in items:
        with _Fitting(descriptor, item):
            if descriptor.message_type:
                container.add().MergeFrom(_as_message(descriptor, item))
            else:
                container.append(_as_scalar(descriptor, item))


class _Fitting:
    """Turns protobuf's error about a value into ``InvalidValueError``."""

    def __init__(self, descriptor: Any, value: Any) -> None:
        self._descriptor, self._value = descriptor, value

    def __enter__(self) -> None:
        return None

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, TypeError | ValueError) and not isinstance(error, InvalidValueError):
            hint = f"pass a value that fits {_kind(self._descriptor)}"
            raise _error(self._descriptor, "does not fit its field", self._value, hint) from error


def _kind(descriptor: Any) -> str:
    known = {
        name[5:].lower(): number
        for name, number in vars(type(descriptor)).items()
        if name[:5] == "TYPE_"
    }
    named = next((name for name, number in known.items() if number == descriptor.type), "the field")
    return f"a map of {_place(descriptor)}" if _is_map(descriptor) else named


def _as_scalar(descriptor: Any, value: Any) -> Any:
    """Return a value as protobuf accepts it in a field that is no message."""
    if descriptor.enum_type:
        return _enum_number(descriptor, value)
    if isinstance(value, bool) and descriptor.cpp_type != descriptor.CPPTYPE_BOOL:
        raise _error(
            descriptor,
            "does not fit its field",
            value,
            f"pass a value that fits {_kind(descriptor)}",
        )
    return value


def _enum_number(descriptor: Any, name: Any) -> int:
    """Return the number of a value of an enum by its name."""
    values = descriptor.enum_type.values_by_name
    if name in values:
        return int(values[name].number)
    on_the_wire = by_datatype(str(name))
    hint = (
        f'write "{on_the_wire.data_type}"'
        if on_the_wire and on_the_wire.data_type in values
        else did_you_mean(str(name), values, f"write one of {', '.join(values)}")
    )
    raise _error(descriptor, f"{descriptor.enum_type.name} has no value with this name", name, hint)


def _as_message(descriptor: Any, value: Any, place: Any = None) -> Any:
    """Return a value of Python as a message."""
    cls = TypedMessage._CLASSES.get(descriptor.message_type.full_name)
    if cls is not None and isinstance(value, cls):
        return value.to_message()
    if descriptor.message_type.name == "ModelParameter" and isinstance(value, str):
        return message_class("ModelParameter")(string_value=value)
    wanted = (
        "a string"
        if descriptor.message_type.name == "ModelParameter"
        else f"a {cls and cls.__qualname__}"
    )
    raise _error(place or descriptor, f"must be {wanted}", value, f"pass {wanted}")


# --- values out of a message ----------------------------------------------------------------------


def _is_expressible(message: Any, descriptor: Any) -> bool:
    """Whether a field of a message has a typed class, so that Python code can set it."""
    if descriptor.enum_type:
        return getattr(message, descriptor.name) in descriptor.enum_type.values_by_number
    inner = descriptor.message_type
    if inner and _is_map(descriptor):
        inner = inner.fields_by_name["value"].message_type
    return (
        inner is None or inner.name == "ModelParameter" or inner.full_name in TypedMessage._CLASSES
    )


def _read(message: Any, descriptor: Any) -> Any:
    """Return the value of a field as Python code writes it; ``None`` if it is not set."""
    value = getattr(message, descriptor.name)
    if _is_map(descriptor):
        return {
            key: _value(descriptor.message_type.fields_by_name["value"], value[key])
            for key in value
        }
    if _is_repeated(descriptor):
        return tuple(_value(descriptor, item) for item in value)
    if descriptor.has_presence and not message.HasField(descriptor.name):
        return None
    return _value(descriptor, value)


def _value(descriptor: Any, value: Any) -> Any:
    if descriptor.enum_type:
        return descriptor.enum_type.values_by_number[value].name
    if not descriptor.message_type:
        return value
    if descriptor.message_type.name == "ModelParameter":
        return value.string_value
    return TypedMessage._CLASSES[descriptor.message_type.full_name].from_message(value)


# --- extra ----------------------------------------------------------------------------------------


def _text(message: Any) -> str:
    from google.protobuf import text_format

    return str(text_format.MessageToString(message, as_utf8=True)).strip("\n")


def _parsed(text: str, message_class: Any, owner: str) -> Any:
    """Return the message that a text in the syntax of ``config.pbtxt`` describes."""
    from google.protobuf import text_format

    try:
        return text_format.Parse(text, message_class())
    except (text_format.ParseError, ValueError, TypeError) as error:
        raise InvalidValueError(
            f"{owner}.extra: cannot be parsed ({error}), got {text!r}; "
            "use the syntax of config.pbtxt"
        ) from error
