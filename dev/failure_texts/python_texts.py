"""Error texts in Python sources: of exceptions that are raised, and of lines of the log."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from failure_texts.cpp_texts import HOLE

#: Methods whose text is an error in the log, and constructors of errors that are returned.
_CALLS = {"log_error", "error", "TritonError", "TritonModelException", "HTTPException"}


def texts(source: str) -> Iterator[str]:
    """Yield each error text of a file; nothing of a file that this Python cannot parse."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            yield from _of_arguments(node.exc)
        elif isinstance(node, ast.Assert) and node.msg is not None:
            yield _text(node.msg)
        elif isinstance(node, ast.Call) and _name(node.func) in _CALLS:
            yield from _of_arguments(node)


def _of_arguments(call: ast.Call) -> Iterator[str]:
    for value in (*call.args, *(keyword.value for keyword in call.keywords)):
        text = _text(value)
        if text.replace(HOLE, ""):
            yield text


def _name(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _text(value: ast.expr) -> str:
    """Return the text that an expression has, with holes."""
    if isinstance(value, ast.Constant):
        return value.value if isinstance(value.value, str) else ""
    if isinstance(value, ast.JoinedStr):
        return "".join(map(_text, value.values))
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
        return _text(value.left) + _text(value.right)
    function = value.func if isinstance(value, ast.Call) else None
    if isinstance(function, ast.Attribute) and function.attr == "format":
        return _text(function.value).replace("{}", HOLE)
    return HOLE
