"""Spellings of ``config.pbtxt`` that protobuf's Python parser and Triton's C++
parser read differently.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from triton_model_check.facts.published import load

# A fast search of the whole text; only after a hit follows the exact search outside strings and
# comments.
_SUSPECT = re.compile(r"[^\x20-\x7e\t\n\r\v\f]|\\|[:\[,]\s*(?:\+|-0|(?=[-.\d])[-\w.]*_|-?0[oObB])")
# An unterminated string ends with its line: looking for its end from every quote would take
# quadratic time.
STRING_OR_COMMENT = re.compile(r'"(?:[^"\\\n]|\\.)*+"?|\'(?:[^\'\\\n]|\\.)*+\'?|#[^\n]*')
_LENIENT = [
    (re.compile(each["pattern"]), each["what"], each["hint"])
    for each in load("spellings")["only_python"]
]
_BAD_ESCAPE = re.compile(
    r"""\\(?![abfnrtv\\?'"0-7]|x[0-9A-Fa-f]|u[0-9A-Fa-f]{4}|U00(?:0|10)[0-9A-Fa-f]{4})"""
)


def lenient_spellings(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield what only the Python parser accepts: offset, message and hint."""
    if not _SUSPECT.search(text):
        return
    nul = text.find("\0")
    if nul >= 0:
        yield nul, "a NUL byte", "save the file as text, in UTF-8"
    for string in STRING_OR_COMMENT.finditer(text):
        escape = None if string.group().startswith("#") else _first_bad_escape(string.group())
        if escape is not None:
            yield (
                string.start() + escape,
                "a string contains an unknown escape",
                r"write a backslash as \\",
            )
    bare = STRING_OR_COMMENT.sub(lambda match: '"' + " " * (len(match.group()) - 1), text)
    for pattern, what, hint in _LENIENT:
        hit = pattern.search(bare)
        if hit:
            yield hit.start(), f"{what}, got {hit.group()[:40]!r}", hint


def _first_bad_escape(string: str) -> int | None:
    # Replaces pairs of backslashes, because the second one of a pair does not start an escape.
    hit = _BAD_ESCAPE.search(string.replace("\\\\", "  "))
    return hit.start() if hit else None


# --- what only Triton's parser accepts ------------------------------------------------------------

_BYTE_ESCAPE = re.compile(r"\\[0-7xX]")
_RESPELLED = re.compile(
    rf"(?P<quoted>{STRING_OR_COMMENT.pattern})"
    r"|-(?P<blank>\s+)(?=[\d.])"
    r"|(?<![\w.+-])(?P<zeros>0[xX]?0*)(?=[01](?![\w.]))"
)


def respell(text: str) -> str:
    """Rewrite what only Triton's parser accepts: ``- 1``, a boolean as ``0x1`` or ``01``, and
    ``"\\377"``.

    The whole file is rewritten in one pass, because a new attempt for each place would take
    quadratic time. A number keeps its value and its place.
    """
    return _RESPELLED.sub(_respelled, text)


def _respelled(match: re.Match[str]) -> str:
    if match["blank"]:
        return f"{match['blank']}-"
    if match["zeros"]:
        return " " * len(match["zeros"])
    return _valid_utf8(match["quoted"])


def _valid_utf8(string: str) -> str:
    """Replace escapes that are not UTF-8, which a Python string cannot contain."""
    if string.startswith("#") or not _BYTE_ESCAPE.search(string):
        return string
    from google.protobuf import text_encoding

    try:
        content = text_encoding.CUnescape(string[1:-1])
    except ValueError:  # an unterminated string
        return string
    shown = content.decode("utf-8", "replace")
    if shown.encode() == content:
        return string
    return f'"{text_encoding.CEscape(shown.encode(), as_utf8=False)}"'


# --- the effort of reading ------------------------------------------------------------------------

_PIECE = re.compile(rf"{STRING_OR_COMMENT.pattern}|[\w.+-]+|[^\s\w]|\n|[^\S\n]{{20,}}")


def count_pieces(text: str, limit: int) -> int:
    """Count words, signs, strings, comments and lines,
    and stop when there are more than ``limit``.
    """
    return sum(1 for _ in islice(_PIECE.finditer(text), limit + 1))


def longest_run(text: str, character: str) -> int:
    """Return the length of the longest run of a character."""
    if character * 2 not in text:
        return 0
    return max((len(run) for run in re.findall(f"{re.escape(character)}+", text)), default=0)
