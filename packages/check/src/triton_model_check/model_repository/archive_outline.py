"""Unpacks the outline of an archive that another tool created, so that it can be checked.

Only the first MiB of each file is unpacked, the rest is a hole of the right size. Configurations
and code are complete, and weights take no space. Outlines are kept in the user's cache, each with a
seal, until the archive changes. The least recently used ones are deleted, but none that a process
has used within the last day: a repository reads its files only when they are needed.
"""

from __future__ import annotations

import hashlib
import shutil
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from blake3 import blake3

from constructs_triton_core.errors import ArchiveError
from constructs_triton_core.untrusted.cache_contract import (
    SMALL_BYTES,
    Seal,
    is_settled,
    own_folder,
    sha256_of,
)
from constructs_triton_core.untrusted.drafts import partial_folder, remove_abandoned
from constructs_triton_core.untrusted.regular_files import explained, open_regular
from triton_model_check.model_repository.archive_inspection import (
    OUTLINE_BYTES,
    InspectedArchive,
    inspect_archive,
)
from triton_model_check.model_repository.members import FileState
from triton_model_check.model_repository.repository import ModelRepository
from triton_model_check.model_repository.temporary_folders import scratch_directory
from triton_model_check.untrusted.cache_location import cache_directory

__all__ = ["ArchiveOutline", "outline_archive"]

_MOST_OUTLINES = 100
_KEPT_SECONDS = 24 * 3600
_FOLDER, _REPOSITORY, _SEAL = "outlines", "repository", "seal"
_IN_USE: set[Path] = set()
"""The outlines that this process has returned."""


@dataclass(frozen=True, slots=True)
class ArchiveOutline:
    """The inspected archive, and a repository with the same files, with holes for weights."""

    archive: InspectedArchive
    repository: ModelRepository


def outline_archive(path: Path) -> ArchiveOutline:
    """Inspect the archive at ``path``; an unchanged archive is read only once.

    Raises:
        ArchiveError: it cannot be read, or :func:`inspect_archive` reports an error.
    """
    key = _key(path)
    if key is None:
        return _write(path, scratch_directory() / "outline")
    folder = cache_directory() / _FOLDER / key
    with suppress(OSError, ValueError):
        return _read(folder, path)
    try:
        own_folder(cache_directory(), _FOLDER, create=True)
        remove_abandoned(folder.parent)
    except OSError:  # the cache cannot be written, or is another user's
        return _write(path, scratch_directory() / "outline")
    with partial_folder(folder.parent) as draft:
        outline = _write(path, draft / folder.name)
        _seal(outline.archive, draft / folder.name)
        _put_in_place(draft / folder.name, folder, path)
    _evict(folder.parent)
    return _read(folder, path)


def _put_in_place(draft: Path, folder: Path, path: Path) -> None:
    """Rename the draft, unless another run was faster and has put the same outline there."""
    try:
        draft.replace(folder)
    except OSError:
        with suppress(OSError, ValueError):
            _read(folder, path)
            return
        shutil.rmtree(folder, ignore_errors=True)
        draft.replace(folder)


def _key(path: Path) -> str | None:
    """Return what identifies the content; ``None`` if the archive was written seconds ago."""
    with explained(path, "cannot be read", "give the path of a .tar.gz", ArchiveError):
        state = FileState.of(path.stat())
        if state.size > SMALL_BYTES and not is_settled(state.mtime_ns, time.time_ns()):
            return None
        content = sha256_of(path) if state.size <= SMALL_BYTES else str(tuple(state))
    return blake3(f"{path.resolve()} {content}".encode("utf-8", "surrogateescape")).hexdigest(16)


def _write(path: Path, folder: Path) -> ArchiveOutline:
    folder.mkdir(parents=True)
    archive = inspect_archive(path, outline_directory=folder / _REPOSITORY)
    return ArchiveOutline(archive, _repository(folder))


def _seal(archive: InspectedArchive, folder: Path) -> None:
    files, folders = _listing(folder)
    note = [{**asdict(archive), "path": str(archive.path)}, folders]
    Seal.of(folder.name, files, note=note, digest_of=_digest).write(folder / _SEAL)


def _read(folder: Path, path: Path) -> ArchiveOutline:
    """Return a kept outline; raises ``ValueError`` if it is not complete."""
    own_folder(cache_directory(), _FOLDER)
    seal = Seal.read(folder / _SEAL, folder.name)
    (row, expected), (files, folders) = seal.note, _listing(folder)
    if files.keys() != seal.files.keys() or folders != expected:
        raise ValueError(f"{folder}: is incomplete")
    seal.use(folder / _SEAL, files, digest_of=_digest)
    archive = InspectedArchive(**{**row, "path": path, "models": tuple(row["models"])})
    folder.touch()
    _IN_USE.add(folder)
    return ArchiveOutline(archive, _repository(folder))


def _listing(folder: Path) -> tuple[dict[str, Path], list[str]]:
    """Return the files of an outline by name, and its folders."""
    found = {
        str(path.relative_to(folder)): path for path in sorted((folder / _REPOSITORY).rglob("*"))
    }
    folders = [name for name, path in found.items() if path.is_dir()]
    return {name: path for name, path in found.items() if not path.is_dir()}, folders


def _digest(path: Path) -> str:
    """Return the SHA-256 of the part of a file that is no hole."""
    with open_regular(path) as file:
        return hashlib.sha256(file.read(OUTLINE_BYTES)).hexdigest()


def _repository(folder: Path) -> ModelRepository:
    return ModelRepository.from_directory(folder / _REPOSITORY, complete_bytes=OUTLINE_BYTES)


def _evict(directory: Path) -> None:
    """Delete the least recently used outlines, but none that is in use,
    and no draft of another process.
    """
    with suppress(OSError):
        folders = [folder for folder in directory.iterdir() if not folder.name.startswith(".")]
        used = sorted((_last_use(folder), folder) for folder in folders)
        for last_use, folder in used[:-_MOST_OUTLINES]:
            if folder not in _IN_USE and last_use < time.time() - _KEPT_SECONDS:
                shutil.rmtree(folder, ignore_errors=True)


def _last_use(folder: Path) -> float:
    try:
        return folder.stat().st_mtime
    except OSError:  # another process has deleted it
        return 0.0
