"""A repository whose checks and digests are cached until one of its files changes.

Results are kept under a signature of the whole folder: the content of small files, and size, inode
and times of large ones. For an unchanged repository, only these are read. No configuration is
parsed, no weights are hashed and no rule runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from constructs_triton_core.findings import Finding
from triton_model_check.checks.report import Report
from triton_model_check.model_config.target import Target
from triton_model_check.model_repository.kept.kept_answers import KeptAnswers
from triton_model_check.model_repository.kept.report_cache import as_json, finding_of

__all__ = ["CachedRepository"]

if TYPE_CHECKING:
    from triton_model_check.model_repository.packing import ArchiveIdentity
    from triton_model_check.model_repository.repository import ModelRepository


class CachedRepository:
    """The archives and findings of ``repository``, for its files at the time this was created."""

    def __init__(self, repository: ModelRepository) -> None:
        self.repository = repository
        self._answers = KeptAnswers(repository.path, without=("__pycache__",))

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
        return _identities(rows)

    @property
    def known_identities(self) -> Mapping[str, ArchiveIdentity]:
        """All of :attr:`identities` if they are cached, else none. Reads no model file."""
        if "identities" in self.__dict__:
            return self.identities
        rows = self._answers.find(self._asked("identities")) or {}
        return _identities(rows)

    def contents_of(self, model_name: str) -> tuple[str, ...]:
        """Return the models in the archive of any model, itself first.

        Raises:
            InvalidValueError: there is no model of that name.
        """
        return self.top_level.get(model_name) or self._closure(model_name)

    def called_by(self, model_name: str) -> tuple[str, ...]:
        """Return the models that a server must load besides a model, because Python models call
        them.

        Raises:
            InvalidValueError: there is no model of that name.
        """
        found = self._cached(
            f"called by {model_name}", lambda: self.repository.called_models(model_name)
        )
        return tuple(found)

    @property
    def sequence_models(self) -> tuple[str, ...]:
        """The models that keep state between the requests of a sequence, in alphabetical order."""
        return tuple(self._cached("sequence models", self.repository.sequence_models))

    def check(self, target: Target | None = None) -> Report:
        """Return the errors of the repository for ``target`` that packing does not fix,
        and the warnings.
        """
        rows = self._cached(f"findings {target!r}", lambda: as_json(self._check(target)))
        return Report(str(self.repository.path), tuple(map(finding_of, rows)))

    def least_bytes(self, place: str, target: Target) -> int:
        """Return what the models that are loaded together take at a place, in bytes, at least.

        0 if the number of GPUs is not known.
        """
        totals = self._cached(
            f"memory of {place} {target!r}",
            lambda: [each.total(place) for each in self.repository.memory(target)],
        )
        return max(totals, default=0)

    def _identify(self) -> dict[str, tuple[str, int]]:
        from triton_model_check.model_repository.packing import identify

        found = identify(self.repository, self.top_level)
        return {name: (each.digest, each.unpacked_size_bytes) for name, each in found.items()}

    def _closure(self, model_name: str) -> tuple[str, ...]:
        names = self.repository.closure(model_name)
        return (model_name, *(name for name in names if name != model_name))

    def _check(self, target: Target | None) -> list[Finding]:
        report = self.repository.check(target)
        return [*self.repository.errors_after_packing(report), *report.warnings]

    def _cached(self, question: str, compute: Callable[[], Any]) -> Any:
        return self._answers.answer(self._asked(question), compute)

    def _asked(self, question: str) -> str:
        return f"{self.repository.composition!r} {question}"


def _identities(rows: Mapping[str, Any]) -> dict[str, ArchiveIdentity]:
    from triton_model_check.model_repository.packing import ArchiveIdentity

    return {name: ArchiveIdentity(*row) for name, row in rows.items()}
