"""Reads the blocks of a page that are files, so that tests run what a reader copies."""

from __future__ import annotations

import re
from pathlib import Path


def shown_file(page: Path, title: str) -> str:
    """Return the block of a page with this title.

    Raises:
        ValueError: the page has no such block.
    """
    found = re.search(
        rf'^```\w+ title="{re.escape(title)}"\n(.*?)^```$', page.read_text(), re.M | re.S
    )
    if found is None:
        raise ValueError(f"{page}: has no block with the title {title!r}; add it")
    return found[1]
