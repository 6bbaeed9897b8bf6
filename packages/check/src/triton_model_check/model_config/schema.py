"""Triton's schema of ``config.pbtxt``.

``model_config.binpb`` is the descriptor of Triton's ``model_config.proto``, with its license beside
it. ``make facts-refresh`` copies both from tritonclient. The schema has a descriptor pool of its
own, so that a process can also import a tritonclient with another version of the schema.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from triton_model_check.model_files.varint import encode_varint

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, FieldDescriptor
    from google.protobuf.descriptor_pool import DescriptorPool

__all__ = ["data_type_name", "field_names", "message_class", "new_model_config", "read_plain"]

_PACKAGE = "inference"
_DESCRIPTOR = "model_config.binpb"


@cache
def message_class(name: str) -> Any:
    """Return the protobuf class of a message of the schema, such as ``ModelWarmup.Input``."""
    descriptor = _pool().FindMessageTypeByName(f"{_PACKAGE}.{name}")
    code = _c_code()
    if code is None:
        from google.protobuf import message_factory

        return message_factory.GetMessageClass(descriptor)
    from google.protobuf.message import Message

    # As GetMessageClass. Messages in messages get their class on first use.
    known = getattr(descriptor, "_concrete_class", None)
    return known or code.MessageMeta(
        name, (Message,), {"DESCRIPTOR": descriptor, "__module__": None}
    )


def new_model_config() -> Any:
    """Return an empty ``inference.ModelConfig`` message."""
    return message_class("ModelConfig")()


def field_names(message_name: str) -> list[str]:
    """Return the names of a message's fields; none if the schema has no such message."""
    try:
        return [
            field.name
            for field in _pool().FindMessageTypeByName(f"{_PACKAGE}.{message_name}").fields
        ]
    except KeyError:
        return []


@cache
def enum_values(enum_name: str) -> dict[int, str]:
    """Return the names of an enum's values by their numbers."""
    values = _pool().FindEnumTypeByName(f"{_PACKAGE}.{enum_name}").values
    return {value.number: value.name for value in values}


def data_type_name(number: int) -> str:
    """Return the name of a ``DataType`` value such as ``TYPE_FP32``,
    or the number if it has no name.
    """
    return enum_values("DataType").get(number, str(number))


@cache
def _pool() -> DescriptorPool:
    """Return the messages of the model configuration, in C++ code if it is there."""
    code = _c_code()
    if code is None:
        from google.protobuf.descriptor_pool import DescriptorPool

        pool = DescriptorPool()
    else:
        pool = code.DescriptorPool()
    pool.AddSerializedFile(Path(__file__).with_name(_DESCRIPTOR).read_bytes())
    return pool


@cache
def _c_code() -> Any:
    """Return protobuf's C code, ``None`` if it is not there.

    The modules in Python around it take 15 ms to import, and only unusual configurations need them.
    """
    from google.protobuf.internal import api_implementation

    code = getattr(api_implementation, "_c_module", None)
    return code if api_implementation.Type() == "upb" and hasattr(code, "MessageMeta") else None


# --- plain texts ----------------------------------------------------------------------------------

_TOKEN = re.compile(
    r"""\"[^\"\\\x00-\x1f]*\"|'[^'\\\x00-\x1f]*'|[\w.+-]+|\#[^\n\0]*|[^ \t\n\r\v\f]"""
)
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,19}")
# By the type of the field, as protobuf numbers it: int64, uint64, int32, uint32.
_RANGES = {3: range(-(2**63), 2**63), 4: range(2**64), 5: range(-(2**31), 2**31), 13: range(2**32)}

_Read = Callable[[str, list[str]], bytes]
"""Takes the first token of a value and those after it, the last one first;
returns it as protobuf's bytes.
"""


class _PlainField(NamedTuple):
    """How a field is read. A message has at most one field of a ``choice``,
    unless it is repeated.
    """

    tag: bytes
    read: _Read
    is_repeated: bool
    is_message: bool
    choice: str


