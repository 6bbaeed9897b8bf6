"""Reads TOML files that other people wrote, within bounds, with the lines of their keys."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.spelling import did_you_mean, quoted
from constructs_triton_core.untrusted.regular_files import read_regular

__all__ = ["TomlFile"]

_MAX_BYTES = 64 << 10
#: Python's reader takes quadratic time for the parts of a key: half a second for as many.
_MOST_SIGNS = 5_000
_SIGNS = re.compile(r"[.\[{=]")
_PLACE = re.compile(r" \(at line (\d+), column \d+\)| \(at end of document\)")


@dataclass(frozen=True, slots=True)
class TomlFile:
    """A file with its text and its values. Each key of ``keys`` is a part of the way to a value."""

    path: Path
    text: str
    document: Mapping[str, Any]

    @classmethod
    def read(cls, path: Path) -> TomlFile:
        """Read a file of at most 64 KiB and 5,000 keys and tables,
        which is not a link out of its folder.
        """
        try:
            if not is_inside(path, path.parent):
                raise OSError("it is a link that leaves the folder")
            text = read_regular(path, _MAX_BYTES).decode().replace("\r\n", "\n")
        except (OSError, ValueError) as error:
            is_text = isinstance(error, UnicodeDecodeError)
            reason = getattr(error, "strerror", None) or str(error)
            reason = "it is not UTF-8" if is_text else reason.lower()
            raise InvalidValueError(
                f"{path}: cannot be read ({reason}); write a text file of at most "
                f"{_MAX_BYTES >> 10} KiB"
            ) from error
        return cls(path, text, _parse(path, text))

    def place(self, *keys: str) -> str:
        """Return the path of the file with the line of a key."""
        return f"{self.path}:{_line(self.text, keys)}"

    def error(self, keys: Sequence[str], problem: str) -> InvalidValueError:
        """Return the error for the value of a key."""
        return InvalidValueError(f"{self.place(*keys)}: {'.'.join(keys)}: {problem}")

    def malformed(
        self, keys: Sequence[str], value: object, what: str, example: str
    ) -> InvalidValueError:
        """Return the error for a value of another type."""
        return self.error(keys, f"must be {what}, got {_shown(value)}; write {example}")

    def refuse_unknown(
        self, keys: Sequence[str], table: Mapping[str, Any], known: Sequence[str]
    ) -> None:
        """Check the keys of a table, whose own keys are ``keys``."""
        for name in table:
            if name not in known:
                hint = did_you_mean(name, known, f"use {quoted(known)}")
                raise self.error((*keys, name), f"unknown key; {hint}")


def is_inside(path: Path, folder: Path) -> bool:
    """Return whether a path is in a folder when links are followed."""
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))


def _parse(path: Path, text: str) -> dict[str, Any]:
    """Return the content of a TOML file; raises ``InvalidValueError`` with the line."""
    if len(_SIGNS.findall(text)) > _MOST_SIGNS:
        raise InvalidValueError(f"{path}: has more than {_MOST_SIGNS} keys and tables; remove some")
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        # A number of more than 4,300 digits is another ValueError, and lists of lists to any depth
        # the other.
        is_nested = isinstance(error, RecursionError)
        reason = "it is nested too deeply" if is_nested else str(error).partition(";")[0]
        found = _PLACE.search(reason)
        line = f":{found[1]}" if found and found[1] else ""
        raise InvalidValueError(
            f"{path}{line}: is not valid TOML ({_PLACE.sub('', reason)}); correct the file"
        ) from error


def _shown(value: object) -> str:
    for kind, name in ((type(None), "nothing"), (dict, "a table"), (list, "a list")):
        if isinstance(value, kind):  # not its content, which may be nested to any depth
            return name
    text = f'"{value}"' if isinstance(value, str) else repr(value)
    return text if len(text) <= 100 else f"{text[:100]}…"


def _line(text: str, keys: Sequence[str]) -> int:
    """Return the line of a key: that of its first part, then of the next part from there on.

    Python's reader of TOML keeps no places. Of a key that is written in an unusual way, the line is
    that of the part before it.
    """
    lines = text.split("\n")
    found = 0
    for key in keys:
        written = re.compile(rf"""(?<![\w-])["']?{re.escape(key)}["']?(?![\w-])""")
        rest = ((number, lines[number]) for number in range(found, len(lines)))
        places = (
            number for number, line in rest if line.lstrip()[:1] != "#" and written.search(line)
        )
        found = next(places, found)
    return found + 1
