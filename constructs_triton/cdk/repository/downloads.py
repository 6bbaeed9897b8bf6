"""What models need when they start, besides their files: weights from a hub,
and unpacked environments.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from constructs_triton_core.bounded_json import parse_bounded_json
from triton_model_check.model.folder import ModelFolder
from triton_model_check.model_repository.repository import ModelRepository

_ENGINE_FILE = "model.json"
_ENVIRONMENT, _MODEL_DIRECTORY = "EXECUTION_ENV_PATH", "$$TRITON_MODEL_DIRECTORY"


def downloads_weights(repository: ModelRepository, names: Iterable[str]) -> bool:
    """Return whether one of the models is a vLLM model with the id of a hub
    in place of a folder.
    """
    return any(name in repository.models and _downloads(repository.models[name]) for name in names)


def environment_bytes(repository: ModelRepository, names: Iterable[str]) -> int:
    """Return the size of the Python environments that the server unpacks, each file once."""
    found = {}
    for folder in (repository.models[name] for name in names if name in repository.models):
        parameters = {} if folder.config is None else folder.config.parameters
        value = parameters[_ENVIRONMENT].string_value if _ENVIRONMENT in parameters else ""
        if value.startswith(_MODEL_DIRECTORY):
            parts = [part for part in value.removeprefix(_MODEL_DIRECTORY).split("/") if part]
            # Without links: two models with links to one file are two copies in the archive.
            found[os.path.normpath(folder.directory.joinpath(*parts))] = folder.environment(
                *parts
            ).unpacked_bytes
    return sum(found.values())


def _downloads(folder: ModelFolder) -> bool:
    """Whether a vLLM model names one of the Hugging Face Hub, which the container downloads."""
    versions = [name for name in folder.version_directories if folder.exists(name, _ENGINE_FILE)]
    if not versions or folder.config is None or folder.config.backend != "vllm":
        return False
    return any(_is_hub_id(folder, version) for version in versions)


def _is_hub_id(folder: ModelFolder, version: str) -> bool:
    try:
        arguments = parse_bounded_json(folder.read(version, _ENGINE_FILE) or b"")
    except ValueError:
        return False
    source = arguments.get("model") if isinstance(arguments, dict) else None
    return isinstance(source, str) and not source.startswith("/")
