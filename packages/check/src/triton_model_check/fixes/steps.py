"""The steps of a fix, which rules declare, and the edits that they become in the text of a file.

A rule writes ``fix=safe(remove())``. The steps are turned into edits when the finding is reported.
A step whose place is not in the text, or is not the only one, makes the fix ``None``. Places are
below the field of the problem, or with ``path`` from the top of the configuration.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Container
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from constructs_triton_core.findings import Edit, Fix
from constructs_triton_core.spelling import is_misspelling
from triton_model_check.model_config.text import decode

if TYPE_CHECKING:
    from triton_model_check.model.folder import ModelFolder
    from triton_model_check.model_config.locations import FieldPath, Locations, Span


class Change(NamedTuple):
    """The characters from ``start`` to before ``end``, and what replaces them."""

    start: int
    end: int
    new: str


Step = Callable[[str, "Locations", "FieldPath"], "list[Change] | None"]
"""Returns the changes of a text for a problem in a field;
none if the text is not as the step needs it.
"""

_MOST_CHANGES = 100  # a person reads them, and a generated file can need a hundred thousand
_SUGGESTION = re.compile(r'did you mean "(.*)"\?')


class Remedy(NamedTuple):
    """What a rule proposes. ``is_safe``: only one spelling can have been meant."""

    is_safe: bool
    steps: tuple[Step, ...]

    def fix(self, folder: ModelFolder, path: str, field: FieldPath) -> Fix | None:
        """Return the edits of a file of a model, or ``None`` if a step is impossible."""
        text, locations = _text_to_edit(folder, path)
        if text is None:
            return None

        changes: list[Change] = []
        for step in self.steps:
            changes_of_step = step(text, locations, field)
            if not changes_of_step:
                return None
            changes += changes_of_step

        changes = _joined(text, changes)
        if not 0 < len(changes) <= _MOST_CHANGES:
            return None
        return Fix(self.is_safe, tuple(Edit(path, *change) for change in changes))


def _text_to_edit(folder: ModelFolder, path: str) -> tuple[str | None, Locations]:
    """Return the text of a file, and where its fields are.

    The text is ``None`` if the file cannot be read. Only ``config.pbtxt`` has fields.
    """
    from triton_model_check.model_config.locations import Locations

    if path == folder.config_path:
        return folder.config_text, folder.locations or Locations("")

    content = folder.read(*path.removeprefix(f"{folder.path}/").split("/"))
    text = None if content is None else decode(content)
    return text, Locations("")


def safe(*steps: Step) -> Remedy:
    """A fix that ``--fix`` applies."""
    return Remedy(True, steps)


def unsafe(*steps: Step) -> Remedy:
    """A fix that chooses for the user; only ``--unsafe-fixes`` applies it."""
    return Remedy(False, steps)


def suggested(hint: str | None) -> str | None:
    """Return the name that a hint asks about."""
    match = _SUGGESTION.fullmatch(hint or "")
    return match and match[1]


def meant(
    hint: str | None, *below: str | int, instead_of: str = "", used: Container[str] = ()
) -> Remedy | None:
    """Write the name that a hint asks about into a string, unless it is used already.

    Where the name that is written could be one of its own, it is ``instead_of``: then only a typing
    error is corrected.
    """
    name = suggested(hint)
    if name is None or name in used or (instead_of and not is_misspelling(instead_of, name)):
        return None
    return unsafe(put(string(name), *below))


def string(value: str) -> str:
    """Return a value in quotes."""
    return json.dumps(value, ensure_ascii=False)


# --- fields of config.pbtxt -----------------------------------------------------------------------


def remove(*below: str | int, path: FieldPath = ()) -> Step:
    """Remove a field, all values of a repeated field, or one element of a list."""

    def step(text: str, locations: Locations, field: FieldPath) -> list[Change]:
        place = path or (*field, *below)
        return [_removal(text, statement) for statement in _statements(locations, place)]

    return step


def change(start: int, end: int, new: str) -> Step:
    """Replace what is at a known place."""
    return lambda *_: [Change(start, end, new)]


def remove_statement(span: Span) -> Step:
    """Remove what is at a known place."""
    return lambda text, *_: [_removal(text, span)]


def put(value: str, *below: str | int, path: FieldPath = ()) -> Step:
    """Write another value into a field, or add the field at the end of its block."""

    def step(text: str, locations: Locations, field: FieldPath) -> list[Change] | None:
        place = path or (*field, *below)
        spans = locations.spans(place)
        if spans is not None:
            return [Change(*spans.value, value)]

        name = place[-1]
        is_absent = isinstance(name, str) and not _statements(locations, place)
        if not is_absent:
            return None
        return _addition(text, locations, place[:-1], f"{name}: {value}")

    return step


def rename(name: str) -> Step:
    """Give the field another name."""

    def step(_: str, locations: Locations, field: FieldPath) -> list[Change] | None:
        spans = locations.spans(field)
        return None if spans is None else [Change(*spans.name, name)]

    return step


def _addition(
    text: str, locations: Locations, parent: FieldPath, statement: str
) -> list[Change] | None:
    """Return the change that adds a statement at the end of a block, or of the text.

    ``None`` if the place of the block is not known.
    """
    newline = "\r\n" if "\r\n" in text else "\n"
    if not parent:
        before = "" if not text or text.endswith("\n") else newline
        return [Change(len(text), len(text), f"{before}{statement}{newline}")]

    spans = locations.spans(parent)
    if spans is None or text[spans.value[1] - 1] not in "}>":
        return None
    start = spans.value[0] + 1  # after the opening bracket
    end = spans.value[1] - 1  # before the closing bracket

    # A closing bracket on a line of its own: the statement gets a line too.
    line = text.rfind("\n", start, end) + 1
    if line and not text[line:end].strip():
        sibling = re.search(r"\n([ \t]*)[^\s]", text[start:end])
        indent = sibling[1] if sibling else f"{text[line:end]}  "
        return [Change(line, line, f"{indent}{statement}{newline}")]

    before = "" if text[end - 1].isspace() else " "
    return [Change(end, end, f"{before}{statement} ")]


def _statements(locations: Locations, path: FieldPath) -> list[Span]:
    """Return the place of a field, or those of all its statements if it is repeated."""
    spans = locations.spans(path)
    if spans is not None:
        return [spans.statement]
    if not path or isinstance(path[-1], int):
        return []

    statements: list[Span] = []
    spans = locations.spans((*path, 0))
    while spans is not None:
        statements.append(spans.statement)
        spans = locations.spans((*path, len(statements)))
    return statements


_BLANKS_AFTER = re.compile(r"([ \t]*)(?:\r?\n|(\Z))?")


def _removal(text: str, span: Span) -> Change:
    """Remove a statement with its line if nothing else is in it, or with the blanks on one side."""
    start, end = span
    before = start
    while text[before - 1 : before] in (" ", "\t"):
        before -= 1
    after = _BLANKS_AFTER.match(text, end)
    assert after is not None

    is_last_in_line = after.end(1) < after.end() or after[2] is not None
    if is_last_in_line:
        is_alone = text[before - 1 : before] in ("", "\n")
        return Change(before, after.end() if is_alone else end, "")

    takes_comma_before = text[start] == ","
    return Change(start, end if takes_comma_before else after.end(1), "")


def _joined(text: str, changes: list[Change]) -> list[Change]:
    """Join removals that touch.

    The last element of a list takes the comma before it, as the others do.
    """
    joined: list[Change] = []
    for change in sorted(changes):
        previous = joined[-1] if joined else None
        if previous is None or change.new or previous.new or change.start > previous.end:
            joined.append(change)
            continue

        start = previous.start
        overlaps = change.start < previous.end
        if overlaps:
            kept = text[:start].rstrip()
            if kept.endswith(","):
                start = len(kept) - 1
        joined[-1] = Change(start, max(change.end, previous.end), "")
    return joined


# --- words of a Python or JSON file ---------------------------------------------------------------


def replace_word(old: str, new: str) -> Step:
    """Replace a word that occurs only once in the file."""
    return _replace(rf"(?<![\w.]){re.escape(old)}(?!\w)", new)


def string_meant(
    old: str, hint: str | None, line: int | None = None, *, used: Container[str] = ()
) -> Remedy | None:
    """Correct a typing error in a string, which occurs once in the file or in its line.

    The name that the hint asks about must not be used already.
    """
    name = suggested(hint)
    if name is None or name in used or not is_misspelling(old, name):
        return None
    return unsafe(_replace(rf"""(?<=["']){re.escape(old)}(?=["'])""", name, line))


def _replace(pattern: str, new: str, line: int | None = None) -> Step:
    """Replace the only match of a pattern in the file, or in a line of it."""

    def step(text: str, _: Locations, __: FieldPath) -> list[Change] | None:
        start, end = (0, len(text)) if line is None else _span_of_line(text, line)
        matches = list(islice(re.compile(pattern).finditer(text, start, end), 2))
        if len(matches) != 1:
            return None
        return [Change(*matches[0].span(), new)]

    return step


def _span_of_line(text: str, number: int) -> Span:
    """Return where a line, counted from 1, starts and ends."""
    lines = text.split("\n")
    start = sum(len(line) + 1 for line in lines[: number - 1])
    return start, start + len(lines[number - 1])
