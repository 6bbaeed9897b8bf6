"""A replacement for Triton's ``pb_utils``, so that stand-ins run without a server."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from google.protobuf import json_format

from triton_model_check.checks.model_under_check import ModelUnderCheck
from triton_model_check.model.completion import complete_core
from triton_model_check.model.folder import ModelFolder
from triton_model_check.model_config.schema import new_model_config


class Tensor:
    """A named array."""

    def __init__(self, name: str, array: Any) -> None:
        self._name, self._array = name, array

    def name(self) -> str:
        return self._name

    def as_numpy(self) -> Any:
        return self._array


class InferenceResponse:
    """Output tensors, or an error."""

    def __init__(self, tensors: Sequence[Tensor], error: Exception | None = None) -> None:
        self.outputs = {each.name(): each.as_numpy() for each in tensors}
        self.error = error


class ModelConfig:
    """The argument of ``auto_complete_config``."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._config = config

    def as_dict(self) -> dict[str, Any]:
        return self._config


def request(wanted: Sequence[str], **arrays: Any) -> Any:
    """A request with these inputs for these outputs."""
    tensors = [Tensor(name, array) for name, array in arrays.items()]
    return SimpleNamespace(inputs=lambda: tensors, requested_output_names=lambda: list(wanted))


def install(model_directory: str = "") -> ModuleType:
    """Make ``import triton_python_backend_utils`` find this replacement."""
    module = ModuleType("triton_python_backend_utils")
    module.__dict__.update(
        Tensor=Tensor,
        InferenceResponse=InferenceResponse,
        TritonError=type("TritonError", (Exception,), {}),
        TritonModelException=type("TritonModelException", (Exception,), {}),
        get_model_dir=lambda: model_directory,
    )
    return sys.modules.setdefault("triton_python_backend_utils", module)


def core_config(model: ModelUnderCheck) -> dict[str, Any]:
    """The configuration as the server's core passes it to the backend."""
    config = new_model_config()
    if model.config is not None:
        config.CopyFrom(model.config)
    config.name = config.name or model.name
    complete_core(config, model.completed, 0)
    return as_json(config)


def as_json(config: Any) -> dict[str, Any]:
    """A configuration as the server writes it: sizes are numbers, and lists are never left out."""
    values = json_format.MessageToDict(config, preserving_proto_field_name=True)
    for side in ("input", "output"):
        for tensor in values.setdefault(side, []):
            tensor["dims"] = [int(size) for size in tensor.get("dims", [])]
            tensor.setdefault("data_type", "TYPE_INVALID")
    return {"max_batch_size": 0, "default_model_filename": "", **values}


def load(stand_in: Any, folder: ModelFolder, version: str, config: dict[str, Any]) -> None:
    """Complete the configuration and load one version, as the Python backend does."""
    module = sys.modules["triton_python_backend_utils"]
    file = config["default_model_filename"] or stand_in.default_file
    module.__dict__["get_model_dir"] = lambda: str((folder.directory / version / file).parent)
    type(stand_in).auto_complete_config(ModelConfig(config))
    stand_in.initialize(_arguments(config, folder.directory, version))


def _arguments(config: Mapping[str, Any], directory: Path, version: str) -> dict[str, str]:
    return {
        "model_config": json.dumps(config),
        "model_repository": str(directory),
        "model_version": version,
        "model_name": str(config["name"]),
    }
