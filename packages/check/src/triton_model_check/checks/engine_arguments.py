"""Reads the engine arguments of a vLLM model, ``model.json``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from constructs_triton_core.bounded_json import parse_bounded_json
from triton_model_check.checks.model_under_check import ModelUnderCheck

ENGINE_FILE = "model.json"
MODEL_ROOT = "/opt/ml/model"
"""Where SageMaker unpacks the archive of an endpoint with a single model."""


@dataclass(frozen=True)
class EngineArguments:
    """The engine arguments of one version: its path relative to the repository, and the values."""

    model: ModelUnderCheck
    version: str
    values: Mapping[str, Any]

    @property
    def path(self) -> str:
        """``model.json``, relative to the repository."""
        return self.model.folder.relative(self.version, ENGINE_FILE)

    @property
    def tensor_parallel(self) -> int:
        """Number of GPUs that share each layer."""
        return self._size("tensor_parallel_size")

    @property
    def pipeline_parallel(self) -> int:
        """Number of GPUs that share the layers."""
        return self._size("pipeline_parallel_size")

    @property
    def gpus(self) -> int:
        """Number of GPUs of one engine."""
        return self.tensor_parallel * self.pipeline_parallel

    @property
    def source(self) -> str:
        """The model: a folder on the server, or the id of a model on a hub."""
        value = self.values.get("model")
        return value if isinstance(value, str) else ""

    @property
    def local_folder(self) -> Path | None:
        """The folder of the weights in this repository, or ``None`` if they are elsewhere."""
        inside = f"{MODEL_ROOT}/{self.model.name}/"
        below = self.source.removeprefix(inside)
        if self.model.target.mode != "single" or below == self.source or ".." in below.split("/"):
            return None
        return self.model.folder.directory / below

    def _size(self, key: str) -> int:
        value = self.values.get(key, 1)
        return value if type(value) is int and value > 0 else 1


def engine_arguments_of(model: ModelUnderCheck) -> Iterator[EngineArguments]:
    """Yield the arguments of each version to load that has a JSON object."""
    for version in model.versions_to_load:
        values = read_arguments(model, version)
        if isinstance(values, dict):
            yield EngineArguments(model, version, values)


def read_arguments(model: ModelUnderCheck, version: str) -> Any:
    """Return the content of ``model.json``: ``None`` if it is absent,
    the error if it is not JSON.
    """
    content = model.folder.read(version, ENGINE_FILE)
    try:
        return None if content is None else parse_bounded_json(content)
    except ValueError as error:
        return error
