"""Fixes of a ``config.pbtxt`` that does not parse, at the place where the parser stopped."""

from __future__ import annotations

import re
from collections.abc import Callable

from triton_model_check.model_config.fixing.steps import Remedy, Step, meant, remove_span, safe, unsafe
from triton_model_check.model_config.locations import Locations
from triton_model_check.model_config.text import TextFault

_NUMBER = r"-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_WORD = r"[A-Za-z_]\w*"
_HEX_FORMS = {"o": 8, "b": 2}


def _decimal(got: str) -> str:
    sign, digits = ("-", got[1:]) if got.startswith("-") else ("", got)
    return f"{sign}{int(digits[2:].replace('_', ''), _HEX_FORMS[digits[1].lower()])}"


# What the fault says, what the text then has at its place, and what is written there instead.
_SPELLINGS: tuple[tuple[str, str, Callable[[str], str]], ...] = (
    ("without byte order mark", "\ufeff", lambda _: ""),
    ("remove the plus sign", r"\+", lambda _: ""),
    ("remove the underscore", r"-?\d\w*", lambda got: got.replace("_", "")),
    ("write it in decimal", r"-?0(?:[oO][0-7_]*[0-7]|[bB][01_]*[01])(?!\w)", _decimal),
    ("replace it by an ASCII character", r"\s", lambda _: " "),
    ("start comments with #", r"\s*//", lambda got: got.replace("//", "#")),
    ("remove the quotes", rf'(["\']){_WORD}\1', lambda got: got[1:-1]),
    ("couldn't parse", rf'(["\']){_NUMBER}\1', lambda got: got[1:-1]),
    ('expected "true" or "false"', r'(["\']?)(?i:true|false)\1', lambda got: got.strip("\"'").lower()),
    ("expected string but found", rf"{_WORD}(?=\s)", lambda got: f'"{got}"'),
)


def fix_of_fault(fault: TextFault, text: str) -> Remedy | None:
    """Return how to spell what the parser rejects, or ``None`` if that is not known."""
    if fault.line is None or fault.column is None:
        return None
    offset = sum(len(line) + 1 for line in text.split("\n")[: fault.line - 1]) + fault.column - 1
    for words, pattern, spelled in _SPELLINGS:
        found = re.compile(pattern).match(text, offset)
        if found and words in f"{fault.message}; {fault.hint}":
            return safe(_change(offset, found.end(), spelled(found.group())))
    return _fix_by_code(fault, text, offset)


def _fix_by_code(fault: TextFault, text: str, offset: int) -> Remedy | None:
    word = re.compile(_WORD).match(text, offset)
    if fault.code == "text-unknown-field" and word:
        return meant(fault.hint, lambda name: _change(offset, word.end(), name))
    if fault.code == "text-enum" and word and fault.hint.startswith("did you mean "):
        return unsafe(_change(offset, word.end(), fault.hint[len("did you mean ") : -1]))
    if fault.code == "text-field-twice":
        return _same_twice(text, offset)
    if fault.message.endswith('expected ":"'):
        name = re.search(rf"(?m:^|[\s{{;,]){_WORD}(\s*)\Z", text[:offset])
        end = offset if name is None else name.start(1)
        return None if name is None else safe(_change(end, end, ":"))
    if fault.hint.startswith("write a backslash as"):
        return unsafe(_change(offset, offset, "\\"))
    return None


def _same_twice(text: str, offset: int) -> Remedy | None:
    """Remove the second statement of a field if both have the same value."""
    statements = Locations(text).statements_at(offset)
    for spans in statements[1:]:
        if spans.value[0] == offset and text[slice(*spans.value)] == text[slice(*statements[0].value)]:
            return safe(remove_span(spans.statement))
    return None


def _change(start: int, end: int, new: str) -> Step:
    return lambda _text, _locations: [(start, end, new)]
