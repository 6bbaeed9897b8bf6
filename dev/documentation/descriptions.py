"""Gives each page of the site its own description, which search engines and previews of links show."""

from __future__ import annotations

import json
import re
from pathlib import Path

_FRONT_MATTER = re.compile(r"\A---\n(?P<fields>.*?\n)---\n", re.DOTALL)
_HIDDEN = re.compile(r"<!--.*?-->|^```.*?^```", re.DOTALL | re.MULTILINE)
_PROSE = re.compile(r"(?![#|>\-<!\[{:=]|```|\d+\. |\s{4})\S")
_SENTENCE = re.compile(r".+?[.?!:](?=\s|$)")
_LINK = re.compile(r"\[([^]]+)\]\([^)]+\)")


def describe(pages: Path) -> None:
    """Write the first sentence of each page into its front matter, as ``description``."""
    for page in pages.rglob("*.md"):
        text = page.read_text(encoding="utf-8")
        fields = _FRONT_MATTER.match(text)
        about = re.sub(r"[`*]", "", first_sentence(text))
        if about and "description:" not in (fields["fields"] if fields else ""):
            page.write_text(_with_field(text, f"description: {json.dumps(about)}"), encoding="utf-8")


def first_sentence(text: str) -> str:
    """Return the first sentence of a page in one line, with the words of its links, or nothing."""
    text = _LINK.sub(r"\1", _HIDDEN.sub("", _FRONT_MATTER.sub("", text)))
    for paragraph in re.split(r"\n\s*\n", text):
        sentence = _SENTENCE.match(" ".join(paragraph.split()))
        if sentence and _PROSE.match(paragraph.lstrip("\n")):
            return f"{sentence[0].removesuffix(':')}." if sentence[0].endswith(":") else sentence[0]
    return ""


def _with_field(text: str, field: str) -> str:
    fields = _FRONT_MATTER.match(text)
    rest = text[fields.end() :] if fields else f"\n{text}"
    return f"---\n{fields['fields'] if fields else ''}{field}\n---\n{rest}"
