"""The text of every field that the parser reads is found, and can be removed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from check_examples import EXAMPLES
from google.protobuf.message import Message

from triton_model_check.model_config.locations import FieldPath, Locations
from triton_model_check.model_config.text import read_text_fault

TEXTS = {
    content if isinstance(content, str) else bytes(content).decode("utf-8", "replace")
    for example in EXAMPLES.values()
    for files in (example.failing, example.fixed)
    for path, content in files.items()
    if path.endswith("config.pbtxt") and isinstance(content, str | bytes)
}


def _paths(message: Any, base: FieldPath = ()) -> Iterator[FieldPath]:
    """Yield the path of each field, element and entry of a map."""
    for field, value in message.ListFields():
        here = (*base, field.name)
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            yield from ((*here, str(key)) for key in value)
        elif isinstance(value, str | bytes | int | float | Message):
            yield from _with_inner(value, here)
        else:
            for index, element in enumerate(value):
                yield from _with_inner(element, (*here, index))


def _with_inner(value: Any, path: FieldPath) -> Iterator[FieldPath]:
    yield path
    if isinstance(value, Message):
        yield from _paths(value, path)


@pytest.mark.parametrize("text", sorted(TEXTS), ids=range(len(TEXTS)))
def test_text_without_a_field_is_parsed(text: str) -> None:
    """Every field of a configuration has its statement; the rest of the text parses without it."""
    message, _ = read_text_fault(text)
    locations = Locations(text)
    for path in () if message is None else _paths(message):
        spans = locations.spans(path)
        assert spans is not None, path
        start, end = spans.statement
        assert read_text_fault(text[:start] + text[end:])[1] is None, path
