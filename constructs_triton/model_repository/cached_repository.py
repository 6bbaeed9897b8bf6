"""What follows from the files of a repository, remembered as long as none of them changes.

Everything is kept under a signature of the whole folder: name, size, inode and times of every file and
folder in it. So an unchanged repository costs one pass of ``stat`` calls: no configuration is parsed, no file
hashed, no rule asked.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from blake3 import blake3

from constructs_triton.findings import Finding, Severity
from constructs_triton.model_config.target import Target
from constructs_triton.model_repository.cache_location import cache_directory
from constructs_triton.model_repository.packing import ArchiveIdentity, errors_left_by_packing, identify
from constructs_triton.model_repository.report_cache import ReportCache

if TYPE_CHECKING:
    from constructs_triton.model_repository.repository import ModelRepository

__all__ = ["CachedRepository", "CheckedFindings"]

_EntryState = tuple[str, int, int, int, int, int, int]
_PACKAGE = Path(__file__).parents[1]
_SETTLED_NS = 2_000_000_000  # a file system's clock may tick this slowly: younger files could change unseen


@dataclass(frozen=True, slots=True)
class CheckedFindings:
    """What a check said: the errors that packing does not mend, and the warnings."""

    errors: tuple[Finding, ...]
    warnings: tuple[Finding, ...]


class CachedRepository:
    """The archives of ``repository`` and what the checks say of it, as its files were when this was made."""

    def __init__(self, repository: ModelRepository) -> None:
        self.repository = repository
        self._signature = _signature(repository.path)
        self._cache = ReportCache(cache_directory())

    @cached_property
    def top_level(self) -> Mapping[str, tuple[str, ...]]:
        """The models that are not only steps of an ensemble, each with all that its archive holds.

        The model itself comes first, then an ensemble's steps in alphabetical order.
        """
        found = self._remembered("top-level", self._find_top_level)
        return {name: tuple(models) for name, models in found.items()}

    @cached_property
    def identities(self) -> Mapping[str, ArchiveIdentity]:
        """What the archive of each top-level model would hold, by the model's name.

        Raises:
            ArchiveError: a file cannot or must not go into an archive.
        """
        rows = self._remembered("identities", self._identify)
        return {name: ArchiveIdentity(*row) for name, row in rows.items()}

    @property
    def known_identities(self) -> Mapping[str, ArchiveIdentity]:
        """Those of :attr:`identities` that need no file to be read: all, or none."""
        if "identities" in self.__dict__:
            return self.identities
        rows = self._recall("identities") or {}
        return {name: ArchiveIdentity(*row) for name, row in rows.items()}

    def contents_of(self, model_name: str) -> tuple[str, ...]:
        """The models in the archive of any model, itself first.

        Raises:
            InvalidValueError: there is no model of that name.
        """
        return self.top_level.get(model_name) or self._closure(model_name)

    def check(self, target: Target | None = None) -> CheckedFindings:
        """What the checks of the repository say for ``target``."""
        found = self._remembered(f"findings {target!r}", lambda: self._check(target))
        errors, warnings = ([_finding(each) for each in found[kind]] for kind in ("errors", "warnings"))
        return CheckedFindings(tuple(errors), tuple(warnings))

    def _find_top_level(self) -> dict[str, tuple[str, ...]]:
        return {name: self._closure(name) for name in self.repository.top_level_models()}

    def _identify(self) -> dict[str, tuple[str, int]]:
        found = identify(self.repository, self.top_level)
        return {name: (each.digest, each.unpacked_size_bytes) for name, each in found.items()}

    def _closure(self, model_name: str) -> tuple[str, ...]:
        names = self.repository.closure(model_name)
        return (model_name, *(name for name in names if name != model_name))

    def _check(self, target: Target | None) -> dict[str, Any]:
        report = self.repository.check(target)
        errors = errors_left_by_packing(self.repository, report)
        return {"errors": _as_json(errors), "warnings": _as_json(report.warnings)}

    def _remembered(self, question: str, answer: Callable[[], Any]) -> Any:
        known = self._recall(question)
        if known is None:
            known = answer()
            if self._signature and _signature(self.repository.path) == self._signature:  # or it has changed
                self._cache.add(self._key(question), known)
        return known

    def _recall(self, question: str) -> Any:
        return None if self._signature is None else self._cache.find(self._key(question))

    def _key(self, question: str) -> str:
        return blake3(f"{self._signature} {_rules_signature()} {question}".encode()).hexdigest()


def _as_json(findings: Iterable[Finding]) -> list[dict[str, str | int | None]]:
    return [finding.to_dict() for finding in findings]


def _finding(row: Mapping[str, Any]) -> Finding:
    return Finding(**{**row, "severity": Severity(row["severity"])})


@cache
def _rules_signature() -> str:
    """Another release, or an edited rule, asks everything anew."""
    identity = blake3()
    for folder in ("facts", "model_config", "model_repository"):
        for name, *state in _states(str(_PACKAGE / folder)):
            if not name.endswith(".pyc"):
                identity.update(f"{name} {state}\n".encode())
    return identity.hexdigest()


def _signature(directory: Path) -> str | None:
    """A digest of names, sizes, inodes and times; ``None`` where a file is too young to be trusted."""
    settled_before = time.time_ns() - _SETTLED_NS
    identity = blake3(os.path.realpath(directory).encode("utf-8", "surrogateescape"))
    for name, *state, mtime_ns, ctime_ns in _states(str(directory)):
        if max(mtime_ns, ctime_ns) >= settled_before:
            return None
        identity.update(f"\0{name} {state} {mtime_ns} {ctime_ns}".encode("utf-8", "surrogateescape"))
    return identity.hexdigest()


def _states(directory: str, above: tuple[str, ...] = ()) -> Iterator[_EntryState]:
    real = os.path.realpath(directory)
    if real in above:
        return
    try:
        with os.scandir(directory) as found:
            entries = sorted(found, key=lambda entry: entry.name)
    except OSError:
        return  # whoever reads it says so
    for entry in entries:
        if entry.name == "__pycache__":
            continue
        yield _state(entry)
        if entry.is_dir():
            yield from _states(entry.path, (*above, real))


def _state(entry: os.DirEntry[str]) -> _EntryState:
    try:
        status = entry.stat()
    except OSError:
        status = entry.stat(follow_symlinks=False)
    return (
        entry.path,
        status.st_mode,
        status.st_dev,
        status.st_ino,
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
    )
