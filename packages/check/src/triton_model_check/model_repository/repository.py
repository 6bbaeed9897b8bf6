"""A folder on disk as a repository of Triton models."""

# os is several times faster than pathlib, and a thousand folders a second are wanted.
# ruff: noqa: PTH118

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Self

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.spelling import did_you_mean, quoted
from triton_model_check.model.folder import CONFIG_FILE, ModelFolder, is_directory
from triton_model_check.model_config.target import ALL_MODELS, ArchiveContent, Target
from triton_model_check.model_repository.composition import (
    DESCRIPTION_FILE,
    Composition,
    CompositionOptions,
)
from triton_model_check.untrusted.rare_collections import rare_collections
from triton_model_check.untrusted.unsaved_files import unsaved_names

if TYPE_CHECKING:
    from constructs_triton_core.findings import Finding
    from triton_model_check.checks.model_under_check import RepositoryContext
    from triton_model_check.checks.report import Report
    from triton_model_check.memory.estimate import MemoryEstimate
    from triton_model_check.model.packed_files import PackedFiles
    from triton_model_check.model_repository.description import ModelDescription

__all__ = ["ModelRepository"]

_NO_VERSION = "layout-no-version"
_OF_A_FILE = (
    "; for a model file, run `constructs-triton model new FILE`, or use ModelSource.from_model_file"
)


