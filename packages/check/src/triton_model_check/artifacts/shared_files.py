"""Gives models a copy of files that they share: common modules, or one ``model.py`` for many.

``triton-models.toml`` in the folder of the models says which models have which files. Triton's
Python backend finds modules in the version directory of a model (python_backend,
``src/pb_stub.cc``, ``StubSetup``), and an archive of a multi-model endpoint contains one model, so
that each needs a copy of its own.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from constructs_triton_core.errors import InvalidValueError
from triton_model_check.model_repository import ModelRepository

__all__ = ["has_shared_files", "place_shared_files"]

_FIRST_VERSION = "1"
_LEFT_OUT = "__pycache__"


def has_shared_files(repository: ModelRepository) -> bool:
    """Whether models of the repository share files."""
    return repository.description is not None and bool(repository.description.shared_files)


def place_shared_files(repository: ModelRepository, directory: Path) -> dict[str, str]:
    """Link the files that models share into ``directory``, a mirror of ``repository``.

    Returns:
        The path below the repository of each file, by its path below ``directory``.

    Raises:
        InvalidValueError: a model has a file of that name, or the repository is itself a model.
    """
    description = repository.description
    if description is None or not description.shared_files:
        return {}
    if repository.root_model is not None:
        raise InvalidValueError(
            f"{repository.path}: shared_files needs a folder with one subfolder for each model; "
            "move config.pbtxt and its files into a subfolder"
        )

    places: dict[str, str] = {}
    for name in repository.models:
        for source in description.shared_with(name):
            files = list(_files(source))
            for version in _versions(directory / name):
                for file, relative in files:
                    place = version / relative
                    copy = place.relative_to(directory).as_posix()
                    _link(repository, copy, place, file)
                    places[copy] = file.relative_to(repository.path).as_posix()
    _link_originals(repository, set(places.values()), directory)
    return places


def _link_originals(repository: ModelRepository, files: Iterable[str], directory: Path) -> None:
    """Link the files in their own place too, where messages show their lines."""
    for file in files:
        place = directory / file
        place.parent.mkdir(parents=True, exist_ok=True)
        if not place.exists():
            place.symlink_to(os.path.realpath(repository.path / file))


def _versions(model: Path) -> list[Path]:
    """Return the version directories of a model; the first one if it has none yet."""
    if not model.is_dir():
        model.mkdir(parents=True)
    versions = [each for each in model.iterdir() if each.name.isdecimal() and each.is_dir()]
    return sorted(versions) or [model / _FIRST_VERSION]


def _files(source: Path) -> Iterator[tuple[Path, Path]]:
    """Yield each file, and its path below a version directory: a folder keeps its name."""
    if source.is_file():
        yield source, Path(source.name)
        return
    for folder, folders, names in os.walk(source):
        folders[:] = sorted(name for name in folders if name != _LEFT_OUT and name[:1] != ".")
        for name in sorted(names):
            file = Path(folder, name)
            yield file, Path(source.name, file.relative_to(source))


def _link(repository: ModelRepository, shown: str, place: Path, file: Path) -> None:
    if place.is_symlink() or place.exists():
        raise InvalidValueError(
            f"{repository.path}/{shown}: a file of shared_files would replace this one; rename or "
            "remove one of them"
        )
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(os.path.realpath(file))
