"""Sees when the files of a local run change."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

from triton_model_check.model_repository.ignore import IGNORE_FILE, IgnoreRules

__all__ = ["FilesState", "changes", "files_state"]

_INTERVAL_SECONDS = 0.5
_DEFAULTS = IgnoreRules()
FilesState = Mapping[str, tuple[int, int]]
"""The size and the time of modification of files, by their paths."""


async def changes(
    source: Path, known: FilesState, interval_seconds: float = _INTERVAL_SECONDS
) -> AsyncIterator[None]:
    """Yield each time that files below ``source`` have changed and then stayed the same for an
    interval.

    Sizes and times of modification are compared. A change while the caller works is yielded next.

    Args:
        source: A folder or a file.
        known: What :func:`files_state` returned before the caller read the files.
        interval_seconds: How often the files are looked at.
    """
    previous = known
    while True:
        await asyncio.sleep(interval_seconds)
        found = await asyncio.to_thread(files_state, source)
        is_stable = found == previous
        previous = found
        if is_stable and found != known:
            known = found
            yield


def files_state(source: Path) -> FilesState:
    """Return the size and the time of modification of each file below ``source``."""
    if not source.is_dir():
        return dict(_entry(source))
    found: dict[str, tuple[int, int]] = {}
    for folder, folders, files in os.walk(source, followlinks=True):
        folders[:] = [name for name in folders if not _is_ignored(name)]
        for name in files:
            if not _is_ignored(name):
                found.update(_entry(Path(folder, name)))
    return found


def _is_ignored(name: str) -> bool:
    """Whether packing leaves the file or folder out by default;
    a change of the rules is a change.
    """
    return name != IGNORE_FILE and _DEFAULTS.leaves_out(name)


def _entry(path: Path) -> list[tuple[str, tuple[int, int]]]:
    """Return the file's size and time of modification; nothing if it has just been deleted."""
    try:
        status = path.stat()
    except OSError:
        return []
    return [(str(path), (status.st_size, status.st_mtime_ns))]
