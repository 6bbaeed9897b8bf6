"""An archive that was made elsewhere, as a repository that can be checked.

Only the beginning of each file is unpacked, the rest is a hole of the right size: configurations and code are
there in full, weights take no room. Outlines are kept in the user's cache by the archive's state, so that an
unchanged archive is not read again.
"""

from __future__ import annotations

import json
import shutil
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from blake3 import blake3

from constructs_triton.errors import ArchiveError
from constructs_triton.model_repository.archive_inspection import ArchiveContents, inspect_archive
from constructs_triton.model_repository.cache_location import cache_directory
from constructs_triton.model_repository.members import FileState
from constructs_triton.model_repository.partial_folder import partial_folder, remove_abandoned
from constructs_triton.model_repository.repository import ModelRepository
from constructs_triton.model_repository.scratch import scratch_directory

__all__ = ["ArchiveOutline", "outline_archive"]

_MOST_OUTLINES = 100
_REPOSITORY, _CONTENTS = "repository", "contents.json"
_UNREADABLE = (OSError, ValueError, TypeError, KeyError)
"""What reading an outline raises that is not there, or is not whole."""


@dataclass(frozen=True, slots=True)
class ArchiveOutline:
    """What an archive holds, and a repository like it, with holes for weights."""

    contents: ArchiveContents
    repository: ModelRepository


def outline_archive(path: Path) -> ArchiveOutline:
    """Inspect the archive at ``path``, once for as long as it does not change.

    Raises:
        ArchiveError: it cannot be read, or :func:`inspect_archive` refuses it.
    """
    folder = cache_directory() / "outlines" / _key(path)
    with suppress(*_UNREADABLE):
        return _read(folder, path)
    try:
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        remove_abandoned(folder.parent)
    except OSError:  # a cache that cannot be written to
        return _write(path, scratch_directory() / "outline")
    with partial_folder(folder.parent) as draft:
        _write(path, draft / folder.name)
        _put_in_place(draft / folder.name, folder, path)
    _evict(folder.parent)
    return _read(folder, path)


def _put_in_place(draft: Path, folder: Path, path: Path) -> None:
    """Rename, unless another run was faster: what it has put there, and reads, is the same."""
    try:
        draft.replace(folder)
    except OSError:
        with suppress(*_UNREADABLE):
            _read(folder, path)
            return
        shutil.rmtree(folder, ignore_errors=True)
        draft.replace(folder)


def _key(path: Path) -> str:
    try:
        state = FileState.of(path.stat())
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ArchiveError(f"{path}: cannot be read, got {reason}; name a .tar.gz") from error
    return blake3(f"1 {path.resolve()} {tuple(state)}".encode("utf-8", "surrogateescape")).hexdigest(16)


def _write(path: Path, folder: Path) -> ArchiveOutline:
    folder.mkdir(parents=True)
    contents = inspect_archive(path, outline_directory=folder / _REPOSITORY)
    row = {**asdict(contents), "path": str(path)}
    (folder / _CONTENTS).write_text(json.dumps(row), encoding="utf-8")
    return ArchiveOutline(contents, ModelRepository.from_directory(folder / _REPOSITORY))


def _read(folder: Path, path: Path) -> ArchiveOutline:
    row = json.loads((folder / _CONTENTS).read_text(encoding="utf-8"))
    contents = ArchiveContents(**{**row, "path": path, "models": tuple(row["models"])})
    folder.touch()
    return ArchiveOutline(contents, ModelRepository.from_directory(folder / _REPOSITORY))


def _evict(directory: Path) -> None:
    with suppress(OSError):
        folders = sorted(directory.iterdir(), key=lambda folder: folder.stat().st_mtime_ns)
        for folder in folders[:-_MOST_OUTLINES]:
            shutil.rmtree(folder, ignore_errors=True)
