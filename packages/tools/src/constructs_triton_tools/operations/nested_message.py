"""Takes apart a message that programs have passed on, each with words of its own around it.

A message of ``InvokeEndpoint`` can contain the answer of a container in JSON, which contains the
exception of a model. The innermost words have the reason, and the outer ones say who passed it on.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import NamedTuple

#: How JSON and Python write a character inside a string.
_ESCAPE = re.compile(r"\\{1,16}(?:u(?P<code>[0-9a-fA-F]{4})|(?P<letter>[\"'ntr/]))")
_SPACES = {"n": " ", "t": " ", "r": " "}
#: How each program introduces a message that it passes on; a group is shown.
_SPEAKERS = (
    ("the API call {}", re.compile(r"when calling the (\w{1,80}) operation")),
    ("container {}", re.compile(r"Received (?:client|server) error \(\d{1,3}\) from (\S{1,80}) ")),
    ("CloudFormation", re.compile(r"Resource handler returned message")),
    ("a custom resource", re.compile(r"Received response status \[FAILED\] from custom resource")),
    ("Triton ({})", re.compile(r"(?<![\w/])([a-z_]{3,60}\.cc):\d{1,5}\]")),
    ("model {}", re.compile(r"Failed to process the request\(s\) for model '([^'\n]{1,80})'")),
    ("ONNX Runtime", re.compile(r"\[ONNXRuntimeError\]|onnx ?runtime (?:error|execute failure)")),
    ("PyTorch", re.compile(r"PyTorch execute failure")),
    ("gRPC with status {}", re.compile(r"StatusCode\.([A-Z_]{2,30})|rpc error: code = (\w{2,30})")),
    ("Docker", re.compile(r"Error response from daemon")),
    ("NVIDIA's container toolkit", re.compile(r"nvidia-container-cli: ")),
    ("Python ({})", re.compile(r"\b([A-Z]\w{0,60}(?:Error|Exception)): ")),
)
_FEWEST_SPEAKERS = 2
#: After these words, a program repeats the message of another one.
_INTRODUCTION = re.compile(
    r"when calling the \w{1,80} operation(?: \([^)\n]{1,60}\))?: "
    r"|Resource handler returned message: |Message returned: |with message \"|Status Message: "
    r"|\b(?:Internal|Invalid argument|Unavailable|Not found|Unsupported|Already exists|Unknown)"
    r"(?:: | - )"
    r"|\b(?:[A-Z]\w{0,60})?(?:Error|Exception): "
    r"|Error response from daemon: |nvidia-container-cli: |rpc error: code = \w{2,30} desc = "
    r"|what\(\): |[Cc]aused by:? |[Rr]eason: |execute failure: |onnx ?runtime error \d{1,3}: "
    r"|last error: |details = \"|failed to do request: "
    r"|\\{0,16}\"(?:error|message|detail)\\{0,16}\": ?\\{0,16}\""
)
#: Of several exceptions of one traceback, the first is the reason of the others.
_NEXT_EXCEPTION = re.compile(
    r"The above exception was the direct cause|During handling of the above exception"
)
_WORD = re.compile(r"[A-Za-z]{3,}")
_FEWEST_WORDS = 2


def without_escapes(text: str) -> str:
    """Return a message without the escapes of JSON, Python and HTML, in the same lines."""
    return html.unescape(_ESCAPE.sub(_character, text))


def _character(found: re.Match[str]) -> str:
    if found["code"]:
        character = chr(int(found["code"], 16))
        return character if character.isprintable() else " "
    return _SPACES.get(found["letter"], found["letter"])


def speakers(text: str) -> tuple[str, ...]:
    """Return the programs that pass a message on, the outermost first; none if there is only one.

    The first exception of Python is the one that the reader sees, and counts once.
    """
    found = sorted(_introductions(text))
    if len(found) < _FEWEST_SPEAKERS:
        return ()
    return tuple(speaker for _, speaker in found)


def _introductions(text: str) -> Iterator[tuple[int, str]]:
    """Yield where each program introduces a message, and its name."""
    for name, pattern in _SPEAKERS:
        match = pattern.search(text)
        if match is not None:
            shown = next((group for group in match.groups() if group), "")
            yield match.start(), name.format(shown)


class InnerMessage(NamedTuple):
    """Where the words that introduce a message inside another one begin, and its text."""

    introduction: int
    text: str


def inner_messages(text: str) -> list[InnerMessage]:
    """Return the messages inside a message, the innermost first."""
    next_exception = _NEXT_EXCEPTION.search(text)
    end = len(text) if next_exception is None else next_exception.start()
    found = []
    for introduction in _INTRODUCTION.finditer(text, 0, end):
        inner = text[introduction.end() :]
        if len(_WORD.findall(inner[:200])) >= _FEWEST_WORDS:
            found.append(InnerMessage(introduction.start(), inner))
    return found[::-1]
