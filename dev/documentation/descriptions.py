"""Gives each page of the site its own description,
which search engines and previews of links show.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

_FRONT_MATTER = re.compile(r"\A---\n(?P<fields>.*?\n)---\n", re.DOTALL)
_HIDDEN = re.compile(r"<!--.*?-->|^```.*?^```", re.DOTALL | re.MULTILINE)
_PROSE = re.compile(r"(?![#|>\-<!\[{:=]|```|\d+\. |\s{4})\S")
_SENTENCE = re.compile(r"(?:\S+\s){3}.*?[.?!](?=\s|$)|(?:\S+\s){3}.*?:$")
_HEADING = re.compile(r"^# (.+?)(?: \{.*)?$", re.MULTILINE)
_LINK = re.compile(r"\[([^]]+)\]\([^)]+\)")


def describe(pages: Path) -> None:
    """Write the first sentence of each page into its front matter, as ``description``.

    Where several pages begin with the same sentence, or with none, it follows the heading of the
    page.
    """
    texts = {page: page.read_text(encoding="utf-8") for page in pages.rglob("*.md")}
    # Zensical writes the description between double quotes as it is.
    sentences = {
        page: re.sub(r"[`*]", "", first_sentence(text)).replace('"', "'")
        for page, text in texts.items()
    }
    count = Counter(sentences.values())
    for page, text in texts.items():
        sentence = sentences[page]
        if not sentence or count[sentence] > 1:
            heading = _HEADING.search(text)
            sentence = ": ".join(filter(None, (heading[1] if heading else page.stem, sentence)))
        fields = _FRONT_MATTER.match(text)
        if "description:" not in (fields["fields"] if fields else ""):
            page.write_text(
                _with_field(text, f"description: {json.dumps(sentence)}"), encoding="utf-8"
            )


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
