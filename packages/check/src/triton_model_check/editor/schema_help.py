"""What Triton's schema says of a field and its values: hover texts and completions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from triton_model_check import model_config
from triton_model_check.model_config.schema import message_class

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor

_COMMENTS = "model_config_comments.json"
_PACKAGE = "inference."
# As protobuf numbers them, FieldDescriptor.TYPE_*.
_TYPES = {
    1: "double",
    2: "float",
    3: "int64",
    4: "uint64",
    5: "int32",
    8: "bool",
    9: "string",
    13: "uint32",
}
_BOOL = 8
_STRING = 9


class Proposal(NamedTuple):
    """A completion: what is shown, what is written, and the comment of the schema.

    ``$0`` in ``snippet`` is where the cursor goes.
    """

    label: str
    detail: str
    comment: str
    snippet: str

    @property
    def plain(self) -> str:
        """What is written by an editor that has no snippets."""
        text = re.sub(r"(?<!\\)\$\d", "", self.snippet)
        return text.replace("\\$", "$").rstrip(" ")


def message_at(names: Sequence[str]) -> Descriptor | None:
    """Return the message that fields lead to from the top of a configuration, or ``None``."""
    message: Descriptor | None = message_class("ModelConfig").DESCRIPTOR
    for name in names:
        field = None if message is None else message.fields_by_name.get(name)
        if field is None or field.message_type is None:
            return None
        message = field.message_type
    return message


def field_at(names: Sequence[str]) -> FieldDescriptor | None:
    """Return the field that names lead to from the top of a configuration, or ``None``."""
    message = message_at(names[:-1])
    return None if message is None or not names else message.fields_by_name.get(names[-1])


def describe_field(field: FieldDescriptor) -> str:
    """Return the name, the type, the comment and the values of a field, as Markdown."""
    paragraphs = [f"`{field.name}`: {_type_of(field)}", _markdown(_comment(field.full_name))]
    if field.enum_type is not None:
        paragraphs.append(_values_of(field.enum_type))
    if field.containing_oneof is not None:
        others = [each.name for each in field.containing_oneof.fields if each.name != field.name]
        paragraphs.append("Excludes " + ", ".join(f"`{name}`" for name in others) + ".")
    return "\n\n".join(filter(None, paragraphs))


def describe_value(field: FieldDescriptor, value: str) -> str:
    """Return the comment of a value of an enum, as Markdown; "" if there is none."""
    enum = field.enum_type
    if enum is None or value not in enum.values_by_name:
        return ""
    comment = _comment(_value_name(enum, value))
    return f"`{value}`\n\n{_markdown(comment)}" if comment else ""


def propose_fields(message: Descriptor, present: Sequence[str]) -> Iterator[Proposal]:
    """Yield the fields that a message can have besides those that are present."""
    for field in message.fields:
        if field.name in present and not _is_repeated(field):
            continue
        yield Proposal(field.name, _type_of(field), _comment(field.full_name), _snippet_of(field))


def propose_values(field: FieldDescriptor) -> Iterator[Proposal]:
    """Yield the values that a field can have; none if they are numbers or strings."""
    if field.enum_type is not None:
        for value in field.enum_type.values:
            comment = _comment(_value_name(field.enum_type, value.name))
            yield Proposal(value.name, field.enum_type.name, comment, value.name)
    elif field.type == _BOOL:
        for word in ("true", "false"):
            yield Proposal(word, "bool", "", word)


@cache
def _comments() -> dict[str, str]:
    content = (Path(model_config.__file__).parent / _COMMENTS).read_text("utf-8")
    comments: dict[str, str] = json.loads(content)
    return comments


def _comment(full_name: str) -> str:
    return _comments().get(full_name.removeprefix(_PACKAGE), "")


def _value_name(enum: EnumDescriptor, value: str) -> str:
    """Return the name of a value below its enum, which protobuf puts beside it."""
    return f"{enum.full_name}.{value}"


def _markdown(comment: str) -> str:
    """Return a comment whose angle brackets are no HTML."""
    return comment.replace("<", "\\<")


def _values_of(enum: EnumDescriptor) -> str:
    """Return the values of an enum, each with its comment if it has one."""
    comments = {each.name: _comment(_value_name(enum, each.name)) for each in enum.values}
    if not any(comments.values()):
        return "One of " + ", ".join(f"`{name}`" for name in comments) + "."
    lines = []
    for name, comment in comments.items():
        text = " ".join(_markdown(comment).split())
        lines.append(f"- `{name}`: {text}" if text else f"- `{name}`")
    return "\n".join(lines)


def _type_of(field: FieldDescriptor) -> str:
    """Return the type of a field as the schema writes it, such as ``repeated ModelInput``."""
    message = field.message_type
    if message is not None and message.GetOptions().map_entry:
        key, value = (message.fields_by_name[name] for name in ("key", "value"))
        return f"map<{_type_of(key)}, {_type_of(value)}>"
    if message is not None:
        name = message.full_name.removeprefix(_PACKAGE)
    elif field.enum_type is not None:
        name = field.enum_type.full_name.removeprefix(_PACKAGE)
    else:
        name = _TYPES.get(field.type, "number")
    return f"repeated {name}" if _is_repeated(field) else name


def _is_repeated(field: FieldDescriptor) -> bool:
    return isinstance(field.default_value, list)


def _snippet_of(field: FieldDescriptor) -> str:
    """Return how a field is written, with ``$0`` in place of its value."""
    message = field.message_type
    if message is not None and message.GetOptions().map_entry:
        is_text = message.fields_by_name["value"].type == _STRING
        value = 'value: "$2"' if is_text else "value { $0 }"
        return f'{field.name} {{\n  key: "$1"\n  {value}\n}}'
    if message is not None and _is_repeated(field):
        return f"{field.name} [\n  {{\n    $0\n  }}\n]"
    if message is not None:
        return f"{field.name} {{\n  $0\n}}"
    value = '"$0"' if field.type == _STRING else "$0"
    return f"{field.name}: [ {value} ]" if _is_repeated(field) else f"{field.name}: {value}"
