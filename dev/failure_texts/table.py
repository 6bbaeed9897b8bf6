"""The table of error texts that the catalogue is shipped with."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from constructs_triton_core.facts.failures import Failure, Rank, known_failures
from failure_texts.collecting import Text
from failure_texts.families import family_of

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "packages/core/src/constructs_triton_core/facts/failure_texts.json"
HOLE = "⟨⟩"
#: Likely values for the holes of a text; an entry may demand a number, a shape or a path.
_VALUES = ("x", "1", "[1,2]", "TYPE_FP32", "m_0", "/a/b/config.pbtxt")
#: Families of what has no cause of its own.
_NO_CAUSE = ("triton-other",)
_ENTRIES = [failure for failure in known_failures() if failure.rank is not Rank.KIND]
_KINDS = [failure for failure in known_failures() if failure.rank is Rank.KIND]


def read_table() -> dict[Text, str]:
    """Return the texts of the table with their entries; an empty string is no entry."""
    content = json.loads(TABLE.read_text(encoding="utf-8"))
    return {Text(*row): entry for entry, rows in content["texts"].items() for row in rows}


def write_table(texts: Iterable[Text]) -> None:
    """Write the texts by entry, one text in a line."""
    of_entry: dict[str, list[Text]] = {}
    newest: dict[str, str] = {}
    for text in texts:
        entry = entry_of(text)
        if entry is not None:
            of_entry.setdefault(entry, []).append(text)
        newest[text.repository] = max(text.last, newest.get(text.repository, ""))
    entries = []
    for entry, found in sorted(of_entry.items()):
        rows = ",\n".join(json.dumps(text, ensure_ascii=False) for text in found)
        entries.append(f"{json.dumps(entry)}: [\n{rows}\n]")
    content = ",\n".join(entries)
    table = f'{{"newest": {json.dumps(newest)},\n"texts": {{\n{content}\n}}}}\n'
    TABLE.write_text(table, encoding="utf-8")


def entry_of(text: Text) -> str | None:
    """Return the entry that explains a text, an empty string if there is none, or ``None`` if the
    text is no failure.
    """
    family = family_of(text)
    if family == "":
        return None
    # A kind of failure says less of a text than its family does.
    kind = _recognized(text.text, _KINDS) if family in (None, *_NO_CAUSE) else None
    return _recognized(text.text, _ENTRIES) or kind or family or ""


def _recognized(text: str, entries: Iterable[Failure]) -> str | None:
    """Return the entry whose pattern matches the text with values; causes are before wrappers."""
    wrapper = None
    for value in _VALUES:
        line = text.replace(HOLE, value)
        lower_case = line.lower()
        failure = next(
            (each for each in entries if each.may_match(lower_case) and each.pattern.search(line)),
            None,
        )
        if failure is not None and failure.rank is Rank.CAUSE:
            return failure.id
        wrapper = wrapper or (failure.id if failure else None)
    return wrapper
