"""Names that a shell does not take literally.

The Python backend starts ``model.py`` with ``bash -c``, and does not quote its path. Source: triton
python_backend, StubLauncher::Launch.
"""

from __future__ import annotations

import re

__all__ = ["changed_by_shell"]

#: Blanks, operators, quotes and expansions inside a word. ``*`` and ``?`` stay as they are if no
#: file has such a name.
_CHANGED = re.compile(r"[\s|&;()<>`\\\"']|\$[\w({@*#?$!-]|\{[^}]{0,200}(?:,|\.\.)[^}]{0,200}\}")


def changed_by_shell(path: str) -> str:
    """Return the first part of a path that a shell splits or replaces; empty if there is none."""
    found = _CHANGED.search(path)
    return "" if found is None else found[0]