class ModelRepository:
    """The models of a folder: sub-folders with a ``config.pbtxt``, version directories, or both.

    Create one with :meth:`from_directory`. Files are read once; create another to see a change on
    disk.

    Args:
        path: The folder.
        entries: Folders in it, and whether each is a link.
        root_config: Whether the folder itself has a ``config.pbtxt``.
        complete_bytes: Bytes that are present of each file, if the folder is the outline of an
            archive.
        linked_files: Real paths of files outside the folder that links in it may lead to.
        description: Content of ``triton-models.toml``.
        shared_files: Paths of the files that models share, as the user has them, by the path of
            each copy.
    """

    checks_in_copies = False
    """Whether copies of this process check the models of a large repository, one for each core."""

    def __init__(
        self,
        path: Path,
        entries: Mapping[str, bool],
        root_config: bool,
        complete_bytes: int | None = None,
        linked_files: frozenset[str] = frozenset(),
        *,
        description: ModelDescription | None = None,
        shared_files: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.path = path
        self.shared_files = shared_files
        self.description = description
        self.linked_files = linked_files
        self.composition = CompositionOptions()
        self._complete_bytes = complete_bytes
        self._directories = dict(entries)
        self._root_config = root_config

    @classmethod
    def from_directory(
        cls,
        path: str | os.PathLike[str],
        *,
        complete_bytes: int | None = None,
        calls: Mapping[str, Sequence[str]] | None = None,
        also_served: Sequence[str] = (),
        linked_files: Collection[str] = (),
        shared_files: Mapping[str, str] = MappingProxyType({}),
    ) -> Self:
        """Return the repository of a folder. Nothing below its first level is read yet.

        What ``triton-models.toml`` in the folder has of ``calls`` and ``also_served`` applies too.

        Args:
            path: The folder.
            complete_bytes: Bytes that are present of each file, if the folder is the outline of an
                archive. The content of larger model files is not checked. Default: files are
                complete.
            calls: Models that a Python model calls and whose names its source does not contain as
                strings, by the caller: ``{"pipeline": ["scale"]}``. Default: none.
            also_served: Models that others need and that are served by themselves too.
            linked_files: Real paths of files outside the folder that links in it may lead to.
            shared_files: Paths of the files that models share, as the user has them, by the path
                of each copy.

        Raises:
            InvalidValueError: there is no such folder, it cannot be read, or ``calls`` or
                ``also_served`` contains a model that does not exist or differs from
                ``triton-models.toml``.
        """
        try:
            with os.scandir(path) as found:
                entries = list(found)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            # Absolute, because a relative path depends on where the app was started.
            hint = _OF_A_FILE if isinstance(error, NotADirectoryError) else ""
            if os.fsdecode(path).startswith(("s3:/", "gs:/", "as:/")):
                hint = "; to check a bucket, download its folder first"
            shown = os.path.abspath(os.fsdecode(path))  # noqa: PTH100 - resolve() follows links
            raise InvalidValueError(
                f'model repository: cannot be read ({reason.lower()}), got "{shown}"; '
                f"pass a folder that has one subfolder for each model{hint}"
            ) from error
        directories = {entry.name: entry.is_symlink() for entry in entries if is_directory(entry)}
        has_config = any(entry.name == CONFIG_FILE and not is_directory(entry) for entry in entries)
        for name, is_folder in unsaved_names(os.fspath(path)).items():
            if is_folder:
                directories.setdefault(name, False)
            has_config = has_config or name == CONFIG_FILE
        is_described = complete_bytes is None and any(
            entry.name == DESCRIPTION_FILE for entry in entries
        )
        description = _description(Path(path)) if is_described else None
        links = frozenset(linked_files)
        repository = cls(
            Path(path),
            directories,
            has_config,
            complete_bytes,
            links,
            description=description,
            shared_files=shared_files,
        )
        if description is not None:
            description.refuse_unknown(repository.models)
        repository.compose(CompositionOptions.of(calls, also_served))
        return repository

    def compose(self, options: CompositionOptions) -> None:
        """Declare which models others call, and which are served by themselves too.

        Args:
            options: What the user declares about the models.

        Raises:
            InvalidValueError: there is no model of that name, or ``triton-models.toml`` differs.
        """
        if not options.is_empty:
            options.refuse_unknown(self.models)
        self.composition = (
            options if self.description is None else self.description.combine(options)
        )

    def __repr__(self) -> str:
        return f"ModelRepository({str(self.path)!r})"

    @cached_property
    def root_model(self) -> ModelFolder | None:
        """The model whose ``config.pbtxt`` is at the root;
        only a multi-model archive may have one.
        """
        if not self._root_config:
            return None
        return ModelFolder(self.path.resolve().name or "model", self.path, ".")

    @cached_property
    def models(self) -> Mapping[str, ModelFolder]:
        """The models by name, in alphabetical order."""
        root = os.fspath(self.path)
        folders = {
            name: ModelFolder(name, os.path.join(root, name)) for name in sorted(self._directories)
        }
        # An only folder is the model, whatever it contains. Beside a root model it may be a version
        # of that.
        only = len(folders) == 1 and not self._root_config
        found = {name: folder for name, folder in folders.items() if only or self._is_model(folder)}
        return MappingProxyType(found)

    def _is_model(self, folder: ModelFolder) -> bool:
        if folder.name.startswith("."):
            return False
        return folder.has_config or (bool(folder.version_directories) and not self._root_config)

    @cached_property
    def stray_directories(self) -> tuple[str, ...]:
        """Sub-directories that contain no model, including hidden ones."""
        of_shared_files = {path.partition("/")[0] for path in self.shared_files.values()}
        known = self.models.keys() | of_shared_files
        return tuple(name for name in sorted(self._directories) if name not in known)

    def model(self, name: str) -> ModelFolder:
        """Return the model of that name.

        Args:
            name: Name of the model.

        Raises:
            InvalidValueError: there is none.
        """
        try:
            return self.models[name]
        except KeyError:
            known = f"its models are {quoted(self.models)}" if self.models else "add the folder"
            hint = did_you_mean(name, self.models, known)
            raise InvalidValueError(
                f"model repository {self.path}: has no such model, got {name!r}; {hint}"
            ) from None

    @cached_property
    def _composition(self) -> Composition:
        return Composition(self.models, self.composition)

    def closure(self, model_name: str) -> list[str]:
        """Return the model and all models that it needs at any depth, in alphabetical order.

        An ensemble needs the models of its steps, and a Python model those that it calls. Models
        that the repository does not contain are left out; :meth:`check` reports them.

        Args:
            model_name: Name of the model.

        Raises:
            InvalidValueError: there is no model of that name.
        """
        self.model(model_name)
        return self._composition.closure([model_name])

    def called_models(self, model_name: str) -> list[str]:
        """Return the models that Python models call when a model is served, in alphabetical order.

        A server must load them by name. The steps of an ensemble are loaded together with it.

        Args:
            model_name: Name of the model that is served.

        Raises:
            InvalidValueError: there is no model of that name.
        """
        self.model(model_name)
        return self._composition.loaded_by_name(model_name)

    def sequence_models(self) -> list[str]:
        """Return the models that keep state between the requests of a sequence, in alphabetical
        order.

        A model with ``iterative_sequence`` is not one of them: Triton itself repeats its request.
        """
        return [name for name, folder in self.models.items() if folder.keeps_sequences]

    def top_level_models(self) -> list[str]:
        """Return the models that no other model needs, and those to serve alone, in alphabetical
        order.

        Each becomes one archive of a multi-model endpoint.
        """
        return self._composition.top_level()

    @rare_collections()
    def check(
        self,
        target: Target | None = None,
        *,
        is_packed: bool = True,
        is_archive: bool = False,
        only: Collection[str] = (),
    ) -> Report:
        """Return every finding for the place that ``target`` describes. No model code runs.

        ``is_packed``
            Whether to check the archives that packing would create. ``False`` checks the folder as
            it is, as the content of one archive if it contains one served model. Default: ``True``.
        ``is_archive``
            Whether the folder is the content of one archive. Default: ``False``.
        ``only``
            Names of the models whose own findings are wanted. Default: all.
        ``target``
            Where the models run. Default: a server whose image is not known.
        """
        from triton_model_check.checks.check_run import run_checks

        is_packed = is_packed and not is_archive
        context = self._context(target or Target("server"), is_packed, is_archive)
        report = run_checks(context, str(self.path), only, in_copies=self.checks_in_copies)
        if report.findings and self.shared_files:
            report = _at_shared_files(report, self.shared_files)
        return _with_places(report) if report.findings else report

    def memory(self, target: Target, *, is_archive: bool = False) -> tuple[MemoryEstimate, ...]:
        """Return what the models take of each GPU, of the host and of ``/dev/shm``, at least.

        One estimate has the models that are loaded together: all that the server loads, or those of
        each archive of a multi-model endpoint. Without the number of GPUs, only
        ``/dev/shm`` is estimated.

        ``is_archive``
            Whether the folder is the content of one archive. Default: ``False``.
        ``target``
            Where the models run, with its GPUs and memory.
        """
        from triton_model_check.checks.loaded_shared_memory import memory_of

        return tuple(memory_of(self._context(target, is_packed=False, is_archive=is_archive)))

    def _context(self, target: Target, is_packed: bool, is_archive: bool) -> RepositoryContext:
        """Return what the rules ask about the repository."""
        from triton_model_check.checks.check_run import RepositoryContext

        models = self._models_for(target)
        composition = (
            self._composition if models == self.models else Composition(models, self.composition)
        )
        served = self._served(target, models)
        return RepositoryContext(
            folders=models,
            directories=self._directories,
            root=self.root_model,
            target=target,
            loaded=frozenset(composition.closure(served, with_calls=not target.load_models)),
            served=served,
            archives=self._archives(served, composition, is_packed, is_archive)
            if target.is_sagemaker
            else (),
            calls=composition.calls,
            is_packed=is_packed,
            is_archive=is_archive,
            complete_bytes=self._complete_bytes,
            others={name: ModelFolder(name, self.path / name) for name in self.stray_directories},
            packed_files=self._packed_files(models, is_archive),
            root_files=() if models else self._root_files(),
            declared_memory={} if self.description is None else self.description.memory,
            declared_calls={} if self.description is None else self.description.shared_memory,
        )

    def _root_files(self) -> tuple[str, ...]:
        content = ModelFolder("", self.path, ".").entries
        return tuple(sorted(name for name, is_folder in content.items() if not is_folder))

    def _packed_files(
        self, models: Mapping[str, ModelFolder], is_archive: bool
    ) -> dict[str, PackedFiles]:
        """The files of each model that are packed. An archive is deployed as it is."""
        from triton_model_check.model.packed_files import PackedFiles
        from triton_model_check.model_repository.ignore import LeftOut

        is_given = is_archive or self._complete_bytes is not None
        leaves_out = (lambda _: False) if is_given else LeftOut(self.path)
        return {
            name: PackedFiles(folder, leaves_out, self._follows) for name, folder in models.items()
        }

    def _follows(self, link: str) -> bool:
        """Whether packing follows a link to a folder."""
        target = os.path.realpath(link)
        return target in self.linked_files or target.startswith(
            f"{os.path.realpath(self.path)}{os.sep}"
        )

    def errors_after_packing(self, report: Report) -> tuple[Finding, ...]:
        """Return the errors of a check that the packed archives still have.

        A missing version directory of an ensemble is not one of them: git does not keep an empty
        directory, and packing creates it.

        Args:
            report: Result of :meth:`check`.
        """
        fixed = {model.path for model in self.models.values() if model.versions_to_create}
        return tuple(
            error for error in report.errors if error.code != _NO_VERSION or error.path not in fixed
        )

    def _models_for(self, target: Target) -> dict[str, ModelFolder]:
        """The models that the target can load: only the one at the root, if any,
        and the default model.
        """
        is_root_alone = target.mode == "multi-model" if target.is_sagemaker else not self.models
        if self.root_model is not None and is_root_alone:
            return {self.root_model.name: self.root_model}
        name = target.model_config_name
        models = {each: folder.with_config_name(name) for each, folder in self.models.items()}
        default = target.default_model
        if default is not None and default not in models and default in self._directories:
            models[default] = ModelFolder(default, self.path / default)
        return models

    def _served(self, target: Target, models: Mapping[str, ModelFolder]) -> tuple[str, ...]:
        """Return the names of the models that callers of a target can use."""
        if not target.is_sagemaker:
            wanted = target.load_models
            if not wanted or ALL_MODELS in wanted:
                return tuple(models)
            return tuple(self.model(name).name for name in wanted)
        if target.mode == "single" and target.default_model in models:
            return (str(target.default_model),)
        if target.mode == "multi-model" and self.root_model is None:
            return tuple(self.top_level_models())
        return tuple(models)

    def _archives(
        self, served: tuple[str, ...], composition: Composition, is_packed: bool, is_archive: bool
    ) -> tuple[ArchiveContent, ...]:
        if not is_packed and (len(served) == 1 or (is_archive and served)):
            others = {*self.models, *self.stray_directories}
            folders = tuple(sorted(name for name in others if not self._directories.get(name)))
            return (ArchiveContent(served[0], folders, is_given=True),)
        return tuple(ArchiveContent(name, tuple(composition.closure([name]))) for name in served)


def _description(folder: Path) -> ModelDescription:
    from triton_model_check.model_repository.description import ModelDescription

    return ModelDescription.read(folder)


def _at_shared_files(report: Report, shared: Mapping[str, str]) -> Report:
    """Name the file that a user has in place of its copies, and what is wrong with it once."""
    found: dict[Finding, None] = {}
    for finding in report.findings:
        found[replace(finding, path=shared.get(finding.path, finding.path))] = None
    return replace(report, findings=tuple(found))


def _with_places(report: Report) -> Report:
    from triton_model_check.model.places import with_places

    return replace(report, findings=tuple(with_places(report.findings, report.repository)))
