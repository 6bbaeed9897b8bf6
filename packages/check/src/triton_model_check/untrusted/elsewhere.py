"""Notes what a check looked at besides the files of its repository,
so that its findings are not kept.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

_noted: set[str] = set()
_limits = 0


class Notes(NamedTuple):
    """What a process has noted: paths, and how often something exceeded a limit."""

    paths: frozenset[str]
    limits: int


def note_path(path: str, written: str) -> None:
    """Note a path that a check looks at, if what the user has written of it may lead elsewhere."""
    if ".." in written:
        _noted.add(path)


def note_limit() -> None:
    """Note that something exceeded a limit on time or memory:
    what it needs differs from run to run.
    """
    global _limits  # noqa: PLW0603 - one for the process, as the limits are
    _limits += 1


def limits_exceeded() -> int:
    """How often something exceeded a limit so far."""
    return _limits


def noted() -> Notes:
    """What this process has noted so far."""
    return Notes(frozenset(_noted), _limits)


def noted_since(before: Notes) -> Notes:
    """What this process has noted since then."""
    return Notes(frozenset(_noted - before.paths), _limits - before.limits)


def note_again(notes: Notes) -> None:
    """Note here what a copy of this process has noted."""
    global _limits  # noqa: PLW0603 - one for the process, as the limits are
    _noted.update(notes.paths)
    _limits += notes.limits


def looked_elsewhere(directory: str) -> bool:
    """Whether a check of a folder may depend on more than the files in it."""
    roots = {os.path.normpath(Path.cwd() / directory), os.path.realpath(directory)}
    inside = tuple(f"{root}{os.sep}" for root in roots)
    own = (each for each in _noted if each.startswith(f"{directory}{os.sep}"))
    places = (
        place
        for each in own
        for place in (os.path.normpath(Path.cwd() / each), os.path.realpath(each))
    )
    return not all(place.startswith(inside) for place in places)
