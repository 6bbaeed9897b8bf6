"""The description of a model file, whatever its format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

__all__ = ["FileFault", "ModelFile", "ModelFormat", "ModelTensor"]

ModelFormat = Literal[
    "onnx", "ort", "tensorrt_plan", "torchscript", "openvino", "tree", "savedmodel", "dali", "unknown"
]


@dataclass(frozen=True, slots=True)
class ModelTensor:
    """An input or an output.

    ``data_type`` is Triton's name, such as ``"TYPE_FP32"``, or ``""`` if Triton has none. ``shape`` includes
    the batch dimension; -1 is a size that is not fixed, ``None`` a rank that the file does not say.
    """

    name: str
    data_type: str
    shape: tuple[int, ...] | None
    is_optional: bool = False


@dataclass(frozen=True, slots=True)
class FileFault:
    """Why the backend does not load the file: a code, what is wrong, and the fix."""

    code: str
    message: str
    hint: str


@dataclass(frozen=True, slots=True)
class ModelFile:
    """What a model file says of itself.

    ``inputs`` and ``outputs`` are in the file's order. ``has_batch_dimension`` is whether every tensor begins
    with a dimension that is not fixed, ``None`` if the file does not say. ``versions`` are those that the
    file names: the IR version and operator sets of ONNX, the version that built a TensorRT plan.
    ``has_inferred_shapes`` is whether the shapes of the outputs are those that the runtime infers, and not
    only those that the file declares. ``not_checked`` says in words what was not judged.
    """

    path: Path
    format: ModelFormat
    inputs: tuple[ModelTensor, ...] = ()
    outputs: tuple[ModelTensor, ...] = ()
    has_batch_dimension: bool | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    faults: tuple[FileFault, ...] = ()
    has_inferred_shapes: bool = False
    not_checked: tuple[str, ...] = ()
