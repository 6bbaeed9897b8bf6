"""A model folder that is created from a configuration and model files."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from constructs_triton_core.errors import InvalidValueError, RepositoryError
from constructs_triton_core.untrusted.drafts import partial_folder
from constructs_triton_core.untrusted.regular_files import explained
from triton_model_check.model.folder import CONFIG_FILE
from triton_model_check.model_repository.repository import ModelRepository
from triton_model_check.model_repository.uncompressed.copying import copy_file
from triton_model_check.untrusted.links import expect_own_file, own_folders

__all__ = ["NewModel", "write_together"]

_VERSION = "1"


@dataclass(frozen=True, slots=True)
class NewModel:
    """The folder of a model that does not exist yet.

    ``files`` maps paths in the folder of version 1 to the files or folders to copy, or to content
    as bytes.
    """

    name: str
    config_text: str
    files: Mapping[str, Path | bytes]

    def write_to(self, repository: Path, *, check: bool = True) -> Path:
        """Check the model, create its folder in ``repository`` and return the folder.

        The folder is created complete or not at all. The model files are copied. ``check`` is
        whether the model is checked as the only one of a repository.

        Raises:
            InvalidValueError: the folder exists already, or cannot be written.
            RepositoryError: the checks found errors; nothing is written.
        """
        return write_together([self], repository, check=check)[0]

    def fill(self, repository: Path, place: Callable[[Path, Path], None]) -> None:
        """Write the folder into ``repository``; ``place`` copies or links a
        file to its destination.
        """
        folder = repository / self.name
        for path, source in self.files.items():
            destination = folder / _VERSION / path
            destination.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(source, bytes):
                destination.write_bytes(source)
            else:
                place(source, destination)
        (folder / CONFIG_FILE).write_text(self.config_text, encoding="utf-8", newline="\n")


def write_together(
    models: Sequence[NewModel],
    repository: Path,
    *,
    check: bool = True,
    files: Mapping[str, str] | None = None,
) -> list[Path]:
    """Check models that belong together, create their folders in ``repository`` and return these.

    All folders and files are created complete, or none. The model files are copied.

    Args:
        models: The models.
        repository: The folder of the repository.
        check: Whether the models are checked as the only ones of a repository.
        files: Names of files beside the folders, with their text.

    Raises:
        InvalidValueError: a folder or a file exists already, or cannot be written.
        RepositoryError: the checks found errors; nothing is written.
    """
    folders = [repository / model.name for model in models]
    texts = dict(files or {})
    targets = [*folders, *(repository / name for name in texts)]
    for target in targets:
        if os.path.lexists(target):
            raise InvalidValueError(
                f"{target}: already exists; choose another name, or delete the {_kind(target)}"
            )
    with (
        explained(folders[-1], "cannot be written", "choose a folder that you may write"),
        _created(repository),
        partial_folder(repository) as draft,
    ):
        for model in models:
            model.fill(draft, _copy)
        if check:
            _check(draft, folders[-1])
        for name, text in texts.items():
            (draft / name).write_text(text, encoding="utf-8", newline="\n")
        _move(draft, targets)
    return folders


def _kind(path: Path) -> str:
    return "file" if path.is_file() else "folder"


def _move(draft: Path, targets: Sequence[Path]) -> None:
    """Rename what a draft has to its place; if one fails, move the others back."""
    moved: list[Path] = []
    try:
        for target in targets:
            (draft / target.name).rename(target)
            moved.append(target)
    except OSError:
        for target in moved:
            target.rename(draft / target.name)
        raise


class _created:  # noqa: N801 - used like a function
    """Creates a folder and its parents, and deletes those that are new if an error is raised."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._new: list[Path] = []

    def __enter__(self) -> None:
        self._new = [path for path in (self._folder, *self._folder.parents) if not path.exists()]
        self._folder.mkdir(parents=True, exist_ok=True)

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        if error is not None:
            with suppress(OSError):  # no longer empty: another program has written into it
                for path in self._new:
                    path.rmdir()


def _check(draft: Path, target: Path) -> None:
    errors = ModelRepository.from_directory(draft).check().errors
    if errors:
        raise RepositoryError(str(target), errors)


def _copy(source: Path, destination: Path) -> None:
    if not source.is_dir():
        copy_file(source, destination)
        return
    folders = own_folders(source)

    def copy_own(file: str, to: str) -> None:
        expect_own_file(Path(file), folders)
        copy_file(Path(file), Path(to))

    shutil.copytree(source, destination, copy_function=copy_own)
