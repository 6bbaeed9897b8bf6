"""The bytes of a model's weights, as its files say."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from triton_model_check.model_files.model_file import ModelFile

_WHOLE_FILES = frozenset({"tensorrt_plan", "torchscript"})
"""Formats whose file has about the size of the weights in memory."""


def weight_bytes(file: ModelFile) -> int | None:
    """Return the bytes of the weights of a model file; ``None`` if they are not known.

    A file that is absent is not known, not empty. Trees, SavedModels and pipelines of DALI have
    another size in memory than on disk.
    """
    if file.format == "onnx":
        return _sum(_size(file.path), file.external_bytes)
    if file.format == "openvino":
        return _sum(0, *(_size(file.path.parent / name) for name in file.data_files))
    return _size(file.path) if file.format in _WHOLE_FILES else None


def converts_weights(config: Any) -> bool:
    """Return whether another engine takes the place of ONNX Runtime's weights on the GPU.

    TensorRT builds an engine at load, often of half the precision.
    """
    return bool(config.optimization.execution_accelerators.gpu_execution_accelerator)


def shares_weights(backend: str, parameters: Mapping[str, Any], facts: Mapping[str, Any]) -> bool:
    """Return whether the instances on one GPU, or on the host, share the weights.

    ``facts`` are ``sharing`` of ``memory.json``, which has the source for each backend.
    """
    known = facts.get(backend, {})
    if known.get("weights") in ("gpu", "model"):
        return True
    choice = known.get("parameter", {})
    name = choice.get("name", "")
    given = parameters[name].string_value if name in parameters else ""
    return bool(given) and given.lower() == choice.get("value")


def _sum(*sizes: int | None) -> int | None:
    known = [size for size in sizes if size is not None]
    return sum(known) if len(known) == len(sizes) else None


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size if path.is_file() else None
    except (OSError, ValueError):
        return None
