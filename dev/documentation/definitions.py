"""Writes parameters and attributes as definition lists, as wide as the text of the page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from documentation.members import Row


def definitions(rows: Sequence[Row]) -> Iterator[str]:
    """Yield a definition list: the name and its type,
    and below them the meaning and the default.
    """
    for row in rows:
        yield f"{_term(row)}\n:   {_definition(row)}\n"


def _term(row: Row) -> str:
    shown = " | ".join(f"`{part}`" for part in alternatives(row.type))
    term = f"`{row.name}`: {shown}" if shown else f"`{row.name}`"
    return f"{term}, required" if row.default == "required" else term


def _definition(row: Row) -> str:
    default = "" if row.default in ("", "required") else f"Default: {row.default.rstrip('.')}."
    return " ".join(f"{row.meaning} {default}".split()) or "&nbsp;"


def alternatives(text: str) -> list[str]:
    """Split a union outside brackets, so that each type can be a link."""
    parts, depth = [""], 0
    for character in text:
        depth += {"[": 1, "(": 1, "]": -1, ")": -1}.get(character, 0)
        if character == "|" and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip()]
