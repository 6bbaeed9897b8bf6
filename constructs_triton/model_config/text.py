"""Reads and writes ``config.pbtxt`` with protobuf's parser and printer of the text format.

Triton parses the file with protobuf's C++ parser. The Python parser accepts some spellings that the C++
parser rejects: ``+8``, ``1_000``, ``0o17``, no-break spaces between tokens and unknown escapes. This module
rejects them first. It leaves the rest of the grammar to protobuf.
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
    """Why a file cannot be parsed, and where; ``line`` and ``column`` count from 1."""

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
    """Parse the content of a ``config.pbtxt`` into an ``inference.ModelConfig`` message.

    ``path`` is the path in the error. The function checks only the syntax: Triton may still reject the
    configuration.

    Raises:
        ModelConfigError: Triton's parser would reject the content; ``finding`` has code, line and column.
    """
    parsed, fault = read_text_fault(content)
    if fault is None:
        return parsed
    finding = Finding(
        fault.code, Severity.ERROR, path, fault.message, fault.hint, SOURCE, fault.line, fault.column
    )
    raise ModelConfigError(finding)


def read_text_fault(content: bytes | str) -> tuple[Any, TextFault | None]:
    """Return ``(message, None)``, or ``(None, fault)`` if the content cannot be parsed."""
    try:
        return _parse(decode(content)), None
    except _FaultError as error:
        return None, error.fault


def decode(content: bytes | str) -> str:
    """Return the content as a string; like Triton, accept bytes that are not UTF-8."""
    if isinstance(content, str):
        return content
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return content.decode("latin-1")


def _parse(text: str) -> Any:
    from google.protobuf import text_format  # noqa: PLC0415 - 40 ms, needed only once a config is read

    _reject_lenient_spellings(text)
    while True:
        try:
            return text_format.Parse(text, new_model_config())
        except text_format.ParseError as error:
            respelled = _respell(text, error)
            if respelled == text:
                raise _FaultError(_explain(text, error)) from error
            text = respelled
        except (ValueError, TypeError, OverflowError, RecursionError) as error:
            # protobuf's setters raise these without a place, for example for an enum number beyond 32 bits.
            fault = TextFault("text-syntax", f"cannot be parsed: {error}", "fix the value", None, None)
            raise _FaultError(fault) from error


# --- what the Python parser accepts and Triton's rejects --------------------------------------------------

# A fast search of the whole text; only after a hit follows the exact search outside strings and comments.
_SUSPECT = re.compile(r"[^\x20-\x7e\t\n\r\v\f]|\\|[:\[,]\s*(?:\+|-0|[-.\d]+[\w.]*_|-?0[oObB])")
_STRING_OR_COMMENT = re.compile(r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|#[^\n]*')
_LENIENT = (
    (
        re.compile(r"\ufeff"),
        "starts with a UTF-8 byte order mark",
        "save the file as UTF-8 without byte order mark",
    ),
    (
        re.compile(r"[^\x00-\x7f]"),
        "a character outside ASCII between tokens",
        "replace it by an ASCII character",
    ),
    (re.compile(r"[^\x20-\x7e\t\n\r\v\f]"), "a control character between tokens", "remove it"),
    (re.compile(r"(?<=[:\[,\s])\+(?=[\d.])"), "a number with a plus sign", "remove the plus sign"),
    (
        re.compile(r"(?<=[:\[,\s])-?\d[\dA-Fa-fxX]*_\w*"),
        "a number with an underscore",
        "remove the underscore",
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


def _reject_lenient_spellings(text: str) -> None:
    if not _SUSPECT.search(text):
        return
    for start, fault in _lenient_spellings(text):
        raise _FaultError(_at(text, start, *fault))


def _lenient_spellings(text: str) -> Iterator[tuple[int, tuple[str, str]]]:
    nul = text.find("\0")
    if nul >= 0:
        yield nul, ("a NUL byte", "save the file as text, in UTF-8")
    for string in _STRING_OR_COMMENT.finditer(text):
        escape = None if string.group().startswith("#") else _first_bad_escape(string.group())
        if escape is not None:
            yield string.start() + escape, ("a string contains an unknown escape", r"write a backslash as \\")
    bare = _STRING_OR_COMMENT.sub(lambda match: '"' + " " * (len(match.group()) - 1), text)
    for pattern, what, hint in _LENIENT:
        hit = pattern.search(bare)
        if hit:
            yield hit.start(), (f"{what}, got {hit.group()!r}", hint)


_MINUS_BLANK = re.compile(r"-(\s+)(?=[\d.])")
_BOOLEAN_NUMBER = re.compile(r"0[xX]?0*(?=[01]\b)")


def _respell(text: str, error: Any) -> str:
    """Rewrite what only Triton's parser accepts: ``- 1``, and a boolean as ``0x1`` or ``01``.

    All other characters keep their line and column.
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
    # Replaces pairs of backslashes, because the second one of a pair does not start an escape.
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
        fault = explain(said)
        if fault is not None:
            return TextFault(*fault, line, column)
    said = _LINE_ECHO.sub("", said).strip().rstrip(".")
    return TextFault(
        "text-syntax",
        f"syntax error: {said[:1].lower()}{said[1:]}",
        _syntax_hint(text, line, column),
        line,
        column,
    )


