"""``config.pbtxt`` as text: read with protobuf's own text format parser, written as a person would.

Triton reads the file with the C++ text format parser. protobuf's Python parser is more lenient in a few
spellings (``+8``, ``1_000``, ``0o17``, no-break spaces between tokens, unknown escapes); these are looked for
beforehand and refused as the server refuses them. Nothing else about the grammar is decided here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from constructs_triton.errors import ModelConfigError
from constructs_triton.findings import Finding, Severity
from constructs_triton.model_config.schema import load_schema, new_model_config
from constructs_triton.spelling import closest

__all__ = ["TextFault", "format_model_config", "parse_model_config", "read_text_fault"]

SOURCE = "triton core ReadTextProto; protobuf C++ text format"


class TextFault(NamedTuple):
    """Why a text is no model configuration, and where; ``line`` and ``column`` count from 1."""

    code: str
    message: str
    hint: str
    line: int | None
    column: int | None


class _FaultError(Exception):
    def __init__(self, fault: TextFault) -> None:
        super().__init__(fault.message)
        self.fault = fault


def parse_model_config(content: bytes | str, path: str = "config.pbtxt") -> Any:
    """The ``inference.ModelConfig`` that the text of a ``config.pbtxt`` describes.

    ``path`` is what the error names. Nothing but the text is judged: a configuration that parses may still
    be refused by the server.

    :raises ModelConfigError: with code, line and column, where Triton's own parser would refuse the text.
    """
    parsed, fault = read_text_fault(content)
    if fault is None:
        return parsed
    finding = Finding(
        fault.code, Severity.ERROR, path, fault.message, fault.hint, SOURCE, fault.line, fault.column
    )
    raise ModelConfigError(finding)


def read_text_fault(content: bytes | str) -> tuple[Any, TextFault | None]:
    """The message, or why there is none: ``(message, None)`` or ``(None, fault)``."""
    try:
        return _parse(decode(content)), None
    except _FaultError as error:
        return None, error.fault


def decode(content: bytes | str) -> str:
    """The text; bytes that are no UTF-8 are kept one to one, since Triton minds them no more than we do."""
    if isinstance(content, str):
        return content
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return content.decode("latin-1")


def _parse(text: str) -> Any:
    from google.protobuf import text_format  # noqa: PLC0415 - 40 ms, needed only once a config is read

    _refuse_lenient_spellings(text)
    while True:
        try:
            return text_format.Parse(text, new_model_config())
        except text_format.ParseError as error:
            respelt = _respell(text, error)
            if respelt == text:
                raise _FaultError(_explain(text, error)) from error
            text = respelt
        except (ValueError, TypeError, OverflowError, RecursionError) as error:
            # An enum number beyond 32 bits and the like: protobuf's setters raise these, without a place.
            fault = TextFault("text-syntax", f"cannot be read: {error}", "correct the value", None, None)
            raise _FaultError(fault) from error


# --- what the Python parser lets pass and the server's does not -------------------------------------------

# A cheap look over the whole text first; only a hit pays for the exact look without strings and comments.
_SUSPECT = re.compile(r"[^\x20-\x7e\t\n\r\v\f]|\\|[:\[,]\s*(?:\+|-0|[-.\d]+[\w.]*_|-?0[oObB])")
_STRING_OR_COMMENT = re.compile(r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|#[^\n]*')
_LENIENT = (
    (re.compile(r"\ufeff"), "starts with a UTF-8 byte order mark", "save the file without it"),
    (re.compile(r"[^\x00-\x7f]"), "character outside ASCII between tokens", "retype the blank or the sign"),
    (re.compile(r"[^\x20-\x7e\t\n\r\v\f]"), "control character between tokens", "remove it"),
    (re.compile(r"(?<=[:\[,\s])\+(?=[\d.])"), "a number with a plus sign", "leave the plus sign out"),
    (
        re.compile(r"(?<=[:\[,\s])-?\d[\dA-Fa-fxX]*_\w*"),
        "a number with an underscore",
        "write the digits without it",
    ),
    (
        re.compile(r"(?<=[:\[,\s])-?0[oObB]\w*"),
        "a number in Python's octal or binary form",
        "write it in decimal",
    ),
)
_BAD_ESCAPE = re.compile(
    r"""\\(?![abfnrtv\\?'"0-7]|x[0-9A-Fa-f]|u[0-9A-Fa-f]{4}|U00(?:0|10)[0-9A-Fa-f]{4})"""
)


def _refuse_lenient_spellings(text: str) -> None:
    if not _SUSPECT.search(text):
        return
    for start, fault in _lenient_spellings(text):
        raise _FaultError(_at(text, start, *fault))


def _lenient_spellings(text: str) -> Iterator[tuple[int, tuple[str, str]]]:
    nul = text.find("\0")
    if nul >= 0:
        yield nul, ("a NUL byte", "remove it; is this a text file?")
    for string in _STRING_OR_COMMENT.finditer(text):
        escape = None if string.group().startswith("#") else _first_bad_escape(string.group())
        if escape is not None:
            yield string.start() + escape, ("unknown escape in a string", r"write a backslash as \\")
    bare = _STRING_OR_COMMENT.sub(lambda match: '"' + " " * (len(match.group()) - 1), text)
    for pattern, what, mend in _LENIENT:
        hit = pattern.search(bare)
        if hit:
            yield hit.start(), (f"{what}, got {hit.group()!r}", mend)


_MINUS_BLANK = re.compile(r"-(\s+)(?=[\d.])")
_BOOLEAN_NUMBER = re.compile(r"0[xX]?0*(?=[01]\b)")


def _respell(text: str, error: Any) -> str:
    """What only the server's parser reads, spelt for Python's: ``- 1``, and a boolean as ``0x1`` or ``01``.

    Every character keeps its place.
    """
    line, column = error.GetLine(), error.GetColumn()
    if line is None or column is None:
        return text
    start = sum(len(part) + 1 for part in text.split("\n")[: line - 1]) + column - 1
    rest = text[start:]
    blank = _MINUS_BLANK.match(rest)
    if blank:
        return f"{text[:start]}{blank.group(1)}-{rest[blank.end() :]}"
    number = _BOOLEAN_NUMBER.match(rest)
    if number and 'Expected "true" or "false"' in str(error):
        return f"{text[:start]}{' ' * number.end()}{rest[number.end() :]}"
    return text


def _first_bad_escape(string: str) -> int | None:
    # Pairs of backslashes are blanked, so that the second one of a pair starts no escape.
    hit = _BAD_ESCAPE.search(string.replace("\\\\", "  "))
    return hit.start() if hit else None


# --- explaining a parser's error --------------------------------------------------------------------------

_UNKNOWN_FIELD = re.compile(r'Message type "inference\.([\w.]+)" has no field named "([^"]*)"')
_UNKNOWN_ENUM = re.compile(r'Enum type "inference\.([\w.]+)" has no value named ([^.]+)')
_TWICE = re.compile(r'should not have multiple "([\w.]+)" fields')
_ONEOF = re.compile(r'Field "(\w+)" is specified along with field "(\w+)"')
_PLACEHOLDER = re.compile(r"\$\{[^}\n]*\}|\{\{[^}\n]*\}\}|\{%[^%\n]*%\}|\$[A-Za-z_]\w*")
_PLACE_PREFIX = re.compile(r"^\d+:\d+ : ")


def _explain(text: str, error: Any) -> TextFault:
    line, column = error.GetLine(), error.GetColumn()
    said = _PLACE_PREFIX.sub("", str(error)).split("\n")[0]
    template = _template_fault(text)
    if template is not None:
        return template
    for explain in (_unknown_field, _unknown_enum, _given_twice, _other_choice):
        told = explain(said)
        if told is not None:
            return TextFault(*told, line, column)
    said = _LINE_ECHO.sub("", said).strip().rstrip(".")
    return TextFault(
        "text-syntax",
        f"syntax error: {said[:1].lower()}{said[1:]}",
        _syntax_hint(text, line, column),
        line,
        column,
    )


_LINE_ECHO = re.compile(r"^'.*': ")  # protobuf repeats the line; the finding's place tells it


def _template_fault(text: str) -> TextFault | None:
    bare = _STRING_OR_COMMENT.sub(lambda match: " " * len(match.group()), text)
    hit = _PLACEHOLDER.search(bare)
    if not hit:
        return None
    line, column = line_and_column(text, hit.start())
    message = f"is a template with an unfilled placeholder, got {hit.group()}"
    return TextFault("text-template", message, "fill the template in and check the result", line, column)


def _unknown_field(said: str) -> tuple[str, str, str] | None:
    match = _UNKNOWN_FIELD.search(said)
    if not match:
        return None
    message_type, name = match.groups()
    fields = _fields_of(message_type)
    guess = closest(name, fields)
    hint = f'did you mean "{guess}"?' if guess else "remove it; Triton refuses fields that it does not know"
    return "text-unknown-field", f'{message_type} has no field "{name}"', hint


def _fields_of(message_type: str) -> list[str]:
    try:
        pool = load_schema().DESCRIPTOR.pool
        return [field.name for field in pool.FindMessageTypeByName(f"inference.{message_type}").fields]
    except KeyError:
        return []


def _unknown_enum(said: str) -> tuple[str, str, str] | None:
    match = _UNKNOWN_ENUM.search(said)
    if not match:
        return None
    enum_type, name = match.groups()
    values = [
        value.name
        for value in load_schema().DESCRIPTOR.pool.FindEnumTypeByName(f"inference.{enum_type}").values
    ]
    if name[:1] in "\"'" and name.strip("\"'") in values:
        return "text-enum", f"an enum value stands in quotes, got {name}", "write it without quotes"
    guess = closest(name, values)
    hint = f"did you mean {guess}?" if guess else f"write one of {', '.join(values)}"
    return "text-enum", f"{enum_type} has no value {name}", hint


def _given_twice(said: str) -> tuple[str, str, str] | None:
    match = _TWICE.search(said)
    if not match:
        return None
    name = match.group(1).rsplit(".", 1)[-1]
    return "text-field-twice", f"{name} is given twice", "keep one of them"


def _other_choice(said: str) -> tuple[str, str, str] | None:
    match = _ONEOF.search(said)
    if not match:
        return None
    first, second = match.groups()
    return "text-one-of", f"{first} and {second} exclude each other", "keep one of them"


def _syntax_hint(text: str, line: int | None, column: int | None) -> str:
    lines = text.split("\n")
    rest = lines[line - 1][(column or 1) - 1 :].lstrip() if line and line <= len(lines) else ""
    if rest.startswith("//"):
        return "comments start with #"
    if text.lstrip().startswith("{"):
        return "write protobuf text format, not JSON"
    return "see the protobuf text format"


def line_and_column(text: str, offset: int) -> tuple[int, int]:
    """The place of a character, counted from 1."""
    line = text.count("\n", 0, offset) + 1
    return line, offset - (text.rfind("\n", 0, offset) + 1) + 1


def _at(text: str, offset: int, message: str, hint: str) -> TextFault:
    return TextFault("text-syntax", message, hint, *line_and_column(text, offset))


# --- writing ----------------------------------------------------------------------------------------------


def format_model_config(message: Any) -> str:
    """``config.pbtxt`` for a message: fields in the schema's order, maps by key, one tensor a block.

    The same message always gives the same bytes, and reading them gives an equal message. ``platform:
    "ensemble"`` is spelt with exactly one space and double quotes: the multi-model loader of SageMaker's
    front end recognises an ensemble by that text.
    """
    from google.protobuf import text_format  # noqa: PLC0415 - see above

    text: str = text_format.MessageToString(
        message, use_short_repeated_primitives=True, use_index_order=True, as_utf8=True
    )
    return text
