"""Triton's own schema of ``config.pbtxt``, without the gRPC client it is shipped with.

``tritonclient`` carries ``model_config_pb2.py``, generated from Triton's ``model_config.proto``. Importing it
the ordinary way imports the package around it, and with it grpc and aiohttp: half a second. The file itself
needs protobuf alone, so it is loaded by its path. The descriptor goes to protobuf's default pool, where the
same bytes may be added twice: an ordinary import of ``tritonclient.grpc``, before or after, does no harm and
yields the same message classes.
"""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from constructs_triton.errors import MissingDependencyError

__all__ = ["data_type_name", "load_schema", "new_model_config"]

_MODULE_NAME = "constructs_triton.model_config._tritonclient_model_config_pb2"


@cache
def load_schema() -> ModuleType:
    """The generated module, with ``ModelConfig`` and the enums of ``model_config.proto``.

    :raises MissingDependencyError: without tritonclient, or with one that carries no gRPC part.
    """
    path = _schema_path()
    spec = importlib.util.spec_from_file_location(_MODULE_NAME, path)
    if spec is None or spec.loader is None:
        raise MissingDependencyError(
            f"{path}: cannot be loaded as a Python module; reinstall tritonclient[grpc]"
        )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _schema_path() -> Path:
    package = importlib.util.find_spec("tritonclient")
    for folder in (package.submodule_search_locations or ()) if package else ():
        path = Path(folder, "grpc", "model_config_pb2.py")
        if path.is_file():
            return path
    raise MissingDependencyError(
        "tritonclient: the gRPC schema is absent; run pip install 'tritonclient[grpc]'"
    )


def new_model_config() -> Any:
    """An empty ``inference.ModelConfig`` message."""
    return load_schema().ModelConfig()


def data_type_name(number: int) -> str:
    """The name of a ``DataType`` value such as ``TYPE_FP32``, or the number where the schema has none."""
    value = load_schema().DataType.DESCRIPTOR.values_by_number.get(number)
    return value.name if value else str(number)
