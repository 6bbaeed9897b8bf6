"""How much of a model's weights certainly is on the GPU, so that a smaller one cannot load it.

Less than ``weight_bytes`` says: an ONNX file can have initializers that ONNX Runtime folds away or
keeps on the host, a TorchScript archive and a TensorRT plan have code beside the weights.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from triton_model_check.facts.published import load
from triton_model_check.model_files.model_file import ModelFile


def certain_weight_bytes(file: ModelFile) -> int:
    """Return the bytes of the weights that an instance on a GPU certainly has there."""
    if file.faults:
        return 0
    if file.format == "tensorrt_plan":
        beside = int(load("memory")["gpu"]["plan_beside_weights_bytes"])
        return max(0, _size(file.path) - beside)
    if file.format == "torchscript":  # the list of a damaged archive can have any size
        return min(file.certain_weight_bytes, _size(file.path))
    return file.certain_weight_bytes


def has_variable_shape(files: Iterable[ModelFile]) -> bool:
    """Return whether a model file says that one of its tensors has a dimension of -1."""
    shapes = [tensor.shape for file in files for tensor in (*file.inputs, *file.outputs)]
    return any(shape is not None and -1 in shape for shape in shapes)


def declares_variable_shape(config: Any | None) -> bool:
    """Return whether the configuration gives a tensor a dimension of -1.

    TensorRT also accepts it for an engine that has a size there. Source: triton tensorrt_backend
    src/tensorrt_utils.cc, CompareDimsSupported.
    """
    tensors = [] if config is None else [*config.input, *config.output]
    return any(-1 in tensor.dims for tensor in tensors)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except (OSError, ValueError):
        return 0
