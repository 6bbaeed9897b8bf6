"""Texts of an editor that are not saved: a check reads them in place of the files on disk.

They count for one thread, inside a ``with`` block, so that nothing is written to a repository.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["unsaved_content", "unsaved_files", "unsaved_names"]

_NONE: Mapping[str, bytes] = {}
_unsaved: ContextVar[Mapping[str, bytes]] = ContextVar("unsaved files", default=_NONE)


@contextmanager
def unsaved_files(files: Mapping[str, bytes]) -> Iterator[None]:
    """Let reads of these paths return this content; the files and their folders need not exist."""
    token = _unsaved.set(files)
    try:
        yield
    finally:
        _unsaved.reset(token)


def unsaved_content(path: str) -> bytes | None:
    """Return what an editor has for a file, or ``None``."""
    return _unsaved.get().get(path)


def unsaved_names(folder: str) -> dict[str, bool]:
    """Return the names in a folder that only an editor may have, and whether each is a folder."""
    names: dict[str, bool] = {}
    for path in _unsaved.get():
        if path.startswith(f"{folder}{os.sep}"):
            name, below, _ = path[len(folder) + 1 :].partition(os.sep)
            names[name] = bool(below)
    return names
