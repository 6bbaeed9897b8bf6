"""Error texts in C++ and CUDA sources.

A text is put together from its string literals; what is only known when the server runs is a hole,
``⟨⟩``. Only statements that make an error are read: a status, an exception, or a line of the log
with the severity error.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

HOLE = "⟨⟩"

_TOKEN = re.compile(
    r"""//[^\n]*|/\*.*?\*/"""
    r"""|R"(?P<mark>\w*)\((?P<raw>.*?)\)(?P=mark)\""""
    r"""|(?P<string>"(?:[^"\\\n]|\\.)*")"""
    r"""|'(?:[^'\\\n]|\\.)+'"""
    r"""|(?P<word>[A-Za-z_]\w*)|(?P<sign><<|::|->|[^\s\w])|\d[\w.]*""",
    re.DOTALL,
)

#: What takes the text in parentheses, after other arguments or alone.
_CALLS = {
    "TRITONSERVER_ErrorNew",
    "PythonBackendException",
    "TritonException",
    "BackendModelException",
    "runtime_error",
    "invalid_argument",
    "logic_error",
    "make_string",
    "RETURN_ERROR_IF_FALSE",
    "RETURN_ERROR_IF_TRUE",
    "RETURN_IF_CUDA_ERROR",
    "RETURN_IF_CUDA_ERR",
    "RETURN_IF_OPENVINO_ERROR",
    "RETURN_IF_OPENVINO_ASSIGN_ERROR",
    "FAIL",
    "LOG_MESSAGE",
    "InvalidArg",
    "Unsupported",
}
#: A call with one of these names is an error only with one of these words in it.
_CALLS_IF = {"Status": ("Code",), "LOG_MESSAGE": ("TRITONSERVER_LOG_ERROR",)}
#: What takes the text after ``<<``.
_STREAMS = {"LOG_ERROR", "cerr", "log_error"}
#: Variables that hold a text until an error is made of it.
_VARIABLE = re.compile(r"(?i)(?:err|error|msg|message|reason)(?:_?str|_?msg|_?message)?_?")
_LONGEST = 400
_AROUND = {"std", "string", "String", "::", "(", ")", "+", "<<", "ss", "str", "oss"}


def texts(source: str) -> Iterator[str]:
    """Yield each error text of a file."""
    tokens = [match for match in _TOKEN.finditer(source) if not match[0].startswith(("//", "/*"))]
    for number, token in enumerate(tokens[:-1]):
        word = token["word"]
        if word is None:
            continue
        following = tokens[number + 1][0]
        if word in _STREAMS and following in ("<<", "("):
            statement = _until_semicolon(tokens, number + 1)
        elif (word in _CALLS or word in _CALLS_IF) and following == "(":
            statement = _until_closed(tokens, number + 1)
            needed = _CALLS_IF.get(word)
            if needed and not any(each[0] in needed for each in statement):
                continue
        elif _VARIABLE.fullmatch(word) and following == "=":
            statement = _until_semicolon(tokens, number + 2)
        else:
            continue
        text = _joined(statement)
        if text:
            yield text


def _until_closed(tokens: Sequence[re.Match[str]], start: int) -> list[re.Match[str]]:
    """Return the tokens between parentheses."""
    depth = 0
    found = []
    for token in tokens[start : start + _LONGEST]:
        depth += {"(": 1, ")": -1}.get(token[0], 0)
        if depth == 0:
            break
        found.append(token)
    return found[1:]


def _until_semicolon(tokens: Sequence[re.Match[str]], start: int) -> list[re.Match[str]]:
    found = []
    for token in tokens[start : start + _LONGEST]:
        if token[0] in (";", "{", "}"):
            break
        found.append(token)
    return found


def _joined(tokens: Sequence[re.Match[str]]) -> str:
    """Return the literals of a statement, with a hole for each run of other values."""
    first = next((n for n, token in enumerate(tokens) if _literal(token) is not None), None)
    if first is None:
        return ""
    start = _start_of_argument(tokens, first)
    parts: list[str] = []
    is_hole = False
    for token in _without_alternatives(tokens[start:]):
        literal = None if isinstance(token, str) else _literal(token)
        shown = token if isinstance(token, str) else token[0]
        if literal is not None:
            if is_hole:
                parts.append(HOLE)
            parts.append(literal)
            is_hole = False
        elif shown not in _AROUND and shown not in (".", "c_str", ",", "endl"):
            is_hole = True
    if is_hole:
        parts.append(HOLE)
    return "".join(parts)


def _start_of_argument(tokens: Sequence[re.Match[str]], first: int) -> int:
    """Return where the argument begins that contains the first literal."""
    depth = 0
    for number in range(first - 1, -1, -1):
        sign = tokens[number][0]
        depth += {")": 1, "(": -1}.get(sign, 0)
        if sign == "," and depth <= 0:
            return number + 1
    return 0


def _without_alternatives(tokens: Sequence[re.Match[str]]) -> Iterator[re.Match[str] | str]:
    """Yield tokens, with one hole for ``condition ? "one" : "other"``."""
    position = 0
    while position < len(tokens):
        if tokens[position][0] == "?" and position + 3 < len(tokens):
            colon = next(
                (n for n in range(position, min(position + 8, len(tokens))) if tokens[n][0] == ":"),
                None,
            )
            if colon is not None:
                yield "hole"
                position = colon + 2
                continue
        yield tokens[position]
        position += 1


def _literal(token: re.Match[str]) -> str | None:
    if token["raw"] is not None:
        return token["raw"]
    if token["string"] is None:
        return None
    try:
        return str(ast.literal_eval(token["string"]))
    except (SyntaxError, ValueError):
        return token["string"][1:-1]
