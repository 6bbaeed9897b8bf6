"""Reads and writes ``config.pbtxt`` with protobuf's parser and printer of the text format.

Triton parses the file with protobuf's C++ parser. The Python parser accepts some spellings that the
C++ parser rejects: ``+8``, ``1_000``, ``0o17``, no-break spaces between tokens and unknown escapes.
This module rejects them first. It leaves the rest of the grammar to protobuf.

protobuf's Python parser takes about ten microseconds for each word. A file that would take many
seconds is a fault, because it is not a configuration that a person or a tool wrote for Triton.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from constructs_triton_core.datatypes import DATATYPES
from constructs_triton_core.errors import ModelConfigError
from constructs_triton_core.findings import Finding, Severity
from constructs_triton_core.spelling import closest
from triton_model_check.facts.published import load
from triton_model_check.model_config.schema import (
    enum_values,
    field_names,
    new_model_config,
    read_plain,
)
from triton_model_check.model_config.text_spellings import (
    STRING_OR_COMMENT,
    count_pieces,
    lenient_spellings,
    longest_run,
    respell,
)
from triton_model_check.untrusted.limits import MAX_TEXT_BYTES

__all__ = ["format_model_config", "parse_model_config", "read_text_fault"]

MAX_PIECES = 100_000
_MAX_MESSAGE = 300
_MAX_ESCAPES = 50_000
_MAX_BACKSLASHES = 100  # protobuf needs quadratic time for them
SIZE_CODE = "text-size"
_SIZE_HINT = "make it smaller; move data such as labels into separate files"
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

    The function checks only the syntax: Triton may still reject the configuration.

    Args:
        content: Content of the file.
        path: Path of the file in the error.

    Raises:
        ModelConfigError: Triton's parser would reject the content; ``finding`` has code, line and
            column.
    """
    parsed, fault = read_text_fault(content)
    if fault is None:
        return parsed
    finding = Finding(
        fault.code,
        Severity.ERROR,
        path,
        fault.message,
        fault.hint,
        SOURCE,
        fault.line,
        fault.column,
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
    _reject_large(text)
    plain = read_plain(text)
    return _parse_unusual(text) if plain is None else plain


def _parse_unusual(text: str) -> Any:
    """Parse a text that the fast parser refuses, or raise the explained error."""
    from google.protobuf import text_format

    for start, message, hint in lenient_spellings(text):
        raise _FaultError(TextFault("text-syntax", message, hint, *line_and_column(text, start)))
    while True:
        try:
            return text_format.Parse(text, new_model_config())
        except (text_format.ParseError, UnicodeDecodeError) as error:
            respelled = respell(text)
            if respelled == text:
                fault = _explain(text, error)
                raise _FaultError(fault._replace(message=_shortened(fault.message))) from error
            text = respelled
        except (ValueError, TypeError, OverflowError, RecursionError) as error:
            # protobuf's setters raise these without a place, for example for an enum number beyond
            # 32 bits.
            message = _shortened(f"cannot be parsed: {error}")
            raise _FaultError(
                TextFault("text-syntax", message, "fix the value", None, None)
            ) from error


def _shortened(message: str) -> str:
    return message if len(message) < _MAX_MESSAGE else f"{message[:_MAX_MESSAGE]}..."


def _reject_large(text: str) -> None:
    """Raise what is too large to be parsed within seconds."""
    if len(text) > MAX_TEXT_BYTES:
        raise _FaultError(size_fault())
    if len(text) > MAX_PIECES and count_pieces(text, MAX_PIECES) > MAX_PIECES:
        raise _FaultError(size_fault(f"{MAX_PIECES} words, signs and lines"))
    if text.count("\\") > _MAX_ESCAPES:
        raise _FaultError(size_fault(f"{_MAX_ESCAPES} backslashes"))
    run = longest_run(text, "\\")
    if run > _MAX_BACKSLASHES:
        raise _FaultError(size_fault(f"{_MAX_BACKSLASHES} backslashes in a row, got {run}"))


def size_fault(most: str = f"{MAX_TEXT_BYTES >> 20} MiB") -> TextFault:
    """Return the fault of a file that has more than is allowed."""
    return TextFault(SIZE_CODE, f"must have at most {most}", _SIZE_HINT, None, None)


# --- explaining a parser's error ------------------------------------------------------------------

_UNKNOWN_FIELD = re.compile(r'Message type "inference\.([\w.]+)" has no field named "([^"]*)"')
_UNKNOWN_ENUM = re.compile(r'Enum type "inference\.([\w.]+)" has no value named ([^.]+)')
_TWICE = re.compile(r'should not have multiple "([\w.]+)" fields')
_ONEOF = re.compile(r'Field "(\w+)" is specified along with field "(\w+)"')
_PLACEHOLDER = re.compile(r"\$\{[^{}\n]*\}|\{\{[^{}\n]*\}\}|\{%[^%\n]*%\}|\$[A-Za-z_]\w*")
_PLACE_PREFIX = re.compile(r"^\d+:\d+ : ")


def _explain(text: str, error: Any) -> TextFault:
    """Return the fault that an error of the parser of protobuf means."""
    if isinstance(error, UnicodeDecodeError):
        return TextFault("text-syntax", f"cannot be parsed: {error}", "fix the value", None, None)
    line, column = error.GetLine(), error.GetColumn()
    said = _PLACE_PREFIX.sub("", str(error)).split("\n")[0]
    template = _template_fault(text)
    if template is not None:
        return template
    for explain in (_unknown_field, _unknown_enum, _given_twice, _other_choice):
        fault = explain(said)
        if fault is not None:
            return _without_set_field(TextFault(*fault, line, column), text)
    said = _LINE_ECHO.sub("", said).strip().rstrip(".")
    message = f"syntax error: {said[:1].lower()}{said[1:]}"
    return TextFault("text-syntax", message, _syntax_hint(text, line, column, said), line, column)


_LINE_ECHO = re.compile(r"^'.*': ")  # protobuf repeats the line, which the finding shows anyway


def _template_fault(text: str) -> TextFault | None:
    bare = STRING_OR_COMMENT.sub(lambda match: " " * len(match.group()), text)
    hit = _PLACEHOLDER.search(bare)
    if not hit:
        return None
    message = f"the file is a template with an unfilled placeholder, got {hit.group()}"
    hint = "check the file that your script generates from this template"
    return TextFault("text-template", message, hint, *line_and_column(text, hit.start()))


_MEANT_FIELD = re.compile(r'did you mean "(\w+)"\?')


def _without_set_field(fault: TextFault, text: str) -> TextFault:
    """Return the fault of an unknown field, whose hint does not ask for a field that is set."""
    from triton_model_check.model_config.locations import Locations

    meant = _MEANT_FIELD.fullmatch(fault.hint) if fault.code == "text-unknown-field" else None
    if meant is None or fault.line is None or fault.column is None:
        return fault
    start = sum(len(line) + 1 for line in text.split("\n")[: fault.line - 1]) + fault.column - 1
    if meant[1] not in Locations(text).names_beside(start):
        return fault
    return fault._replace(hint=f'remove it; "{meant[1]}" is set already')


def _unknown_field(said: str) -> tuple[str, str, str] | None:
    """Explain an error about a field that does not exist."""
    match = _UNKNOWN_FIELD.search(said)
    if not match:
        return None
    message_type, name = match.groups()
    guess = closest(name, field_names(message_type))
    hint = f'did you mean "{guess}"?' if guess else "remove it; Triton rejects unknown fields"
    if message_type.endswith("Entry") and not guess:  # the fields of a map are key and value
        value = (
            '{ string_value: "..." }' if message_type == "ModelConfig.ParametersEntry" else '"..."'
        )
        hint = f'write key: "{name}" value: {value}, with its value in place of the dots'
    return "text-unknown-field", f'{message_type} has no field named "{name}"', hint


# The data types as KServe v2, ONNX, PyTorch and Python call them, where that is not similar to
# Triton's name.
_OTHER_TYPE_NAMES = {each.datatype: each.data_type for each in DATATYPES} | load("names")[
    "data_types_elsewhere"
]


def _unknown_enum(said: str) -> tuple[str, str, str] | None:
    """Explain an error about a value that an enum does not have."""
    match = _UNKNOWN_ENUM.search(said)
    if not match:
        return None
    enum_type, name = match.groups()
    values = list(enum_values(enum_type).values())
    if name[:1] in "\"'" and name.strip("\"'") in values:
        return "text-enum", f"an enum value is in quotes, got {name}", "remove the quotes"
    guess = (
        _OTHER_TYPE_NAMES.get(name.upper().removeprefix("TYPE_"))
        if enum_type == "DataType"
        else None
    )
    guess = guess or closest(name, values)
    hint = f"did you mean {guess}?" if guess else f"write one of {', '.join(values)}"
    return "text-enum", f"{enum_type} has no value named {name}", hint


def _given_twice(said: str) -> tuple[str, str, str] | None:
    match = _TWICE.search(said)
    name = match and match[1].rsplit(".", 1)[-1]
    message = f'non-repeated field "{name}" is specified multiple times'
    return ("text-field-twice", message, "remove all but one") if match else None


def _other_choice(said: str) -> tuple[str, str, str] | None:
    match = _ONEOF.search(said)
    message = match and f"{match[1]} is specified along with {match[2]}, which excludes it"
    return ("text-one-of", message, "remove one of the two") if message else None


def _syntax_hint(text: str, line: int | None, column: int | None, said: str) -> str:
    """Return how to fix the text at the place of a syntax error."""
    lines = text.split("\n")
    rest = lines[line - 1][(column or 1) - 1 :].lstrip() if line and line <= len(lines) else ""
    if said.startswith("Couldn't parse"):
        kind = "a whole number" if "integer" in said else "a number"
        return (
            "remove the comma before it"
            if rest[:1] == "]"
            else f"write {kind} without quotes and units"
        )
    if said == 'Expected ","':
        if rest[:1] in ("}", ""):
            return 'close the list with "]" before it'
        return 'close the list above with "]"' if rest[:1].isalpha() else 'write "," before it'
    if rest.startswith("//"):
        return "start comments with #"
    if text.lstrip().startswith("{"):
        return "write the protobuf text format instead of JSON"
    return "correct the line; see https://protobuf.dev/reference/protobuf/textformat-spec/"


def line_and_column(text: str, offset: int) -> tuple[int, int]:
    """Return the line and column of a character, counted from 1."""
    line = text.count("\n", 0, offset) + 1
    return line, offset - (text.rfind("\n", 0, offset) + 1) + 1


# --- writing --------------------------------------------------------------------------------------


def format_model_config(message: Any) -> str:
    """Return the content of ``config.pbtxt`` for a message.

    Fields are in the order of the schema, and maps are sorted by key. Equal messages give equal
    text, and parsing it gives an equal message. ``platform: "ensemble"`` has one space and double
    quotes, because the loader of SageMaker's multi-model endpoints recognizes an ensemble by that
    text.

    Args:
        message: ``inference.ModelConfig`` message.
    """
    from google.protobuf import text_format

    text: str = text_format.MessageToString(
        message, use_short_repeated_primitives=True, use_index_order=True, as_utf8=True
    )
    return text
