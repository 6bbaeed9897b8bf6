"""Says which sources are valid for the Python of an image, whatever Python runs the check.

This Python's own ``compile`` decides where it can: a newer Python accepts what an older one
accepts, and its parser knows most statements that are too new for an older one. ``ruff_parser``
decides the rest: what this Python is too old to read, and the few expressions whose syntax trees
are the same as those of older syntax.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Sequence

from triton_model_check.model.syntax_nodes import nodes_of

Version = tuple[int, int]
RUNNING: Version = (sys.version_info.major, sys.version_info.minor)
NEWEST_OF_IMAGES: Version = (3, 12)
"""The newest Python of any image; an unknown image has at most this one."""

_FSTRINGS: Version = (3, 12)
_STARRED_INDEX: Version = (3, 11)
_DECORATORS: Version = (3, 9)
# Inside the braces of an f-string, these were a syntax error before Python 3.12, at least in some
# strings.
_NEW_IN_FSTRINGS = re.compile(rb"""['"\\#\n]""")


def may_be_newer(tree: ast.Module, content: bytes, python: Version) -> bool:
    """Whether a source that this Python accepts may be invalid in an older one.

    ``tree`` was parsed with ``feature_version``, which reports newer statements. Syntax trees do
    not show some newer expressions, so that this returns ``True`` for those that may be.
    """
    if python >= RUNNING:
        return False
    lines = content.decode("utf-8", "replace").splitlines(keepends=True)
    return any(
        (python < _FSTRINGS <= RUNNING and _may_be_new_string(node, lines))
        or (python < _STARRED_INDEX and _is_starred_index(node))
        or (python < _DECORATORS and _may_be_new_statement(node))
        for node in nodes_of(tree)
    )


def _may_be_new_string(node: ast.AST, lines: Sequence[str]) -> bool:
    """Whether an f-string may need the grammar of Python 3.12."""
    if not isinstance(node, ast.FormattedValue):
        return False
    first = node.value.lineno - 1
    last = (node.value.end_lineno or node.value.lineno) - 1
    if first != last or last >= len(lines):
        return True
    # Columns are those of the bytes.
    line = lines[first].encode("utf-8", "replace")
    expression = line[node.value.col_offset :].partition(b"}")[0]
    return _NEW_IN_FSTRINGS.search(expression) is not None


def _is_starred_index(node: ast.AST) -> bool:
    if isinstance(node, ast.arg):
        return isinstance(node.annotation, ast.Starred)
    index = node.slice if isinstance(node, ast.Subscript) else None
    elements = index.elts if isinstance(index, ast.Tuple) else []
    return any(isinstance(each, ast.Starred) for each in elements)


def _may_be_new_statement(node: ast.AST) -> bool:
    if isinstance(node, ast.With | ast.AsyncWith):
        return True  # parentheses around its items
    if isinstance(node, ast.For | ast.AsyncFor):
        return isinstance(node.iter, ast.Tuple)
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return any(not isinstance(each, ast.Name) for each in decorators)
