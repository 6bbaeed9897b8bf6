"""Writes ``llms.txt``, the list of pages for language models, and the Markdown of each page beside
its HTML.

The form is that of https://llmstxt.org: a heading, a quotation, and a list of links per section.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

from documentation.descriptions import first_sentence
from documentation.pages import FIRST_PAGES

#: What a reader needs before the pages: the packages, and the commands that answer most questions.
SUMMARY = """\
Python packages: `constructs-triton` (CDK constructs), `triton-model-check` (checks of model
repositories), `constructs-triton-client` (client), `cdk-rehearse` (rehearsal of updates).
`constructs-triton --help` lists the commands, `constructs-triton explain CODE` explains a finding,
and most commands take `--json`."""


def write_llms(configuration: Path, pages: Path, site: Path) -> None:
    """Write ``llms.txt`` and the pages' Markdown into ``site``.

    Args:
        configuration: mkdocs.yml.
        pages: The folder that the site was built from.
        site: The folder of the site.
    """
    settings: dict[str, Any] = yaml.safe_load(configuration.read_text(encoding="utf-8"))
    text = f"# {settings['site_name']}\n\n> {settings['site_description']}\n\n{SUMMARY}\n"
    for part in settings["nav"]:
        [(section, entry)] = part.items()
        lines = list(_lines(entry, section, pages))
        text += f"\n## {section}\n\n" + "".join(lines)
    (site / "llms.txt").write_text(text, encoding="utf-8")
    for page in pages.rglob("*.md"):
        target = site / page.relative_to(pages)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(page, target)


def _lines(entry: Any, title: str, pages: Path) -> Iterator[str]:
    """Yield a line for each page below an entry of ``nav``."""
    if isinstance(entry, str):
        if entry.startswith(tuple(FIRST_PAGES)) and entry not in FIRST_PAGES.values():
            return  # the first page of the folder links to it
        about = first_sentence((pages / entry).read_text(encoding="utf-8"))
        yield f"- [{title}]({entry})" + (f": {about}" if about else "") + "\n"
        return
    for child in entry:
        name, below = (title, child) if isinstance(child, str) else next(iter(child.items()))
        yield from _lines(below, name, pages)
