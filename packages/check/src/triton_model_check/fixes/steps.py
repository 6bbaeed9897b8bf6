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

Change = tuple[int, int, str]
"""The characters from an offset to before another one, and what replaces them."""

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
        from triton_model_check.model_config.locations import Locations

        if path == folder.config_path:
            text, locations = folder.config_text, folder.locations or Locations("")
        else:
            content = folder.read(*path.removeprefix(f"{folder.path}/").split("/"))
            text, locations = None if content is None else decode(content), Locations("")
        found = [] if text is None else [step(text, locations, field) for step in self.steps]
        changes = _joined(text or "", [one for each in found for one in each or ()])
        if not all(found) or not 0 < len(changes) <= _MOST_CHANGES:
            return None
        return Fix(self.is_safe, tuple(Edit(path, *each) for each in changes))


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
    return lambda text, locations, field: [
        _removal(text, span) for span in _statements(locations, path or (*field, *below))
    ]


def change(start: int, end: int, new: str) -> Step:
    """Replace what is at a known place."""
    return lambda *_: [(start, end, new)]


def remove_statement(span: Span) -> Step:
    """Remove what is at a known place."""
    return lambda text, *_: [_removal(text, span)]


def put(value: str, *below: str | int, path: FieldPath = ()) -> Step:
    """Write another value into a field, or add the field at the end of its block."""

    def step(text: str, locations: Locations, field: FieldPath) -> list[Change] | None:
        place = path or (*field, *below)
        spans = locations.spans(place)
        if spans is not None:
            return [(*spans.value, value)]
        is_absent = isinstance(place[-1], str) and not _statements(locations, place)
        return (
            _addition(text, locations, place[:-1], f"{place[-1]}: {value}") if is_absent else None
        )

    return step


def rename(name: str) -> Step:
    """Give the field another name."""
    return lambda _, locations, field: [
        (*spans.name, name) for spans in [locations.spans(field)] if spans is not None
    ]


def _addition(
    text: str, locations: Locations, parent: FieldPath, statement: str
) -> list[Change] | None:
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


def _statements(locations: Locations, path: FieldPath) -> list[Span]:
    """The place of a field, or those of all its statements."""
    spans = locations.spans(path)
    if spans is not None or not path or isinstance(path[-1], int):
        return [] if spans is None else [spans.statement]
    found: list[Span] = []
    while (spans := locations.spans((*path, len(found)))) is not None:
        found.append(spans.statement)
    return found


_BLANKS_AFTER = re.compile(r"([ \t]*)(?:\r?\n|(\Z))?")


def _removal(text: str, span: Span) -> Change:
    """Remove a statement with its line if nothing else is in it, or with the blanks on one side."""
    start, end = span
    before = start
    while text[before - 1 : before] in (" ", "\t"):
        before -= 1
    after = _BLANKS_AFTER.match(text, end)
    assert after is not None
    if after.end(1) < after.end() or after[2] is not None:  # it is the last one in its line
        return (
            (before, after.end(), "")
            if text[before - 1 : before] in ("", "\n")
            else (before, end, "")
        )
    return start, end if text[start] == "," else after.end(1), ""


def _joined(text: str, changes: list[Change]) -> list[Change]:
    """Join removals that touch.

    The last element of a list takes the comma before it, as the others do.
    """
    joined: list[Change] = []
    for start, end, new in sorted(changes):
        first, last, before = joined[-1] if joined else (0, -1, "")
        if new or before or start > last:
            joined.append((start, end, new))
            continue
        kept = text[:first].rstrip() if start < last else ""
        if kept.endswith(","):
            first = len(kept) - 1
        joined[-1] = (first, max(end, last), "")
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
    def step(text: str, _: Locations, __: FieldPath) -> list[Change] | None:
        lines = text.split("\n")
        start = 0 if line is None else sum(len(each) + 1 for each in lines[: line - 1])
        end = len(text) if line is None else start + len(lines[line - 1])
        matches = list(islice(re.compile(pattern).finditer(text, start, end), 2))
        return [(*matches[0].span(), new)] if len(matches) == 1 else None

    return step
