"""Weighs the search index of the built site, so that guides are found before generated texts.

The search that Zensical ships returns sections that have all words. It puts a match in the title of
a section before one in its menu entries, and both before one in its text, and knows no other
weight. Zensical writes the index. This module makes the heading of a generated section a part of
its text, under the title that the menu has, and gives the first result of a guide the text of all
its sections. It adds no words.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from documentation.pages import is_generated, menu_of

Item = dict[str, Any]


def weigh(site: Path) -> None:
    """Rewrite ``search.json`` of a built site."""
    index = site / "search.json"
    content = json.loads(index.read_text(encoding="utf-8"))
    content["items"] = list(_weighed(content["items"]))
    index.write_text(
        json.dumps(content, separators=(",", ":"), ensure_ascii=False), encoding="utf-8"
    )


def _weighed(items: Sequence[Item]) -> Iterator[Item]:
    titles: dict[str, str] = {
        item["location"]: item["title"] for item in items if "#" not in item["location"]
    }
    texts = _texts(items)
    for item in items:
        page, _, section = item["location"].partition("#")
        source = page.replace(".html", ".md")
        if not is_generated(source):
            yield item if section else {**item, "text": texts[page]}
            continue
        lighter = {**item, "path": menu_of(source) or item["path"]}
        if section:
            lighter["title"] = (menu_of(source) or [titles.get(page, "")])[-1]
            lighter["text"] = f"<p>{item['title']}</p>{item['text']}"
        yield lighter


def _texts(items: Sequence[Item]) -> Mapping[str, str]:
    """The text of each page with that of its sections:
    a question's words are often in several of them.
    """
    texts: dict[str, list[str]] = {}
    for item in items:
        page, _, section = item["location"].partition("#")
        heading = f"<p>{item['title']}</p>" if section else ""
        texts.setdefault(page, []).append(f"{heading}{item['text']}")
    return {page: "".join(parts) for page, parts in texts.items()}
