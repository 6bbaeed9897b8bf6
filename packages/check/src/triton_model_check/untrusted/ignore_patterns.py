"""Compiles the patterns of a ``.tritonignore`` so that a match takes linear time.

``pathspec`` translates a pattern to a regular expression. Several ``*`` in one name would take
exponential time where it does not match: ``*a*a*a*ab`` takes seconds for one file. Text between two
``*`` can be taken where it is found first, so the expression need not go back to it.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

#: What pathspec writes for a ``*``.
_STAR = "[^/]*"
#: An escaped character, a ``*``, a class of characters, or one character.
_TOKEN = re.compile(r"\\.|\[\^/\]\*|\[(?:\\.|[^\]\\])*\]|.", re.DOTALL)
#: The characters at which the text after a ``*`` ends.
_STRUCTURE = frozenset("()/|$+")
#: What pathspec writes for a ``**``.
_ANY_FOLDERS = ".+"
_MOST_ANY_FOLDERS = 2


def compile_patterns(lines: Sequence[str]) -> GitIgnoreSpec:
    """Return the patterns, as ``pathspec`` understands them; ``**`` may occur twice in each."""
    from pathspec import GitIgnoreSpec

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of re, about "[[]" and "[---]"
        try:
            spec = GitIgnoreSpec.from_lines(lines)
            for pattern in spec.patterns:
                _compile(pattern)
        except re.error as error:
            raise ValueError(str(error)) from error
    return spec


def _compile(pattern: Any) -> None:
    """Replace the regular expression of a pattern by one that takes linear time."""
    regex = getattr(pattern, "regex", None)
    if regex is None:
        return
    if regex.pattern.count(_ANY_FOLDERS) > _MOST_ANY_FOLDERS:
        raise ValueError(f"more than {_MOST_ANY_FOLDERS} ** in a pattern")
    if regex.pattern.count(_STAR) > 1:
        pattern.regex = re.compile("".join(_without_backtracking(regex.pattern)))


def _without_backtracking(regex: str) -> Iterator[str]:
    """Yield the parts of an expression that takes linear time.

    In ``*a*b``, the first ``*`` ends at the first ``a``. An atomic group, ``(?>[^/]*?a)``, keeps it
    there.
    """
    star = ""  # the "*" before `text`, if there is one
    text = ""
    for token in _TOKEN.findall(regex):
        if token == _STAR:
            yield f"(?>{star}?{text})" if star else text
            star = token
            text = ""
        elif token in _STRUCTURE:
            yield f"{star}{text}{token}"
            star = ""
            text = ""
        else:
            text += token
    yield f"{star}{text}"
