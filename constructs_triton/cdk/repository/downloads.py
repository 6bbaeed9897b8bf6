"""Whether models download their weights when they start."""

from __future__ import annotations

from collections.abc import Iterable

from constructs_triton.model_config.folder import ModelFolder
from constructs_triton.model_repository.repository import ModelRepository
from constructs_triton_client.bounded_json import parse_bounded_json

__all__ = ["downloads_weights"]

_ENGINE_FILE = "model.json"


def downloads_weights(repository: ModelRepository, names: Iterable[str]) -> bool:
    """Return whether one of the models is a vLLM model with the id of a hub in place of a folder."""
    return any(name in repository.models and _downloads(repository.models[name]) for name in names)


def _downloads(folder: ModelFolder) -> bool:
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
