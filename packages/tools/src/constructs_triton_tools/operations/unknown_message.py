"""What can be said of a message that no entry of the catalogue explains, and what to collect."""

from __future__ import annotations

import re
from typing import NamedTuple

from constructs_triton_tools.operations.nested_message import speakers, without_escapes

#: A frame of a traceback, in the form of Python and in that of the Python backend.
_FRAME = re.compile(
    r"File \"(?P<file>[^\"]{1,500})\", line (?P<line>\d+)"
    r"|(?P<stub_file>/[^\s(]{1,500}\.py)\((?P<stub_line>\d+)\): "
)
_EXCEPTION = re.compile(r"(?:^|[\s:])(?P<name>[A-Z]\w*(?:Error|Exception)): (?P<text>[^\n]{1,200})")
#: Triton's own file and line, before a message in its log. Other programs write whole paths.
_TRITON_FILE = re.compile(r"(?<![\w/])(?P<file>[a-z_]+\.(?:cc|h)):\d+\]")
_STATUS = re.compile(
    r"\b(?P<status>Internal|Invalid argument|Unavailable|Not found|Unsupported|Already exists"
    r"|Unknown)(?:: | - )"
)
#: What Triton means with a status, by ``core/src/status.h``.
_MEANINGS = {
    "Invalid argument": "a value of the request or of the configuration is refused",
    "Not found": "a file, a model or a name does not exist",
    "Unavailable": "something is missing now, such as memory, a file or a ready model",
    "Unsupported": "this release or build cannot do what is asked",
    "Already exists": "a name is there twice",
    "Internal": "the model, its backend or a library failed",
    "Unknown": "a library failed, and its words follow",
}
_LIBRARIES = ("site-packages/", "dist-packages/", "/lib/python")
_LOG = "the log of the container from its start, with --log-verbose=1 (`diagnose --log-file FILE`)"


class Reading(NamedTuple):
    """What is known of a message, and the next step."""

    known: str
    step: str


def read_unknown(text: str) -> Reading:
    """Return who wrote a message and which file it blames, as far as its form shows."""
    text = without_escapes(text)
    blamed = _blamed_file(text)
    # The last exception is the one that was not handled.
    exceptions = list(_EXCEPTION.finditer(text))
    if exceptions:
        found = exceptions[-1]
        known = f"Python raised {found['name']}: {found['text'].strip()}"
        step = f"look at {blamed}" if blamed else f"collect its whole traceback, or {_LOG}"
        return Reading(f"{known}, in {blamed}" if blamed else known, step)
    facts = []
    triton_file = _TRITON_FILE.search(text)
    if triton_file is not None:
        facts.append(f"Triton wrote it ({triton_file['file']} is a file of the server, not yours)")
    status = _STATUS.search(text)
    if status is not None:
        facts.append(f'its status "{status["status"]}" means that {_MEANINGS[status["status"]]}')
    if not facts and speakers(text):
        facts.append(f"it was passed on by {', '.join(speakers(text))}")
    if facts:
        return Reading("; ".join(facts), f"collect {_LOG}")
    return Reading("", f"give the whole message, or {_LOG}")


def _blamed_file(text: str) -> str:
    """Return the innermost frame that is not of an installed package."""
    frames = []
    for frame in _FRAME.finditer(text):
        path = frame["file"] or frame["stub_file"]
        if not path.startswith("<") and not any(part in path for part in _LIBRARIES):
            frames.append(f"{path}, line {frame['line'] or frame['stub_line']}")
    return frames[-1] if frames else ""
