"""Writes comments into the text of a configuration."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping

_WIDTH = 100
_FIELD = re.compile(r"[a-z_]+")


def with_comments(text: str, title: str, comments: Mapping[str, str]) -> str:
    """Return ``text`` with ``title`` at its beginning and each comment before the first line of its field.

    Comments on fields that the text does not contain are at its end.
    """
    waiting = dict(comments)
    lines = list(_lines(title))
    for line in text.splitlines():
        match = _FIELD.match(line)
        if match and match[0] in waiting:
            lines += _lines(waiting.pop(match[0]))
        lines.append(line)
    lines += [line for comment in waiting.values() for line in _lines(comment)]
    return "\n".join(lines) + "\n"


def _lines(comment: str) -> Iterator[str]:
    for line in textwrap.wrap(comment, _WIDTH - 2, break_long_words=False, break_on_hyphens=False):
        yield f"# {line}"
