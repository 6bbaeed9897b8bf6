"""Any message of the schema survives the builder and its text format."""

from __future__ import annotations

import sys
from typing import Any, get_args, get_type_hints

import pytest
from google.protobuf import message_factory
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from triton_model_check.builder.typed_message import TypedMessage
from triton_model_check.model_config import ModelConfig
from triton_model_check.model_config.schema import new_model_config
from triton_model_check.model_config.text import format_model_config, parse_model_config

MESSAGE = new_model_config().DESCRIPTOR

# NaN is left out: it equals nothing, itself included.
SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "CPPTYPE_BOOL": st.booleans(),
    "CPPTYPE_DOUBLE": st.floats(allow_nan=False),
    "CPPTYPE_FLOAT": st.floats(width=32, allow_nan=False),
    "CPPTYPE_INT32": st.integers(-(2**31), 2**31 - 1),
    "CPPTYPE_INT64": st.integers(-(2**63), 2**63 - 1),
    "CPPTYPE_STRING": st.text(max_size=12),
    "CPPTYPE_UINT32": st.integers(0, 2**32 - 1),
    "CPPTYPE_UINT64": st.integers(0, 2**64 - 1),
}


def _scalars(field: Any) -> st.SearchStrategy[Any]:
    if field.enum_type:
        # Proto3 enums are open: a number without a name is a value too.
        return st.sampled_from(sorted(field.enum_type.values_by_number)) | st.integers(
            100, 2**31 - 1
        )
    kinds = {getattr(field, name): strategy for name, strategy in SCALARS.items()}
    return kinds[field.cpp_type]


def _repeated(field: Any) -> bool:
    known = getattr(field, "is_repeated", None)
    return bool(field.label == field.LABEL_REPEATED if known is None else known)


@st.composite
def messages(draw: st.DrawFn, descriptor: Any) -> Any:
    """A message with a few of its fields, each of any value that the field can hold."""
    message = message_factory.GetMessageClass(descriptor)()
    for name in draw(
        st.lists(
            st.sampled_from([f.name for f in descriptor.fields] or [""]), unique=True, max_size=5
        )
    ):
        if name:
            _draw_field(draw, message, descriptor.fields_by_name[name])
    return message


def _draw_field(draw: st.DrawFn, message: Any, field: Any) -> None:
    count = draw(st.integers(0, 3)) if _repeated(field) else 1
    for _ in range(count):
        if field.message_type and field.message_type.GetOptions().map_entry:
            _draw_entry(draw, getattr(message, field.name), field.message_type.fields_by_name)
        elif field.message_type and _repeated(field):
            getattr(message, field.name).append(draw(messages(field.message_type)))
        elif field.message_type:
            getattr(message, field.name).SetInParent()
            getattr(message, field.name).MergeFrom(draw(messages(field.message_type)))
        elif _repeated(field):
            getattr(message, field.name).append(draw(_scalars(field)))
        else:
            setattr(message, field.name, draw(_scalars(field)))


def _draw_entry(draw: st.DrawFn, entries: Any, fields: Any) -> None:
    key = draw(_scalars(fields["key"]))
    if fields["value"].message_type:
        entries[key].MergeFrom(draw(messages(fields["value"].message_type)))
    else:
        entries[key] = draw(_scalars(fields["value"]))


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(messages(MESSAGE))
def test_message_survives_builder_and_text(message: Any) -> None:
    """Reading a message into the builder, writing it as text and reading that
    again changes nothing.
    """
    typed = ModelConfig.from_message(message)
    assert typed.to_message() == message
    text = typed.to_text()
    again = parse_model_config(text)
    assert again.SerializeToString(deterministic=True) == message.SerializeToString(
        deterministic=True
    )
    assert format_model_config(again) == text
    assert ModelConfig.from_text(text) == typed


def _all_messages() -> list[Any]:
    found: dict[str, Any] = {}
    waiting = [MESSAGE]
    while waiting:
        descriptor = waiting.pop()
        if descriptor.full_name not in found:
            found[descriptor.full_name] = descriptor
            waiting += [field.message_type for field in descriptor.fields if field.message_type]
    return [found[name] for name in sorted(found) if not found[name].GetOptions().map_entry]


@pytest.mark.parametrize(
    "field",
    [field for message in _all_messages() for field in message.fields if field.enum_type],
    ids=lambda field: field.full_name,
)
def test_every_enum_has_its_values(field: Any) -> None:
    """The type of every enum field lists the enum's values by name."""
    cls = TypedMessage._CLASSES[field.containing_type.full_name]
    hint = {"__annotations__": {field.name: cls.__annotations__[field.name]}}
    literal = get_type_hints(type("Field", (), hint), vars(sys.modules[cls.__module__]))[field.name]
    assert set(get_args(literal)) == set(field.enum_type.values_by_name)