def read_plain(text: str) -> Any:
    """Read a configuration several times as fast as protobuf's parser, or return ``None`` if it is
    unusual.

    The text is written as protobuf's bytes, which C code reads. Unusual are errors, escapes,
    numbers with a fraction, characters outside ASCII, and all else that few people write.
    """
    if not text.isascii():
        return None
    tokens = [token for token in _TOKEN.findall(text) if token[0] != "#"]
    tokens.append("")
    tokens.reverse()
    kind = message_class("ModelConfig")
    try:
        return kind.FromString(_content(tokens, _plain_fields(kind.DESCRIPTOR), ""))
    except (LookupError, ValueError):
        return None


def _content(tokens: list[str], fields: Mapping[str, _PlainField], end: str) -> bytes:
    """Read the fields of a message. Raises LookupError or ValueError if the text is unusual."""
    parts: list[bytes] = []
    seen: set[str] = set()
    while (name := tokens.pop()) != end:
        tag, read, is_repeated, is_message, choice = fields[name]
        token = tokens.pop()
        if token == ":":
            token = tokens.pop()
        elif not is_message:
            raise ValueError(token)
        if is_repeated and token == "[":
            parts += _elements(tokens, tag, read)
        elif choice in seen:
            raise ValueError(name)
        else:
            parts += (tag, read(token, tokens))
        if not is_repeated:
            seen.add(choice)
        if tokens[-1] in (",", ";"):
            tokens.pop()
    return b"".join(parts)


def _elements(tokens: list[str], tag: bytes, read: _Read) -> Iterator[bytes]:
    """Yield the encoded elements of a list up to its end."""
    token = tokens.pop()
    while token != "]":
        yield tag
        yield read(token, tokens)
        sign, token = tokens.pop(), tokens[-1]
        if sign == "]":
            return
        if sign != "," or token == "]":
            raise ValueError(sign)
        tokens.pop()


@cache
def _plain_fields(message: Descriptor) -> dict[str, _PlainField]:
    """Return how to read and encode each field of a message."""
    found = {}
    for field in message.fields:
        read, wire_type = _reader(field)
        choice = field.containing_oneof.name if field.containing_oneof else field.name
        tag = encode_varint(field.number << 3 | wire_type)
        is_repeated = isinstance(field.default_value, list)
        found[field.name] = _PlainField(
            tag, read, is_repeated, field.message_type is not None, choice
        )
    return found


def _reader(field: FieldDescriptor) -> tuple[_Read, int]:
    """Return what reads the values of a field, and its wire type."""
    if field.message_type is not None:
        return partial(_read_message, field.message_type), 2
    if field.type == field.TYPE_STRING:
        return _read_string, 2
    if field.type == field.TYPE_BOOL:
        return partial(_read_name, {"false": b"\0", "true": b"\1"}), 0
    if field.enum_type is not None:
        values = field.enum_type.values
        return partial(_read_name, {each.name: encode_varint(each.number) for each in values}), 0
    return partial(_read_integer, _RANGES.get(field.type, range(0))), 0  # other types are unusual


def _read_message(message: Descriptor, token: str, tokens: list[str]) -> bytes:
    if token != "{":
        raise ValueError(token)
    content = _content(tokens, _plain_fields(message), "}")
    return encode_varint(len(content)) + content


def _read_string(token: str, tokens: list[str]) -> bytes:
    # Two strings after each other are one, which the fast reader leaves to the other one.
    if token[0] not in "\"'" or len(token) < 2 or tokens[-1][:1] in ("'", '"'):
        raise ValueError(token)
    return encode_varint(len(token) - 2) + token[1:-1].encode()


def _read_name(values: Mapping[str, bytes], token: str, _: list[str]) -> bytes:
    return values[token]


def _read_integer(allowed: range, token: str, _: list[str]) -> bytes:
    if not _INTEGER.fullmatch(token) or int(token) not in allowed:
        raise ValueError(token)
    return encode_varint(int(token) % 2**64)
