"""Adds environments to a copy of a model repository that links to the user's files.

They are those of the app or those of ``triton-models.toml``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.spelling import quoted
from constructs_triton_core.tokens import is_token
from triton_model_check.artifacts.environments.python_environment import PythonEnvironment
from triton_model_check.facts.images import DEFAULT_VERSION
from triton_model_check.model.backends import infer_backend
from triton_model_check.model.folder import CONFIG_FILE, ModelFolder
from triton_model_check.model_repository import ModelRepository
from triton_model_check.model_repository.composition import ALL_MODELS
from triton_model_check.model_repository.temporary_folders import scratch_directory

__all__ = ["Environments", "find_environments", "place_environments", "with_environments"]

ARCHIVE_NAME = "env.tar"
"""The name of an environment in a model's folder."""

Environments = PythonEnvironment | Mapping[str, PythonEnvironment]
"""One environment for all models of the Python backend, or one for each named model."""

_USE = 'use PythonEnvironment.from_requirements("requirements.txt")'
_KEYWORD = "python_environments"
_PARAMETER, _MODEL_DIRECTORY = "EXECUTION_ENV_PATH", "$$TRITON_MODEL_DIRECTORY"


def with_environments(
    repository: ModelRepository, given: Environments | None = None
) -> ModelRepository:
    """Return a repository as it is packed: with its environments, in a copy; itself if it has none.

    Args:
        repository: The repository.
        given: Environments of the app. Default: those of ``triton-models.toml``.

    Raises:
        InvalidValueError: an environment was not built, a model cannot use one, or ``given`` and
            the file differ.
        ArchiveError: a file of the repository cannot or must not be archived.
    """
    chosen = find_environments(repository, given)
    if not chosen:
        return repository
    placed = place_environments(repository, chosen, scratch_directory())
    placed.compose(repository.composition)
    return placed


def find_environments(
    repository: ModelRepository, given: Environments | None = None
) -> Mapping[str, PythonEnvironment]:
    """Return the environment of each model that has one, without looking whether it was built.

    Raises:
        InvalidValueError: a model cannot use an environment, or ``given`` and
            ``triton-models.toml`` differ.
    """
    chosen = {} if given is None else _chosen(repository, given)
    description = repository.description
    if description is None or not description.environments:
        return chosen
    described = {
        name: PythonEnvironment(
            each.requirements, each.image_version or DEFAULT_VERSION, repository.path
        )
        for name, each in description.environments.items()
    }
    own = _chosen(repository, described.get(ALL_MODELS, described))
    if given is not None and (found := _identified(chosen)) != (wanted := _identified(own)):
        raise description.differs(_KEYWORD, _KEYWORD, found, wanted)
    return own


def _identified(environments: Mapping[str, PythonEnvironment]) -> dict[str, str]:
    return {
        name: f"{os.path.realpath(each.requirements)} for {each.image_version}"
        for name, each in sorted(environments.items())
    }


def place_environments(
    repository: ModelRepository, environments: Environments, directory: Path
) -> ModelRepository:
    """Write the repository with its environments into ``directory``, which is empty, and return it.

    Files are links to those of ``repository``. Only the ``config.pbtxt`` of a model with an
    environment is written again, with one more parameter at its end. Models that are always in one
    archive share one file.

    Raises:
        InvalidValueError: an environment was not built, or a model cannot use one.
        ArchiveError: a file of the repository cannot or must not be archived.
    """
    from triton_model_check.artifacts.mirror import mirror

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


def _chosen(
    repository: ModelRepository, environments: Environments
) -> dict[str, PythonEnvironment]:
    if repository.root_model is not None:
        raise InvalidValueError(
            f"{repository.path}: python_environments needs a folder with one subfolder for each "
            "model; move config.pbtxt and its files into a subfolder"
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
            f"{_shown(environments)}; {_USE}"
        )
    for name, environment in chosen.items():
        _refuse(repository, repository.model(name), environment)
    return chosen


def _python_models(models: Iterable[ModelFolder]) -> list[str]:
    return [
        each.name
        for each in models
        if each.config_fault is None and infer_backend(each).backend == "python"
    ]


def _refuse(repository: ModelRepository, model: ModelFolder, environment: object) -> None:
    if not isinstance(environment, PythonEnvironment):
        raise InvalidValueError(
            f'python_environments["{model.name}"]: must be a PythonEnvironment, got '
            f"{environment!r}; {_USE}"
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
            f"{where}: {_PARAMETER} is set, and python_environments has an environment for "
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
    closures = {name: repository.closure(name) for name in repository.top_level_models()}
    places = {
        name: frozenset(top for top, models in closures.items() if name in models)
        for name in chosen
    }
    holders: dict[str, list[str]] = {}
    for name in sorted(chosen):
        possible = [
            each for each in chosen if chosen[each] == chosen[name] and places[name] <= places[each]
        ]
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


def _shown(value: object) -> str:
    return "a value that is known only at deployment" if is_token(value) else repr(value)
