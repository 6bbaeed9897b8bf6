"""Adds environments to a copy of a model repository that links to the user's files."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from constructs_triton.artifacts.environments.python_environment import PythonEnvironment
from constructs_triton.artifacts.mirror import mirror
from constructs_triton.errors import InvalidValueError
from constructs_triton.model_config.backends import infer_backend
from constructs_triton.model_config.folder import CONFIG_FILE, ModelFolder
from constructs_triton.model_repository import ModelRepository
from constructs_triton_client.spelling import quoted

__all__ = ["ARCHIVE_NAME", "Environments", "place_environments"]

ARCHIVE_NAME = "env.tar"
"""The name of an environment in a model's folder."""

Environments = PythonEnvironment | Mapping[str, PythonEnvironment]
"""One environment for all models of the Python backend, or one for each named model."""

_USE = 'use PythonEnvironment.from_requirements("requirements.txt")'
_PARAMETER, _MODEL_DIRECTORY = "EXECUTION_ENV_PATH", "$$TRITON_MODEL_DIRECTORY"


def place_environments(
    repository: ModelRepository, environments: Environments, directory: Path
) -> ModelRepository:
    """Write the repository with its environments into ``directory``, which is empty, and return it.

    Files are links to those of ``repository``. Only the ``config.pbtxt`` of a model with an environment is
    written again, with one more parameter at its end. Models that are always in one archive share one file.

    Raises:
        InvalidValueError: an environment was not built, or a model cannot use one.
        ArchiveError: a file of the repository cannot or must not be archived.
    """
    chosen = _chosen(repository, environments)
    linked = mirror(repository, list(repository.models), directory)
    for holder, users in _holders(repository, chosen).items():
        archive = chosen[holder].find_archive()
        (directory / holder / ARCHIVE_NAME).symlink_to(archive)
        linked.add(os.path.realpath(archive))
        for name in users:
            place = ARCHIVE_NAME if name == holder else f"../{holder}/{ARCHIVE_NAME}"
            _set_path(repository.models[name], directory / name / CONFIG_FILE, place)
    return ModelRepository.from_directory(directory, linked_files=linked)


def _chosen(repository: ModelRepository, environments: Environments) -> dict[str, PythonEnvironment]:
    if repository.root_model is not None:
        raise InvalidValueError(
            f"{repository.path}: python_environments needs a folder with one subfolder for each model; move "
            "config.pbtxt and its files into a subfolder"
        )
    if isinstance(environments, PythonEnvironment):
        chosen = dict.fromkeys(_python_models(repository.models.values()), environments)
        if not chosen:
            raise InvalidValueError(
                f"{repository.path}: python_environments needs a model of the Python backend, got "
                f"{quoted(repository.models)}; remove python_environments"
            )
    elif isinstance(environments, Mapping):
        chosen = dict(environments)
    else:
        raise InvalidValueError(
            "python_environments: must be a PythonEnvironment or a mapping of them, got "
            f"{environments!r}; {_USE}"
        )
    for name, environment in chosen.items():
        _refuse(repository, repository.model(name), environment)
    return chosen


def _python_models(models: Iterable[ModelFolder]) -> list[str]:
    return [
        each.name for each in models if each.config_fault is None and infer_backend(each).backend == "python"
    ]


def _refuse(repository: ModelRepository, model: ModelFolder, environment: object) -> None:
    if not isinstance(environment, PythonEnvironment):
        raise InvalidValueError(
            f'python_environments["{model.name}"]: must be a PythonEnvironment, got {environment!r}; {_USE}'
        )
    where = f"{repository.path}/{model.config_path}"
    if model.config_fault is not None:
        return  # the check reports it
    if not _python_models([model]):
        raise InvalidValueError(
            f"{where}: python_environments applies only to models of the Python backend, got "
            f'{infer_backend(model).backend or "an ensemble"}; remove "{model.name}"'
        )
    if model.config is not None and _PARAMETER in model.config.parameters:
        raise InvalidValueError(
            f'{where}: {_PARAMETER} is set, and python_environments has an environment for "{model.name}" '
            "too; remove one of them"
        )
    if model.exists(ARCHIVE_NAME):
        raise InvalidValueError(
            f"{repository.path}/{model.relative(ARCHIVE_NAME)}: an environment would replace this "
            "file; rename it"
        )


def _holders(repository: ModelRepository, chosen: Mapping[str, PythonEnvironment]) -> dict[str, list[str]]:
    """Return the models whose folder contains an archive, each with the models that use it.

    A model uses the archive of another one only if that one is in every archive of models that it is in.
    """
    closures = {name: repository.closure(name) for name in repository.top_level_models()}
    places = {name: frozenset(top for top, models in closures.items() if name in models) for name in chosen}
    holders: dict[str, list[str]] = {}
    for name in sorted(chosen):
        possible = [each for each in chosen if chosen[each] == chosen[name] and places[name] <= places[each]]
        holder = min(possible, key=lambda each: (-len(places[each]), each))
        holders.setdefault(holder, []).append(name)
    return holders


def _set_path(model: ModelFolder, config: Path, place: str) -> None:
    """Write the configuration with the parameter at its end, so that lines keep their numbers."""
    content = model.read(CONFIG_FILE) or b""
    path = json.dumps(f"{_MODEL_DIRECTORY}/{place}", ensure_ascii=False)
    line = f'parameters {{ key: "{_PARAMETER}" value {{ string_value: {path} }} }}\n'
    config.unlink(missing_ok=True)
    config.write_bytes((content and content.rstrip(b"\n") + b"\n") + line.encode())