_LINE_ECHO = re.compile(r"^'.*': ")  # protobuf repeats the line, which the finding shows anyway


def _template_fault(text: str) -> TextFault | None:
    bare = _STRING_OR_COMMENT.sub(lambda match: " " * len(match.group()), text)
    hit = _PLACEHOLDER.search(bare)
    if not hit:
        return None
    line, column = line_and_column(text, hit.start())
    message = f"the file is a template with an unfilled placeholder, got {hit.group()}"
    return TextFault(
        "text-template", message, "check the file that your script generates from this template", line, column
    )


def _unknown_field(said: str) -> tuple[str, str, str] | None:
    match = _UNKNOWN_FIELD.search(said)
    if not match:
        return None
    message_type, name = match.groups()
    fields = _fields_of(message_type)
    guess = closest(name, fields)
    hint = f'did you mean "{guess}"?' if guess else "remove it; Triton rejects unknown fields"
    return "text-unknown-field", f'{message_type} has no field named "{name}"', hint


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
        return "text-enum", f"an enum value is in quotes, got {name}", "remove the quotes"
    guess = closest(name, values)
    hint = f"did you mean {guess}?" if guess else f"write one of {', '.join(values)}"
    return "text-enum", f"{enum_type} has no value named {name}", hint


def _given_twice(said: str) -> tuple[str, str, str] | None:
    match = _TWICE.search(said)
    if not match:
        return None
    name = match.group(1).rsplit(".", 1)[-1]
    return (
        "text-field-twice",
        f'non-repeated field "{name}" is specified multiple times',
        "remove all but one",
    )


def _other_choice(said: str) -> tuple[str, str, str] | None:
    match = _ONEOF.search(said)
    if not match:
        return None
    first, second = match.groups()
    return (
        "text-one-of",
        f"{first} is specified along with {second}, which excludes it",
        "remove one of the two",
    )


def _syntax_hint(text: str, line: int | None, column: int | None) -> str:
    lines = text.split("\n")
    rest = lines[line - 1][(column or 1) - 1 :].lstrip() if line and line <= len(lines) else ""
    if rest.startswith("//"):
        return "start comments with #"
    if text.lstrip().startswith("{"):
        return "write the protobuf text format instead of JSON"
    return "correct the line; see https://protobuf.dev/reference/protobuf/textformat-spec/"


def line_and_column(text: str, offset: int) -> tuple[int, int]:
    """Return the line and column of a character, counted from 1."""
    line = text.count("\n", 0, offset) + 1
    return line, offset - (text.rfind("\n", 0, offset) + 1) + 1


def _at(text: str, offset: int, message: str, hint: str) -> TextFault:
    return TextFault("text-syntax", message, hint, *line_and_column(text, offset))


# --- writing ----------------------------------------------------------------------------------------------


def format_model_config(message: Any) -> str:
    """Return the content of ``config.pbtxt`` for a message.

    Fields are in the order of the schema, and maps are sorted by key. Equal messages give equal text, and
    parsing it gives an equal message. ``platform: "ensemble"`` has one space and double quotes, because the
    loader of SageMaker's multi-model endpoints recognizes an ensemble by that text.
    """
    from google.protobuf import text_format  # noqa: PLC0415 - see above

    text: str = text_format.MessageToString(
        message, use_short_repeated_primitives=True, use_index_order=True, as_utf8=True
    )
    return text
