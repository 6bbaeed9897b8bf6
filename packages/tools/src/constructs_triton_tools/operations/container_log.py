"""Selects the lines of a container's log that can explain a failure.

The work is bounded: the end of a long log, the beginning of a long line, and each line once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from constructs_triton_core.facts.failures import harmless_lines

_LAST_LINES = 20_000
_LINE_CHARACTERS = 4_000
_DISTINCT_LINES = 4_000
#: Of all messages together. Each is compared with hundreds of patterns, which takes half a second
#: for one of the longest.
_MESSAGE_CHARACTERS = 2 << 20
#: The number of lines that belong to one message at most: a script's error and its explanation.
_MESSAGE_LINES = 3
#: The image writes this at each start of the server.
_BANNER = "== Triton Inference Server =="
#: It follows in the banner.
_RELEASE = re.compile(r"NVIDIA Release (\d\d\.\d\d) ")
#: The server writes this when it is ready.
_READY = re.compile(r"Started (?:Sage[mM]aker )?HTTPService at")
#: Triton's severity and date, ``E1121 17:53:13``, perhaps after a time stamp and a stream's name.
_TRITON_LINE = re.compile(r"(?:^|\s)([IWEF])\d{4} \d\d:\d\d:\d\d|^\d{4}-\d\d-\d\dT\S+ ([IWEF]) ")
#: A line of the tables that the server prints at each start: backends, models and options.
_TABLE = re.compile(r"\s*(?:\+-[-+]*\+|\| .* \|)\s*$")
#: A version of a model that begins to load, and one whose load has ended in either way. On
#: SageMaker, the path of the repository and two colons are before the name.
_LOADING = re.compile(r"\bloading: (?:\S*::)?(?P<model>[^:\s\"]+):(?P<version>\d+)\"?$")
#: Only some releases write the version.
_LOAD_ENDED = re.compile(
    r"(?:successfully loaded|failed to load) '(?:[^']*::)?(?P<model>[^']+)'"
    r"(?: version (?P<version>\d+))?"
)
#: The Python backend writes this with the severity information, although the model fails.
_FAILED_STUB = "Failed to initialize Python stub"
#: Words of a line that reports an error, in the log of any program.
_ERROR_WORDS = re.compile(
    r"(?i)\b(?:error|fail(?:ed|ure)?|fatal|denied|refused|invalid|cannot|unable)\b"
    r"|(?:Error|Exception): "
)
#: The level that Python's ``logging`` writes.
_PYTHON_LEVEL = re.compile(r"^(?:\S+ ){0,3}\W?(?:DEBUG|INFO|WARNING)\b")


def starts(log: str) -> Iterator[list[str]]:
    """Yield the lines that can explain a failure for each start of the container,
    the last start first. All lines together have at most 2 MiB.
    """
    left = _MESSAGE_CHARACTERS
    lines = [line.rstrip()[:_LINE_CHARACTERS] for line in log.splitlines()[-_LAST_LINES:]]
    for start in reversed(_split(lines)):
        messages = list(_explaining(start, left))
        left -= sum(map(len, messages))
        yield messages


def release(log: str) -> str | None:
    """Return the Triton release of the last start, which an image writes first;
    ``None`` if there is none.
    """
    found = _RELEASE.findall(log)
    return found[-1] if found else None


def still_loading(log: str) -> list[tuple[str, str]]:
    """Return the models with their versions that began to load in the last start of the container,
    and neither loaded nor failed.
    """
    loading: set[tuple[str, str]] = set()
    for line in _split(log.splitlines()[-_LAST_LINES:])[-1]:
        begins = _LOADING.search(line[:_LINE_CHARACTERS].rstrip())
        if begins is not None:
            loading.add((begins["model"], begins["version"]))
        ends = _LOAD_ENDED.search(line[:_LINE_CHARACTERS])
        if ends is not None:
            loading -= {
                (model, version)
                for model, version in loading
                if model == ends["model"] and ends["version"] in (None, version)
            }
    return sorted(loading)


def unexplained_error(log: str) -> str | None:
    """Return the last line of the last start that reports an error; ``None`` if there is none."""
    last_start = next(iter(starts(log)), None)
    if last_start is None:
        return None
    last_error = None
    for message in last_start:
        first_line = message.partition("\n")[0]
        if can_explain(first_line) and _reports_error(first_line):
            last_error = first_line.strip()
    return last_error


def _reports_error(line: str) -> bool:
    """Whether Triton logged a line as an error, or the line has a word for one."""
    return _severity(line) == "E" or _ERROR_WORDS.search(line) is not None


def can_explain(line: str) -> bool:
    """Whether a line is neither empty, nor information or a warning, nor written at every start."""
    is_table = _TABLE.match(line) is not None and "UNAVAILABLE" not in line
    return bool(line.strip()) and not (is_table or _is_harmless(line) or is_informational(line))


def is_informational(line: str) -> bool:
    """Whether a line has the severity information or warning, and says nothing of a failure."""
    if _FAILED_STUB in line:
        return False
    severity = _severity(line)
    return severity in ("I", "W") or (severity == "" and _PYTHON_LEVEL.match(line) is not None)


def _severity(line: str) -> str:
    """Return the letter with which Triton begins a line, such as ``E``; ``""`` if it has none."""
    found = _TRITON_LINE.search(line[:200])
    if found is None:
        return ""
    return found[1] or found[2]


def _split(lines: Sequence[str]) -> list[Sequence[str]]:
    """Split a log into the starts of its container."""
    begins = [0, *(number for number, line in enumerate(lines) if number and _BANNER in line)]
    return [lines[begin:end] for begin, end in zip(begins, [*begins[1:], len(lines)], strict=True)]


def _explaining(lines: Sequence[str], most_characters: int) -> Iterator[str]:
    ready = next((number for number, line in enumerate(lines) if _READY.search(line)), 0)
    seen: set[str] = set()
    left = most_characters
    for number, line in enumerate(lines):
        # A server that became ready did not fail because of what a model or a script printed
        # before.
        if not line.strip() or _is_harmless(line) or (number < ready and _severity(line) != "E"):
            continue
        shape = re.sub(r"\d+", "0", line)
        if shape not in seen:
            message = "\n".join([line, *_continuation(lines[number + 1 : number + _MESSAGE_LINES])])
            left -= len(message)
            if left < 0:
                return
            seen.add(shape)
            yield message
        if len(seen) == _DISTINCT_LINES:
            return


def _continuation(lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        if _severity(line):
            return
        yield line


def _is_harmless(line: str) -> bool:
    return any(part in line for part in harmless_lines())
