"""Comments in ``config.pbtxt`` and ``model.py`` that ignore findings.

``# triton-model-check: ignore[code, code] reason`` ignores findings of its line. A comment with a
line of its own also ignores those of the next line that is neither blank nor a comment.
"""

from __future__ import annotations

import re
import tokenize
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from io import BytesIO
from itertools import islice
from typing import NamedTuple

from constructs_triton_core.findings import Finding
from triton_model_check.checks.chapters import RULES
from triton_model_check.checks.model_under_check import ModelUnderCheck
from triton_model_check.checks.rules import IGNORE_MARK
from triton_model_check.model_config.text_spellings import STRING_OR_COMMENT

_COMMENT = re.compile(rf"#\s*{IGNORE_MARK}\s*ignore\[(?P<codes>[^\]]*)\](?P<reason>.*)")

# More are not written by people, and each code is compared with the findings.
_MOST_COMMENTS, _MOST_CODES = 1_000, 100


class IgnoreComment(NamedTuple):
    """One comment: its place, the lines whose findings it ignores, and what it says."""

    path: str
    line: int
    column: int
    lines: tuple[int, ...]
    codes: tuple[str, ...]
    reason: str


class UsedComment(NamedTuple):
    """A comment, and those of its codes that should have ignored a finding and did not."""

    comment: IgnoreComment
    unused: tuple[str, ...]


def can_be_ignored(code: str) -> bool:
    """Return whether findings of a check may be ignored: not those of the syntax,
    nor of the comments.
    """
    return code in RULES and RULES[code].scope not in ("fault", "comment")


def comments_of(model: ModelUnderCheck) -> Iterator[IgnoreComment]:
    """Yield the comments of a model's configuration and of its Python files."""
    text = model.folder.config_text or ""
    if IGNORE_MARK in text:
        yield from _read(model.config_place, text, _config_comments(text))
    for source in model.python_sources:
        if IGNORE_MARK.encode() in source.content:
            text = source.content.decode("utf-8", "replace")
            yield from _read(source.path, text, _python_comments(source.content))


def _config_comments(text: str) -> Iterator[tuple[str, int, int]]:
    starts = [0, *(match.end() for match in re.finditer("\n", text))]
    for match in STRING_OR_COMMENT.finditer(text):
        if match.group().startswith("#"):
            line = bisect_right(starts, match.start())
            yield match.group(), line, match.start() - starts[line - 1] + 1


def _python_comments(content: bytes) -> Iterator[tuple[str, int, int]]:
    with suppress(tokenize.TokenError, SyntaxError):
        for token in tokenize.tokenize(BytesIO(content).readline):
            if token.type == tokenize.COMMENT:
                yield token.string, token.start[0], token.start[1] + 1


def _read(
    path: str, text: str, comments: Iterable[tuple[str, int, int]]
) -> Iterator[IgnoreComment]:
    """Yield the comments that ignore findings: the first thousand,
    each with its first hundred codes.
    """
    lines = text.split("\n")
    code_lines = [
        number for number, line in enumerate(lines, 1) if line.strip() and line.lstrip()[0] != "#"
    ]
    found = (
        (match, line, column)
        for said, line, column in comments
        if (match := _COMMENT.match(said)) is not None
    )
    for match, line, column in islice(found, _MOST_COMMENTS):
        codes = map(str.strip, match["codes"].split(",", _MOST_CODES)[:_MOST_CODES])
        is_alone = not lines[line - 1][: column - 1].strip()
        after = bisect_right(code_lines, line)
        below = code_lines[after : after + 1] if is_alone else ()
        known = tuple(filter(None, codes))
        yield IgnoreComment(path, line, column, (line, *below), known, match["reason"].strip())


def apply_comments(
    comments: Sequence[IgnoreComment], findings: Iterable[Finding], expected: Collection[str]
) -> tuple[list[Finding], list[Finding], list[UsedComment]]:
    """Return the findings that are left, those that comments ignore, and the comments.

    ``expected`` has the codes of the checks that could have found something.
    """
    by_place: dict[tuple[str, int], list[IgnoreComment]] = {}
    for comment in comments:
        for line in comment.lines:
            by_place.setdefault((comment.path, line), []).append(comment)
    kept: list[Finding] = []
    ignored: list[Finding] = []
    used: set[tuple[IgnoreComment, str]] = set()
    for finding in findings:
        code = finding.code
        place = (finding.path, finding.line or 1) if finding.place is None else finding.place[:2]
        matching = [comment for comment in by_place.get(place, ()) if code in comment.codes]
        used |= {(comment, code) for comment in matching}
        if matching and can_be_ignored(code):
            ignored.append(finding)
        else:
            kept.append(finding)
    return kept, ignored, [_with_unused(comment, used, expected) for comment in comments]


def _with_unused(
    comment: IgnoreComment, used: Collection[tuple[IgnoreComment, str]], expected: Collection[str]
) -> UsedComment:
    wanted = (code for code in comment.codes if code in expected and can_be_ignored(code))
    return UsedComment(comment, tuple(code for code in wanted if (comment, code) not in used))
