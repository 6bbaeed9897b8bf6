"""What a folder contains, and whether a command that was killed has left it as it may be."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from constructs_triton_core.untrusted.drafts import DRAFT_PREFIX

__all__ = ["State", "drafts_in", "half_written", "state_of"]

State = Mapping[str, str]
"""The digest of each file by its path in the folder; folders have none."""

_COMPLETE = "complete"


def state_of(folder: Path, varying: tuple[str, ...] = ()) -> State:
    """Return what a folder contains, without what has the name of a draft.

    Args:
        folder: The folder.
        varying: Patterns of files whose content differs in each run, such as measurements.
    """
    return {
        path.relative_to(folder).as_posix(): _content_of(path, varying)
        for path in sorted(folder.rglob("*"))
        if not _is_draft(path.relative_to(folder))
    }


def half_written(now: State, before: State, after: State) -> list[str]:
    """Return the paths that are neither as before a command nor as after it."""
    return [
        path
        for path in sorted({*now, *before, *after})
        if now.get(path) not in (before.get(path), after.get(path))
    ]


def drafts_in(folder: Path) -> list[str]:
    """Return the files and folders that have the name of a draft, or of a temporary folder."""
    found = (path.relative_to(folder) for path in folder.rglob(".*"))
    return sorted(path.as_posix() for path in found if _is_draft(path))


def _is_draft(path: Path) -> bool:
    return any(part.startswith(DRAFT_PREFIX) for part in path.parts)


def _content_of(path: Path, varying: tuple[str, ...]) -> str:
    if path.is_symlink():
        return f"link to {path.readlink()}"
    if not path.is_file():
        return "folder"
    content = path.read_bytes()
    if any(path.match(pattern) for pattern in varying) and _is_complete(path, content):
        return _COMPLETE
    return hashlib.sha256(content).hexdigest()


def _is_complete(path: Path, content: bytes) -> bool:
    """Whether a file ends as its format requires."""
    if path.suffix == ".svg":
        return content.rstrip().endswith(b"</svg>")
    if path.suffix in (".json", ".sarif"):
        try:
            json.loads(content)
        except ValueError:
            return False
    return content.endswith((b"\n", b"}"))
