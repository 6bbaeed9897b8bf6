"""Loads Triton's schema of ``config.pbtxt`` without the gRPC client that contains it.

``tritonclient`` contains ``model_config_pb2.py``, generated from Triton's ``model_config.proto``. An ordinary
import of it also imports grpc and aiohttp, which takes half a second. The file needs only protobuf, so this
module loads it by its path. The descriptor goes to protobuf's default pool, which accepts the same descriptor
twice. So ``tritonclient.grpc`` can be imported before or after, and gives the same message classes.
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
    """Return the generated module, with ``ModelConfig`` and the enums of ``model_config.proto``.

    Raises:
        MissingDependencyError: tritonclient is not installed, or was installed without gRPC.
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
        "tritonclient: the gRPC schema is not installed; run pip install 'tritonclient[grpc]'"
    )


def new_model_config() -> Any:
    """Return an empty ``inference.ModelConfig`` message."""
    return load_schema().ModelConfig()


def data_type_name(number: int) -> str:
    """Return the name of a ``DataType`` value such as ``TYPE_FP32``, or the number if it has no name."""
    value = load_schema().DataType.DESCRIPTOR.values_by_number.get(number)
    return value.name if value else str(number)
