"""The steps of a fix, which rules declare, and the edits that they become in the text of a file.

A rule writes ``fix=safe(remove("backend"))``. Only when the finding is reported are the steps turned into
edits. A step whose place is not in the text, or is not the only one, makes the fix ``None``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Container, Iterable
from typing import NamedTuple

from triton_model_check.model_config.locations import FieldPath, Locations, Span

Change = tuple[int, int, str]
"""The characters from an offset to before another one, and what replaces them."""

Step = Callable[[str, Locations], "list[Change] | None"]
"""Returns the changes of a text, or ``None`` if the text is not as the step needs it."""

_SUGGESTION = re.compile(r'did you mean "(.*)"\?')


class Remedy(NamedTuple):
    """What a rule proposes. ``is_safe``: only one spelling can have been meant."""

    is_safe: bool
    steps: tuple[Step, ...]

    def changes(self, text: str, locations: Locations) -> tuple[Change, ...] | None:
        """Return the changes in the order of their places, or ``None`` if one is impossible."""
        found: list[Change] = []
        for step in self.steps:
            changes = step(text, locations)
            if not changes:
                return None
            found += changes
        return tuple(_joined(text, found))


def safe(*steps: Step) -> Remedy:
    """A fix that ``--fix`` applies."""
    return Remedy(True, steps)


def unsafe(*steps: Step) -> Remedy:
    """A fix that chooses for the user; only ``--unsafe-fixes`` applies it."""
    return Remedy(False, steps)


def meant(hint: str | None, step: Callable[[str], Step]) -> Remedy | None:
    """The fix that writes the name which a hint asks about, or ``None`` if it names none."""
    match = _SUGGESTION.fullmatch(hint or "")
    return None if match is None else unsafe(step(match[1]))


def put_meant(field: FieldPath, hint: str | None, used: Container[str] = ()) -> Remedy | None:
    """The fix that writes the name which a hint asks about into a field, unless it is used already."""
    match = _SUGGESTION.fullmatch(hint or "")
    return None if match and match[1] in used else meant(hint, lambda name: put(field, string(name)))


def string_meant(old: str, line: int | None, hint: str | None) -> Remedy | None:
    """The fix that writes the name which a hint asks about into a string of a Python or JSON file."""
    return meant(hint, lambda name: replace_string(old, name, line))


def string(value: str) -> str:
    """Return a value in quotes."""
    return json.dumps(value, ensure_ascii=False)


def values(numbers: Iterable[int]) -> str:
    """Return numbers as a list."""
    return f"[ {', '.join(map(str, numbers))} ]"


# --- fields of config.pbtxt -------------------------------------------------------------------------------


def remove(*path: str | int) -> Step:
    """Remove a field, all values of a repeated field, or one element of a list."""

    def step(text: str, locations: Locations) -> list[Change] | None:
        return [_removal(text, span) for span in _statements(locations, path)]

    return step


def remove_span(span: Span) -> Step:
    """Remove a statement whose place is known."""
    return lambda text, _: [_removal(text, span)]


def put(path: FieldPath, value: str) -> Step:
    """Write another value into a field, or add the field."""

    def step(text: str, locations: Locations) -> list[Change] | None:
        spans = locations.spans(path)
        if spans is not None:
            return [(*spans.value, value)]
        is_absent = isinstance(path[-1], str) and not _statements(locations, path)
        return add(path[:-1], f"{path[-1]}: {value}")(text, locations) if is_absent else None

    return step


def rewrite(path: FieldPath, statement: str) -> Step:
    """Spell a whole statement in another way."""

    def step(_: str, locations: Locations) -> list[Change] | None:
        spans = locations.spans(path)
        return None if spans is None else [(*spans.statement, statement)]

    return step


def rename(path: FieldPath, name: str) -> Step:
    """Give a field another name."""

    def step(_: str, locations: Locations) -> list[Change] | None:
        spans = locations.spans(path)
        return None if spans is None else [(*spans.name, name)]

    return step


def add(parent: FieldPath, statement: str) -> Step:
    """Add a field at the end of a block, or of the file."""

    def step(text: str, locations: Locations) -> list[Change] | None:
        newline = "\r\n" if "\r\n" in text else "\n"
        if not parent:
            before = "" if not text or text.endswith("\n") else newline
            return [(len(text), len(text), f"{before}{statement}{newline}")]
        spans = locations.spans(parent)
        if spans is None or text[spans.value[1] - 1] not in "}>":
            return None
        start, end = spans.value[0] + 1, spans.value[1] - 1
        line = text.rfind("\n", start, end) + 1
        if line and not text[line:end].strip():
            sibling = re.search(r"\n([ \t]*)[^\s]", text[start:end])
            indent = sibling[1] if sibling else f"{text[line:end]}  "
            return [(line, line, f"{indent}{statement}{newline}")]
        before = "" if text[end - 1].isspace() else " "
        return [(end, end, f"{before}{statement} ")]

    return step


def _statements(locations: Locations, path: FieldPath) -> list[Span]:
    """The place of a field, or those of all its statements."""
    spans = locations.spans(path)
    if spans is not None or not path or isinstance(path[-1], int):
        return [] if spans is None else [spans.statement]
    found = []
    while (spans := locations.spans((*path, len(found)))) is not None:
        found.append(spans.statement)
    return found


_BLANK_AFTER = re.compile(r"[ \t]*(\r?\n|\Z)?")


def _removal(text: str, span: Span) -> Change:
    """Remove a statement with its line if nothing else is in it, or with the blanks on one side."""
    start, end = span
    before = len(text[:start].rstrip(" \t"))
    after = _BLANK_AFTER.match(text, end)
    assert after is not None
    if before == 0 or text[before - 1] == "\n":
        return (before, after.end(), "") if after[1] is not None else (start, after.end(), "")
    if after[1] is not None:
        return before, end, ""
    return start, end if text[start] == "," else after.end(), ""


def _joined(text: str, changes: list[Change]) -> list[Change]:
    """Join removals that touch. The last element of a list takes the comma before it, as the others do."""
    joined: list[Change] = []
    for start, end, new in sorted(changes):
        first, last, before = joined[-1] if joined else (0, -1, "")
        if new or before or start > last:
            joined.append((start, end, new))
            continue
        kept = text[:first].rstrip()
        if start < last and kept.endswith(","):
            first = len(kept) - 1
        joined[-1] = (first, max(end, last), "")
    return joined


# --- words of a Python or JSON file -----------------------------------------------------------------------


def replace_word(old: str, new: str, line: int | None = None) -> Step:
    """Replace a word that occurs only once in the file, or in one of its lines."""
    return _replace(rf"(?<![\w.]){re.escape(old)}(?!\w)", new, line)


def replace_string(old: str, new: str, line: int | None = None) -> Step:
    """Replace the content of a string that occurs only once in the file, or in one of its lines."""
    return _replace(rf"""(?<=["']){re.escape(old)}(?=["'])""", new, line)


def _replace(pattern: str, new: str, line: int | None) -> Step:
    def step(text: str, _: Locations) -> list[Change] | None:
        start, end = _line(text, line)
        found = [match.span() for match in re.finditer(pattern, text) if start <= match.start() < end]
        return [(*found[0], new)] if len(found) == 1 else None

    return step


def _line(text: str, line: int | None) -> Span:
    if line is None:
        return 0, len(text)
    lines = text.split("\n")
    start = sum(len(each) + 1 for each in lines[: line - 1])
    return start, start + len(lines[line - 1])
