"""A repository whose checks and digests are cached until one of its files changes.

Results are kept under a signature of the whole folder: the content of small files, and size, inode and times
of large ones. For an unchanged repository, only these are read. No configuration is parsed, no weights are
hashed and no rule runs.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from blake3 import blake3

from constructs_triton_core.findings import Finding, Place, Severity
from constructs_triton_core.untrusted.cache_contract import (
    SMALL_BYTES,
    is_settled,
    own_folder,
    read_value,
    write_value,
)
from constructs_triton_core.untrusted.regular_files import open_regular
from triton_model_check.model_config.target import Target
from triton_model_check.model_repository.cache_location import cache_directory
from triton_model_check.model_repository.members import MAX_DEPTH
from triton_model_check.model_repository.packing import ArchiveIdentity, identify
from triton_model_check.model_repository.temporary_folders import remove_abandoned

__all__ = ["CachedRepository", "CheckedFindings"]

_FOLDER = "reports"
_MOST_REPORTS = 500


class ReportCache:
    """The JSON values below ``directory``; the least recently used are deleted first.

    A cache that cannot be read or written counts as empty; this is no error.
    """

    def __init__(self, directory: Path) -> None:
        self._root = directory
        self._directory = directory / _FOLDER

    def find(self, key: str) -> Any:
        """Return the value of ``key``, or ``None``."""
        path = self._path(key)
        try:
            own_folder(self._root, _FOLDER)
            found_key, value = read_value(path)
            os.utime(path)
        except (OSError, ValueError):
            return None
        return value if found_key == key else None

    def add(self, key: str, value: Any) -> None:
        """Keep ``value`` under ``key``."""
        with suppress(OSError):
            own_folder(self._root, _FOLDER, create=True)
            remove_abandoned(self._directory)
            write_value(self._path(key), [key, value])
            self._evict()

    def _evict(self) -> None:
        with os.scandir(self._directory) as entries:
            reports = [(entry.stat().st_mtime_ns, entry.path) for entry in entries if entry.is_file()]
        for _, path in sorted(reports)[:-_MOST_REPORTS]:
            Path(path).unlink(missing_ok=True)

    def _path(self, key: str) -> Path:
        return self._directory / f"{key}.json"


if TYPE_CHECKING:
    from triton_model_check.model_repository.repository import ModelRepository


_PACKAGE = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True)
class CheckedFindings:
    """The findings of a check: the errors that packing does not fix, and the warnings."""

    errors: tuple[Finding, ...]
    warnings: tuple[Finding, ...]


class CachedRepository:
    """The archives and findings of ``repository``, for its files at the time this was created."""

    def __init__(self, repository: ModelRepository) -> None:
        self.repository = repository
        self._signature = _signature(repository.path)
        self._cache = ReportCache(cache_directory())

    @cached_property
    def top_level(self) -> Mapping[str, tuple[str, ...]]:
        """The models with an archive of their own, each with all models of its archive.

        The model itself comes first, then the models that it needs in alphabetical order.
        """
        names = self.repository.top_level_models
        found = self._cached("top-level", lambda: {name: self._closure(name) for name in names()})
        return {name: tuple(models) for name, models in found.items()}

    @cached_property
    def identities(self) -> Mapping[str, ArchiveIdentity]:
        """The digest and size of each top-level model's archive, by the model's name.

        Raises:
            ArchiveError: a file cannot or must not be archived.
        """
        rows = self._cached("identities", self._identify)
        return {name: ArchiveIdentity(*row) for name, row in rows.items()}

    @property
    def known_identities(self) -> Mapping[str, ArchiveIdentity]:
        """All of :attr:`identities` if they are cached, else none. Reads no model file."""
        if "identities" in self.__dict__:
            return self.identities
        rows = self._find("identities") or {}
        return {name: ArchiveIdentity(*row) for name, row in rows.items()}

    def contents_of(self, model_name: str) -> tuple[str, ...]:
        """Return the models in the archive of any model, itself first.

        Raises:
            InvalidValueError: there is no model of that name.
        """
        return self.top_level.get(model_name) or self._closure(model_name)

    def called_by(self, model_name: str) -> tuple[str, ...]:
        """Return the models that a server must load besides a model, because Python models call them.

        Raises:
            InvalidValueError: there is no model of that name.
        """
        found = self._cached(f"called by {model_name}", lambda: self.repository.called_models(model_name))
        return tuple(found)

    @property
    def sequence_models(self) -> tuple[str, ...]:
        """The models that keep state between the requests of a sequence, in alphabetical order."""
        return tuple(self._cached("sequence models", self.repository.sequence_models))

    def check(self, target: Target | None = None) -> CheckedFindings:
        """Return the findings of the repository for ``target``."""
        found = self._cached(f"findings {target!r}", lambda: self._check(target))
        errors, warnings = ([_finding(row) for row in found[key]] for key in ("errors", "warnings"))
        return CheckedFindings(tuple(errors), tuple(warnings))

    def _identify(self) -> dict[str, tuple[str, int]]:
        found = identify(self.repository, self.top_level)
        return {name: (each.digest, each.unpacked_size_bytes) for name, each in found.items()}

    def _closure(self, model_name: str) -> tuple[str, ...]:
        names = self.repository.closure(model_name)
        return (model_name, *(name for name in names if name != model_name))

    def _check(self, target: Target | None) -> dict[str, Any]:
        report = self.repository.check(target)
        errors = self.repository.errors_after_packing(report)
        return {"errors": _as_json(errors), "warnings": _as_json(report.warnings)}

    def _cached(self, question: str, compute: Callable[[], Any]) -> Any:
        known = self._find(question)
        if known is None:
            known = compute()
            if self._signature and _signature(self.repository.path) == self._signature:  # else it has changed
                self._cache.add(self._key(question), known)
        return known

    def _find(self, question: str) -> Any:
        return None if self._signature is None else self._cache.find(self._key(question))

    def _key(self, question: str) -> str:
        declared = "" if self.repository.composition.is_empty else repr(self.repository.composition)
        return blake3(f"{self._signature} {_rules_signature()} {declared} {question}".encode()).hexdigest()


def _as_json(findings: Iterable[Finding]) -> list[dict[str, Any]]:
    return [asdict(finding) for finding in findings]


def _finding(row: Mapping[str, Any]) -> Finding:
    place = row["place"] and Place(*row["place"])
    return Finding(**{**row, "severity": Severity(row["severity"]), "place": place})


@cache
def _rules_signature() -> str:
    """Changes with another release, an edited rule or another ``onnx`` package."""
    identity = blake3()
    for folder in ("facts", "model_files", "model_config", "model_repository"):
        for entry in _entries(str(_PACKAGE / folder)):
            identity.update(f"{entry.path} {_times(entry.stat())}\0".encode())
    identity.update(_onnx_version().encode())
    return identity.hexdigest()


def _onnx_version() -> str:
    """The version of the optional package that infers shapes, or "" if it is not installed."""
    from importlib import metadata

    try:
        return metadata.version("onnx")
    except metadata.PackageNotFoundError:
        return ""


def _signature(directory: Path) -> str | None:
    """A digest of all files and folders; ``None`` if a large file was written seconds ago."""
    begun_ns = time.time_ns()
    identity = blake3(os.path.realpath(directory).encode("utf-8", "surrogateescape"))
    for entry in _entries(str(directory)):
        state, changed_ns = _state(entry)
        if not is_settled(changed_ns, begun_ns):
            return None
        identity.update(state)
    return identity.hexdigest()


def _entries(directory: str, above: tuple[str, ...] = ()) -> Iterator[os.DirEntry[str]]:
    real = os.path.realpath(directory)
    if real in above or len(above) > MAX_DEPTH:
        return
    try:
        with os.scandir(directory) as found:
            entries = sorted(found, key=lambda entry: entry.name)
    except OSError:
        return  # an error when it is read
    for entry in entries:
        if entry.name == "__pycache__":
            continue
        yield entry
        if entry.is_dir():
            yield from _entries(entry.path, (*above, real))


def _state(entry: os.DirEntry[str]) -> tuple[bytes, int]:
    """Return what changes with an entry, and when it was changed if only its times show that."""
    try:
        status = entry.stat()
    except OSError:
        status = entry.stat(follow_symlinks=False)
    link = os.path.realpath(entry.path) if entry.is_symlink() else ""
    name = f"{entry.path}\0{link}\0{status.st_mode} ".encode("utf-8", "surrogateescape")
    if stat.S_ISDIR(status.st_mode):
        return name, 0  # its entries follow
    if stat.S_ISREG(status.st_mode) and status.st_size <= SMALL_BYTES:
        # An error of reading is one when the file is read.
        with suppress(OSError), open_regular(entry.path) as file:
            return name + blake3(file.read(SMALL_BYTES)).digest(), 0
    return name + f"{_times(status)}\0".encode(), max(status.st_mtime_ns, status.st_ctime_ns)


def _times(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
