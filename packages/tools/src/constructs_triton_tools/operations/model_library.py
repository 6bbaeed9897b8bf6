"""Lists, adds and removes the models of a deployed multi-model endpoint."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Self

from constructs_triton_core.aws_reader import make_session
from constructs_triton_core.errors import InvalidValueError, RepositoryError
from constructs_triton_core.findings import Finding
from constructs_triton_core.untrusted.drafts import temporary_folder
from constructs_triton_tools.operations.library_values import ArchiveFile, LibraryModel
from triton_model_check.artifacts.environments.placement import as_packed
from triton_model_check.model_config.target import Target
from triton_model_check.model_repository import ModelRepository, pack
from triton_model_check.model_repository.archive_outline import outline_archive
from triton_model_check.model_repository.cached_repository import CachedRepository
from triton_model_check.model_repository.s3_keys import check_model_name

if TYPE_CHECKING:
    import boto3

_CONCURRENT_UPLOADS = 4
_SHORTEST_RETENTION = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class LibraryChange:
    """What :meth:`ModelLibrary.add` and :meth:`ModelLibrary.sync` have changed.

    Args:
        target_models: Archive by model.
        uploaded: Archives that were uploaded; others existed already.
        deleted: Archives that were deleted.
        warnings: Warnings of the checks.
    """

    target_models: Mapping[str, str]
    uploaded: tuple[str, ...]
    deleted: tuple[str, ...] = ()
    warnings: tuple[Finding, ...] = ()


class ModelLibrary:
    """The models of a multi-model endpoint: archives below an S3 prefix, and their index.

    Changes need no deployment: the endpoint loads an archive when it is called for the first time.
    ``repository.grant_manage_models(role)`` gives a role the permissions.

    >>> library = ModelLibrary("my-models", "models/")  # doctest: +SKIP
    >>> library.add("resnet", "model_repository")  # doctest: +SKIP

    ``bucket``
        The name of the bucket.
    ``prefix``
        The key prefix, ``"models/"`` by default; ends with ``/``.
    ``session``
        The ``boto3.Session`` to use. Default: a new one, with the credentials and Region of the
        environment.

    Raises:
        InvalidValueError: the prefix does not end with ``/``.
        MissingDependencyError: boto3 is not installed.
    """

    def __init__(
        self, bucket: str, prefix: str = "models/", *, session: boto3.Session | None = None
    ) -> None:
        session = session or make_session()
        from constructs_triton_tools.operations.model_prefix import ModelPrefix

        self._prefix = ModelPrefix(session, bucket, prefix)

    @classmethod
    def from_stack(
        cls, stack_name: str, *, resource: str | None = None, session: boto3.Session | None = None
    ) -> Self:
        """Return the library of a deployed stack with one ``TritonModelRepository``.

        Args:
            stack_name: Name or id of the stack.
            resource: Logical ID of the custom resource that fills the prefix. Required if there are
                several.

        Raises:
            InvalidValueError: the stack does not have exactly one such resource.
            ArchiveError: AWS returned an error or cannot be reached.
        """
        session = session or make_session()
        from constructs_triton_tools.operations.model_prefix import find_prefix

        library = cls.__new__(cls)
        library._prefix = find_prefix(session, stack_name, resource)
        return library

    @property
    def url(self) -> str:
        """``s3://<bucket>/<prefix>``."""
        return self._prefix.url

    def models(self) -> list[LibraryModel]:
        """Return the models of the index, in alphabetical order.

        Raises:
            ArchiveError: AWS returned an error or cannot be reached.
        """
        return self._prefix.models()

    def archives_without_name(self) -> list[str]:
        """Return the archives that no name of the index refers to.

        Raises:
            ArchiveError: AWS returned an error or cannot be reached.
        """
        return self._prefix.nameless()

    def removed_models(self) -> list[str]:
        """Return the models that a stack has deployed and that were removed since.

        Raises:
            ArchiveError: AWS returned an error or cannot be reached.
        """
        return self._prefix.removed()

    def add(
        self,
        name: str,
        source: str | os.PathLike[str],
        *,
        model: str | None = None,
        check: bool = True,
    ) -> LibraryChange:
        """Add a model, or replace its archive.

        Args:
            name: Name by which clients find the model in the index.
            source: Model repository, or ``.tar.gz`` archive.
            model: Model of the repository to add. Required if there are several.
            check: Whether a model with errors is refused.

        Raises:
            InvalidValueError: the name is malformed, or a grant for another model would allow its
                archive, or the repository has several models.
            RepositoryError: the checks found errors.
            ArchiveError: AWS returned an error or cannot be reached, or the models cannot be
                packed.
        """
        check_model_name("name", name)
        path = Path(source)
        repository = ModelRepository.from_directory(path) if path.is_dir() else None
        placed = None if repository is None else as_packed(repository)
        warnings = _checked(placed or outline_archive(path).repository, path, check)
        with _packed(placed, path, {name: model}) as archives:
            return self._place(archives, warnings)

    def remove(self, name: str, *, delete_archive: bool = False) -> str:
        """Remove a model from the index, and return its archive.

        A model that a stack has deployed is missing until :meth:`restore` is called, or until a
        deployment changes the models or the keys of the repository. To remove it for good, remove
        it from the app.

        Args:
            name: Name of the model in the index.
            delete_archive: Whether to delete the archive too, unless another name uses it. Running
                requests may fail.

        Raises:
            InvalidValueError: the index has no such model.
            ArchiveError: AWS returned an error or cannot be reached.
        """
        return self._prefix.forget(name, is_deleting=delete_archive)

    def restore(self, name: str) -> str:
        """Give a removed model its last archive again, and return this archive.

        A model that has not been removed stays as it is.

        Args:
            name: Name that the model had in the index.

        Raises:
            InvalidValueError: the archive was deleted, or the index never had the name.
            ArchiveError: AWS returned an error or cannot be reached.
        """
        return self._prefix.restore(name)

    def sync(
        self,
        source: str | os.PathLike[str],
        *,
        prune_after: timedelta | None = None,
        check: bool = True,
    ) -> LibraryChange:
        """Add all models of a repository.

        Args:
            source: Model repository.
            prune_after: Delete archives that this class has added and that no name has used for
                this time, at least one day. Default: nothing is deleted.
            check: Whether models with errors are refused.

        Raises:
            InvalidValueError: a name is malformed, a grant for another model would allow an
                archive, or ``prune_after`` is less than one day.
            RepositoryError: the checks found errors.
            ArchiveError: AWS returned an error or cannot be reached, or the models cannot be
                packed.
        """
        _check_retention(prune_after)
        repository = ModelRepository.from_directory(source)
        names = repository.top_level_models()
        for name in names:
            check_model_name(f"model {name!r}", name)
        placed = as_packed(repository)
        warnings = _checked(placed, Path(source), check)
        with _packed(placed, Path(source), {name: name for name in names}) as archives:
            change = self._place(archives, warnings)
        if prune_after is None:
            return change
        deleted = tuple(self._prefix.prune(prune_after.total_seconds()))
        return LibraryChange(change.target_models, change.uploaded, deleted, change.warnings)

    def _place(
        self, archives: Mapping[str, ArchiveFile], warnings: tuple[Finding, ...]
    ) -> LibraryChange:
        """Upload several archives at a time, and change the index when all are uploaded."""
        self._prefix.refuse_collisions(archives)
        with ThreadPoolExecutor(_CONCURRENT_UPLOADS) as pool:
            placed = list(pool.map(self._prefix.upload, archives, archives.values()))
        target_models = {name: target for name, (target, _) in zip(archives, placed, strict=True)}
        self._prefix.name(target_models)
        uploaded = tuple(target for target, is_uploaded in placed if is_uploaded)
        return LibraryChange(target_models, uploaded, warnings=warnings)


