"""Refuses lines of requirements that would run code of a package, read other files, or contain a
password.

The lines may come from another person: from a file, or from the lock file in an archive. uv also
gets the option to build nothing; this does not rely on it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from constructs_triton_core.errors import InvalidValueError

__all__ = ["check_lines"]

_CONTROL = re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029]")  # a line break would begin another line
_EDITABLE = re.compile(r"-e|--editable")
_FILE_OPTION = re.compile(r"-[rc]|--(?:requirement|constraint)")
_URL_WITH_PASSWORD = re.compile(r"://[^/\s@:]*:[^/\s@]+(?<!\})@")
_USER = re.compile(r"://[^@]*@")
_MARKER = re.compile(r"\s;|\s--hash\b")
_NAMED = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\s*+(?:\[[^\]]*\]\s*+)?@\s*+(.+)")


def check_lines(place: str, lines: Iterable[str]) -> None:
    """Check lines of a requirements file, whose own ``-r`` and ``-c`` have been replaced by their
    content.

    Raises:
        InvalidValueError: a line is not accepted.
    """
    for line in lines:
        if _CONTROL.search(line):
            raise InvalidValueError(
                f"{place}: contains a control character, got {line!r}; remove it"
            )
        if _EDITABLE.match(line):
            raise InvalidValueError(
                f"{place}: editable packages cannot be packed, got {line!r}; build a wheel with "
                "`uv build --wheel`, and write the path of the wheel"
            )
        if _FILE_OPTION.match(line):
            raise InvalidValueError(
                f"{place}: names another file where only packages can be, got {line!r}; write the "
                "packages of that file into a requirements.txt"
            )
        if _URL_WITH_PASSWORD.search(line):
            # Each "://" is followed by an "@" in this part, so the line is read once.
            hidden, last, rest = line.rpartition("@")
            shown = _USER.sub("://***@", hidden + last) + rest
            raise InvalidValueError(
                f"{place}: contains a password, which the lock file and the archive would contain "
                f"too, got {shown!r}; remove it from the URL, and put it into ~/.netrc or an "
                "environment variable: https://${USER}:${PASSWORD}@host/simple"
            )
        if (source := _source(line)) is not None and not source.endswith(".whl"):
            raise InvalidValueError(
                f"{place}: only a wheel can be named by a path or URL, got {line!r}; build one "
                "with `uv build --wheel`, or `pip wheel --no-deps`, and write its path"
            )


def _source(line: str) -> str | None:
    """Return the path or URL that a line names in place of a version,
    without fragment and extras.
    """
    if line.startswith("-"):
        return None
    requirement = _MARKER.split(line, maxsplit=1)[0]
    named = _NAMED.fullmatch(requirement)
    if named is None and not re.search(r"[/\\]|\.(?:whl|zip|gz)\b", requirement.partition(";")[0]):
        return None
    source = (named[1] if named is not None else requirement).partition("#")[0].strip()
    return re.sub(r"\[[^\[\]]*\]$", "", source)
