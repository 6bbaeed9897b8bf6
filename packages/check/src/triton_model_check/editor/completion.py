"""What can be written at a place of a ``config.pbtxt``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from triton_model_check.editor.ensemble_names import EnsembleNames, block_at
from triton_model_check.editor.model_files import ModelFile
from triton_model_check.editor.outline import Cursor, Outline, cursor_at
from triton_model_check.editor.schema_help import (
    Proposal,
    field_at,
    message_at,
    propose_fields,
    propose_values,
)
from triton_model_check.model_config.locations import Span


class Completion(NamedTuple):
    """Proposals, and the word that each of them replaces."""

    proposals: tuple[Proposal, ...]
    span: Span
    is_value: bool


def complete(text: str, offset: int, file: ModelFile | None = None) -> Completion | None:
    """Return what can be written at an offset of a configuration; ``None`` in a comment.

    Args:
        text: Text of the configuration, which need not parse.
        offset: Where the cursor is.
        file: The model, whose ensemble may name others. Default: it is in no repository.
    """
    cursor = cursor_at(text, offset)
    if cursor is None:
        return None
    if cursor.field is not None:
        values = tuple(_values(cursor, text, file))
        return Completion(values, cursor.span, is_value=True)
    if cursor.is_in_string:
        return None

    message = message_at(cursor.block.names)
    if message is None:
        return None
    present = _names_beside(cursor, text)
    return Completion(tuple(propose_fields(message, present)), cursor.span, is_value=False)


def _values(cursor: Cursor, text: str, file: ModelFile | None) -> Iterator[Proposal]:
    """Yield the values that the field at the cursor can have."""
    assert cursor.field is not None
    name = cursor.field.name
    field = field_at((*cursor.block.names, name))
    if field is not None and not cursor.is_in_string:
        yield from propose_values(field)
    if file is None:
        return
    for possible in EnsembleNames(file, text).possible(cursor.block, name):
        written = possible if cursor.is_in_string else f'"{possible}"'
        yield Proposal(possible, name, "", written.replace("$", "\\$"))


def _names_beside(cursor: Cursor, text: str) -> list[str]:
    """Return the names of the other fields of the message at the cursor."""
    block = block_at(Outline(text), cursor.block.start) or cursor.block
    return [field.name for field in block.fields if field.name_span != cursor.span]
