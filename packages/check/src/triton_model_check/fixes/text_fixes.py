"""Fixes of the text of a ``config.pbtxt``: of one that does not parse, and of repeated keys."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from triton_model_check.fixes.steps import (
    Remedy,
    change,
    remove_statement,
    safe,
    unsafe,
)
from triton_model_check.model_config.text import TextFault

if TYPE_CHECKING:
    from triton_model_check.model_config.locations import FieldSpans, Span

_WORD = r"[A-Za-z_]\w*"
_NUMBER = r"-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
# What the fault says, what the text then has at its place, and what is written there instead.
_SPELLINGS: tuple[tuple[str, str, Callable[[str], str]], ...] = (
    ("without byte order mark", "\ufeff", lambda _: ""),
    ("remove the plus sign", r"\+", lambda _: ""),
    ("remove the underscore", r"-?\d\w*", lambda got: got.replace("_", "")),
    ("write it in decimal", r"-?0(?:[oO][0-7]+|[bB][01]+)(?!\w)", lambda got: str(int(got, 0))),
    ("replace it by an ASCII character", r"\s", lambda _: " "),
    ("start comments with #", r"\s*//", lambda got: got.replace("//", "#")),
    ("remove the quotes", rf'(["\']){_WORD}\1', lambda got: got[1:-1]),
    ("couldn't parse integer", r'(["\'])-?\d+\1', lambda got: got[1:-1]),
    ("couldn't parse float", rf'(["\']){_NUMBER}\1', lambda got: got[1:-1]),
    ('expected ":"', "=", lambda _: ":"),
    (
        'expected "true" or "false"',
        r'(["\']?)(?i:true|false)\1',
        lambda got: got.strip("\"'").lower(),
    ),
    ("expected string but found", rf"{_WORD}(?=\s)", lambda got: f'"{got}"'),
)
_VALUE = re.compile(r"[\w\"'\[.-]")
# The word that a hint asks about, in quotes or not.
_MEANT = re.compile(r'did you mean "?(\w+)"?\?')


def fix_of_fault(fault: TextFault, text: str) -> Remedy | None:
    """Return how to spell what the parser rejects, or ``None`` if that is not known."""
    if fault.line is None or fault.column is None:
        return None
    offset = sum(len(line) + 1 for line in text.split("\n")[: fault.line - 1]) + fault.column - 1
    for words, pattern, spelled in _SPELLINGS:
        found = re.compile(pattern).match(text, offset)
        if found and words in f"{fault.message}; {fault.hint}":
            return safe(change(offset, found.end(), spelled(found.group())))
    return _fix_by_code(fault, text, offset)


def _fix_by_code(fault: TextFault, text: str, offset: int) -> Remedy | None:
    """Return the fix of a fault for which the spelling at its place is not enough to know it."""
    word = re.compile(_WORD).match(text, offset)
    meant_name = _MEANT.fullmatch(fault.hint)
    if word and meant_name:
        return unsafe(change(offset, word.end(), meant_name[1]))
    if fault.hint.startswith("write a backslash as"):
        return unsafe(change(offset, offset, "\\"))
    if fault.message.endswith('expected ":"') and _VALUE.match(text, offset):
        before = text[:offset].rstrip()
        is_in_comment = "#" in before[before.rfind("\n") + 1 :]
        if before[-1:].isalnum() and not is_in_comment:
            return safe(change(len(before), len(before), ":"))
    if fault.code == "text-field-twice":
        return _without_repetition(text, offset)
    return None


def _without_repetition(text: str, offset: int) -> Remedy | None:
    """Return the removal of a field at an offset that repeats the first one; else ``None``."""
    from triton_model_check.model_config.locations import Locations

    statements = Locations(text).statements_at(offset)
    for spans in statements[1:]:
        is_same = text[slice(*spans.value)] == text[slice(*statements[0].value)]
        if spans.value[0] == offset and is_same:
            return safe(remove_statement(spans.statement))
    return None


def fix_of_repeated_key(text: str, earlier: FieldSpans, later: FieldSpans) -> Remedy | None:
    """Remove the earlier of two entries if both are equal.

    Of two values, only the author knows what the first one was for.
    """
    is_same = _words(text, earlier.value) == _words(text, later.value)
    return safe(remove_statement(earlier.statement)) if is_same else None


def _words(text: str, span: Span) -> list[str]:
    """The words of a value, to compare two that differ only in layout."""
    return text[slice(*span)].split()
