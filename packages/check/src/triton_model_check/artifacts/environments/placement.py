"""Adds environments and shared files to a copy of a model repository that links to the user's
files.

``triton-models.toml`` in the folder of the models declares them, for the app and the commands.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.spelling import quoted
from triton_model_check.artifacts.environments.python_environment import PythonEnvironment
from triton_model_check.artifacts.shared_files import has_shared_files, place_shared_files
from triton_model_check.facts.images import DEFAULT_VERSION
from triton_model_check.model.backends import infer_backend
from triton_model_check.model.folder import CONFIG_FILE, ModelFolder
from triton_model_check.model_repository import ModelRepository
from triton_model_check.model_repository.composition import ALL_MODELS
from triton_model_check.model_repository.temporary_folders import scratch_directory

__all__ = ["as_packed", "find_environments", "place_environments", "without_environments"]

ARCHIVE_NAME = "env.tar"
"""The name of an environment in a model's folder."""

_KEYWORD = "python_environments"
_PARAMETER = "EXECUTION_ENV_PATH"
_MODEL_DIRECTORY = "$$TRITON_MODEL_DIRECTORY"


def as_packed(repository: ModelRepository) -> ModelRepository:
    """Return a repository as it is packed: with its environments and shared files, in a copy;
    itself if it has none.

    Raises:
        InvalidValueError: an environment was not built, or a model cannot use one.
        ArchiveError: a file of the repository cannot or must not be archived.
    """
    environments = find_environments(repository)
    if not environments and not has_shared_files(repository):
        return repository

    placed = place_environments(repository, environments, scratch_directory())
    placed.compose(repository.composition)
    return placed


def without_environments(repository: ModelRepository) -> ModelRepository:
    """Return a repository as it is packed, except for its environments."""
    if not has_shared_files(repository):
        return repository
    placed = place_environments(repository, {}, scratch_directory())
    placed.compose(repository.composition)
    return placed


def find_environments(repository: ModelRepository) -> Mapping[str, PythonEnvironment]:
    """Return the environment of each model that has one, without looking whether it was built.

    Raises:
        InvalidValueError: a model cannot use an environment.
    """
    description = repository.description
    if description is None or not description.environments:
        return {}
    if repository.root_model is not None:
        raise InvalidValueError(
            f"{repository.path}: {_KEYWORD} needs a folder with one subfolder for each model; move "
            "config.pbtxt and its files into a subfolder"
        )

    declared = {
        name: PythonEnvironment(
            described.requirements, described.image_version or DEFAULT_VERSION, repository.path
        )
        for name, described in description.environments.items()
    }
    if ALL_MODELS in declared:
        declared = dict.fromkeys(_python_models_of(repository), declared[ALL_MODELS])

    for name in declared:
        _check_model(repository, repository.model(name))
    return declared


def place_environments(
    repository: ModelRepository, environments: Mapping[str, PythonEnvironment], directory: Path
) -> ModelRepository:
    """Write the repository with its environments and shared files into an empty ``directory``, and
    return it.

    Files are links to those of ``repository``. Only the ``config.pbtxt`` of a model with an
    environment is written again, with one more parameter at its end. Models that are always in one
    archive share one file.

    Raises:
        InvalidValueError: an environment was not built.
        ArchiveError: a file of the repository cannot or must not be archived.
    """
    from triton_model_check.artifacts.mirror import mirror

    linked = mirror(repository, list(repository.models), directory)
    shared = place_shared_files(repository, directory)
    linked |= {os.path.realpath(repository.path / file) for file in shared.values()}
    for holder, users in _holders(repository, environments).items():
        archive = environments[holder].find_archive()
        (directory / holder / ARCHIVE_NAME).symlink_to(archive)
        linked.add(os.path.realpath(archive))
        for name in users:
            place = ARCHIVE_NAME if name == holder else f"../{holder}/{ARCHIVE_NAME}"
            _set_path(repository.models[name], directory / name / CONFIG_FILE, place)
    return ModelRepository.from_directory(directory, linked_files=linked, shared_files=shared)


def _python_models_of(repository: ModelRepository) -> list[str]:
    """Return the models that ``"*"`` stands for: all of the Python backend."""
    models = _python_models(repository.models.values())
    if not models:
        raise InvalidValueError(
            f"{repository.path}: {_KEYWORD} needs a model of the Python backend, got "
            f"{quoted(repository.models)}; remove {_KEYWORD}"
        )
    return models


def _python_models(models: Iterable[ModelFolder]) -> list[str]:
    return [
        model.name
        for model in models
        if model.config_fault is None and infer_backend(model).backend == "python"
    ]


def _check_model(repository: ModelRepository, model: ModelFolder) -> None:
    """Check that a model can use an environment that the library places."""
    if model.config_fault is not None:
        return  # the check reports it

    where = f"{repository.path}/{model.config_path}"
    if not _python_models([model]):
        raise InvalidValueError(
            f"{where}: {_KEYWORD} applies only to models of the Python backend, got "
            f'{infer_backend(model).backend or "an ensemble"}; remove "{model.name}"'
        )
    if model.config is not None and _PARAMETER in model.config.parameters:
        raise InvalidValueError(
            f"{where}: {_PARAMETER} is set, and {_KEYWORD} has an environment for "
            f'"{model.name}" too; remove one of them'
        )
    if model.exists(ARCHIVE_NAME):
        raise InvalidValueError(
            f"{repository.path}/{model.relative(ARCHIVE_NAME)}: an environment would replace this "
            "file; rename it"
        )


def _holders(
    repository: ModelRepository, chosen: Mapping[str, PythonEnvironment]
) -> dict[str, list[str]]:
    """Return the models whose folder contains an archive, each with the models that use it.

    A model uses the archive of another one only if that one is in every archive of models that it
    is in.
    """
    archives: dict[str, set[str]] = {name: set() for name in chosen}
    for top in repository.top_level_models():
        for name in archives.keys() & set(repository.closure(top)):
            archives[name].add(top)

    holders: dict[str, list[str]] = {}
    for name in sorted(chosen):
        possible = [
            other
            for other in chosen
            if chosen[other] == chosen[name] and archives[name] <= archives[other]
        ]
        holder = min(possible, key=lambda other: (-len(archives[other]), other))
        holders.setdefault(holder, []).append(name)
    return holders


def _set_path(model: ModelFolder, config: Path, place: str) -> None:
    """Write the configuration with the parameter at its end, so that lines keep their numbers."""
    content = model.read(CONFIG_FILE) or b""
    path = json.dumps(f"{_MODEL_DIRECTORY}/{place}", ensure_ascii=False)
    line = f'parameters {{ key: "{_PARAMETER}" value {{ string_value: {path} }} }}\n'
    config.unlink(missing_ok=True)
    config.write_bytes((content and content.rstrip(b"\n") + b"\n") + line.encode())