def _check_retention(prune_after: timedelta | None) -> None:
    if prune_after is not None and prune_after < _SHORTEST_RETENTION:
        raise InvalidValueError(
            f"prune_after: must be at least 1 day, got {prune_after}; use timedelta(days=1) or "
            "more, because during an update an endpoint may still "
            "load an archive whose name was removed today"
        )


def _checked(repository: ModelRepository, path: Path, check: bool) -> tuple[Finding, ...]:
    if not check:
        return ()
    found = CachedRepository(repository).check(Target("sagemaker-multi-model"))
    if found.errors:
        raise RepositoryError(str(path), found.errors)
    return found.warnings


@contextmanager
def _packed(
    repository: ModelRepository | None, path: Path, models: Mapping[str, str | None]
) -> Iterator[dict[str, ArchiveFile]]:
    """Yield the archive of each name: of a model of the repository,
    or the archive at ``path`` itself.
    """
    if repository is None:
        yield {name: ArchiveFile(path, outline_archive(path).archive.digest) for name in models}
        return
    with temporary_folder() as scratch:
        found = {}
        for name, model in models.items():
            chosen = _only_model(repository, path) if model is None else model
            archive = pack(repository, repository.closure(chosen), scratch)
            found[name] = ArchiveFile(archive.path, archive.digest)
        yield found


def _only_model(repository: ModelRepository, path: Path) -> str:
    names = repository.top_level_models()
    if len(names) != 1:
        raise InvalidValueError(
            f"{path}: must contain one top-level model, got {', '.join(names) or 'none'}; "
            "choose one with model (--model), or add all of them with sync"
        )
    return names[0]
