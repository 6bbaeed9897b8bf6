"""The fields of a ``config.pbtxt`` that a person is typing, which need not be complete.

``model_config.locations`` has the places of a text that parses. This outline also has those of a
text that does not: a field without a value, a bracket that is not closed yet. It takes one step for
each word, and blocks in blocks take no stack.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from triton_model_check.model_config.locations import TOKEN, Span
from triton_model_check.model_config.text import MAX_PIECES
from triton_model_check.untrusted.limits import MAX_TEXT_BYTES

_OPENING = ("{", "<")
_CLOSING = ("}", ">")
_SEPARATORS = (",", ";")
_QUOTES = ('"', "'")


class Scalar(NamedTuple):
    """A value that is no message: its text without quotes, and its place with them."""

    text: str
    span: Span
    is_string: bool


@dataclass(eq=False, slots=True)
class Field:
    """One statement: the name of a field, and its values so far."""

    name: str
    name_span: Span
    block: Block
    scalars: list[Scalar] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class Block:
    """The content of a message, from after its opening bracket to before the closing one."""

    start: int
    parent: Field | None = None
    end: int | None = None
    fields: list[Field] = field(default_factory=list)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the fields around the content, from the top of the configuration."""
        found: list[str] = []
        parent = self.parent
        while parent is not None:
            found.append(parent.name)
            parent = parent.block.parent
        return tuple(reversed(found))

    def all(self, name: str) -> Iterator[Field]:
        """Yield the fields of a name."""
        return (each for each in self.fields if each.name == name)

    def blocks(self, name: str) -> Iterator[Block]:
        """Yield the messages of the fields of a name."""
        for each in self.all(name):
            yield from each.blocks

    def scalar(self, name: str) -> Scalar | None:
        """Return the last value of a field, or ``None``."""
        found = None
        for each in self.all(name):
            found = each.scalars[-1] if each.scalars else found
        return found


class Cursor(NamedTuple):
    """What is at an offset: the message around it, and the field if its value is there.

    ``word`` is what is written before the offset, ``span`` the place of the whole word; of a string
    both are without quotes.
    """

    block: Block
    field: Field | None
    word: str
    span: Span
    is_in_string: bool = False


class Outline:
    """The fields of one text; of one that is too large for a configuration, none."""

    def __init__(self, text: str) -> None:
        self.root = Block(0)
        if len(text) > MAX_TEXT_BYTES:
            return
        reader = _Reader(self.root)
        for match in _tokens(text):
            reader.take(match.group(), match.span())

    def fields(self) -> Iterator[Field]:
        """Yield all fields, those of messages in messages too."""
        waiting = [self.root]
        while waiting:
            block = waiting.pop()
            for each in block.fields:
                yield each
                waiting += each.blocks


def cursor_at(text: str, offset: int) -> Cursor | None:
    """Return what is at an offset; ``None`` in a comment, and in a text that is too large."""
    if len(text) > MAX_TEXT_BYTES:
        return None

    reader = _Reader(Block(0))
    for match in _tokens(text):
        start, end = match.span()
        token = match.group()
        if start >= offset:
            break
        if end > offset or (end == offset and _may_continue(token)):
            return reader.cursor_in(token, start, end, offset)
        reader.take(token, (start, end))
    return Cursor(reader.block, reader.awaited, "", (offset, offset))


def _tokens(text: str) -> Iterator[re.Match[str]]:
    """Yield the tokens of a text, up to the bound of a configuration that is parsed."""
    return islice(TOKEN.finditer(text), MAX_PIECES)


def _may_continue(token: str) -> bool:
    """Whether what is typed after a token belongs to it."""
    if token[0] in _QUOTES:
        return not _is_closed(token)
    return token[0] == "#" or _is_word(token)


def _is_closed(string: str) -> bool:
    return len(string) > 1 and string[-1] == string[0]


def _is_word(token: str) -> bool:
    return token[0].isalnum() or token[0] in "_-."


class _Reader:
    """Reads tokens, and knows in which message and which field it is."""

    def __init__(self, root: Block) -> None:
        self.block = root
        self._field: Field | None = None
        self._has_colon = False
        self._is_in_list = False
        # The fields around the message, and whether it is an element of a list.
        self._around: list[tuple[Field, bool]] = []

    @property
    def awaited(self) -> Field | None:
        """The field whose value comes next."""
        if self._field is None or self._is_in_list:
            return self._field
        has_value = self._field.scalars or self._field.blocks
        return self._field if self._has_colon and not has_value else None

    def cursor_in(self, token: str, start: int, end: int, offset: int) -> Cursor | None:
        """Return the cursor at an offset in a token that was not read."""
        if token[0] == "#":
            return None
        if token[0] in _QUOTES:
            # A string that is not closed ends with its line, so what comes after it is not its own.
            inner_end = end - 1 if _is_closed(token) else offset
            word = token[1 : offset - start]
            return Cursor(self.block, self.awaited, word, (start + 1, inner_end), True)
        if not _is_word(token):
            return Cursor(self.block, self.awaited, "", (offset, offset))
        return Cursor(self.block, self.awaited, token[: offset - start], (start, end))

    def take(self, token: str, span: Span) -> None:
        """Read the next token."""
        if token[0] == "#":
            return
        if token in _OPENING:
            self._open(span)
        elif token in _CLOSING:
            self._close(span)
        elif token == "[":
            self._read_last_word_as_name()
            self._is_in_list = self._field is not None
        elif token == "]":
            self._end_statement()
        elif token == ":":
            self._read_last_word_as_name()
            self._has_colon = self._field is not None
        elif token not in _SEPARATORS:
            self._take_word(token, span)
        elif not self._is_in_list:
            self._end_statement()

    def _take_word(self, token: str, span: Span) -> None:
        is_string = token[0] in _QUOTES
        scalar = Scalar(token.strip("\"'"), span, is_string)
        if self._field is None:
            if not is_string:
                self._start(token, span)
            return

        last = self._field.scalars[-1] if self._field.scalars else None
        if self._is_in_list or (last is None and (self._has_colon or is_string)):
            self._field.scalars.append(scalar)
        elif last is not None and last.is_string and is_string:
            # Strings after each other are one.
            joined = Scalar(last.text + scalar.text, (last.span[0], span[1]), True)
            self._field.scalars[-1] = joined
        elif not is_string:
            self._start(token, span)

    def _start(self, name: str, span: Span) -> Field:
        self._end_statement()
        self._field = Field(name, span, self.block)
        self.block.fields.append(self._field)
        return self._field

    def _end_statement(self) -> None:
        self._field = None
        self._has_colon = False
        self._is_in_list = False

    def _read_last_word_as_name(self) -> None:
        """Read ``backend: input {`` as a field without a value, and the next field."""
        scalars = self._field.scalars if self._field is not None else []
        if scalars and not scalars[-1].is_string and not self._is_in_list:
            word = scalars.pop()
            self._start(word.text, word.span)

    def _open(self, span: Span) -> None:
        self._read_last_word_as_name()
        field = self._field or self._start("", (span[0], span[0]))
        block = Block(span[1], field)
        field.blocks.append(block)
        self._around.append((field, self._is_in_list))
        self._end_statement()
        self.block = block

    def _close(self, span: Span) -> None:
        self._end_statement()
        if not self._around:
            return
        field, is_in_list = self._around.pop()
        self.block.end = span[0]
        self.block = field.block
        if is_in_list:
            self._field = field
            self._is_in_list = True
