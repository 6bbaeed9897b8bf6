"""The description of a model file, whatever its format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

__all__ = ["ModelFile", "ModelTensor"]

ModelFormat = Literal[
    "onnx",
    "ort",
    "tensorrt_plan",
    "torchscript",
    "torch_package",
    "openvino",
    "tree",
    "savedmodel",
    "dali",
    "unknown",
]

FaultCode = Literal[
    "model-file-missing",
    "model-file-format",
    "onnx-not-a-model",
    "onnx-version",
    "onnx-operator",
    "onnx-invalid-graph",
    "onnx-not-a-tensor",
    "onnx-external-data",
    "plan-not-a-plan",
    "plan-version",
    "torchscript-not-a-model",
    "torchscript-arguments",
]
"""The check that reports a fault."""

TREE_MODEL_FILES = {
    "xgboost": "xgboost.model",
    "xgboost_json": "xgboost.json",
    "xgboost_ubj": "xgboost.ubj",
    "lightgbm": "model.txt",
    "treelite_checkpoint": "checkpoint.tl",
}
"""The file that the FIL backend loads for each value of its parameter ``model_type``."""


@dataclass(frozen=True, slots=True)
class ModelTensor:
    """An input or an output of a model.

    Args:
        name: Name in the file.
        data_type: Triton's name, such as ``"TYPE_FP32"``, or ``""`` if Triton has none. An argument
            of TorchScript has its Python type, such as ``"Tensor"``, because its code does not name
            a data type.
        shape: Sizes with the batch dimension; -1 is a variable size. ``None`` is a rank of 0 or an
            unknown rank.
        is_optional: Whether the model has a default value for the input.
        has_certain_shape: Whether the runtime is known to give an output this shape. Otherwise the
            file declares the shape, or it is ``None``.
        profile: The smallest, the usual and the largest shape of an input that a TensorRT plan
            accepts; empty for other files.
        axes: The names that an ONNX file gives the dimensions, "" for a size; empty if unknown.
    """

    name: str
    data_type: str
    shape: tuple[int, ...] | None
    is_optional: bool = False
    profile: tuple[tuple[int, ...], ...] = ()
    axes: tuple[str, ...] = field(default=(), compare=False)
    has_certain_shape: bool = False

    @property
    def is_batched(self) -> bool:
        """Whether it begins with a dimension of variable size."""
        return bool(self.shape) and self.shape is not None and self.shape[0] == -1


class BatchAxis(NamedTuple):
    """Where the batch of a tensor is.

    Args:
        tensor: Name of the tensor.
        name: Name of the dimension that is the batch.
        position: Number of that dimension, from 0.
        first: Name of the tensor's first dimension.
    """

    tensor: str
    name: str
    position: int
    first: str


@dataclass(frozen=True, slots=True)
class FileFault:
    """Why the backend does not load the file.

    Args:
        code: Check that reports the fault.
        message: What is wrong.
        hint: How to fix it.
        file: The file that is wrong, relative to the folder of the model file; ``None`` is the
            model file.
    """

    code: FaultCode
    message: str
    hint: str
    file: str | None = None


@dataclass(frozen=True, slots=True)
class ModelFile:
    """What a model file says of itself.

    ``inputs``, ``outputs``
        In the order of the file.
    ``has_batch_dimension``
        Whether every tensor begins with a dimension of variable size; ``None`` if unknown.
    ``versions``
        The versions that the file names: the IR version and operator sets of ONNX, the TensorRT of
        a plan.
    ``model_type``
        The ``model_type`` with which the FIL backend reads a model of trees; empty if unknown.
    ``is_classifier``
        Whether a model of trees predicts classes; ``None`` if unknown.
    ``devices``
        The devices that the code of a TorchScript model names, such as ``"cpu"``.
    ``traced_types``
        The data types of the inputs that a TorchScript model was traced with, in the order of the
        arguments.
    ``faults``
        Why the backend does not load the file; empty if nothing is known to be wrong.
    ``has_inferred_shapes``
        Whether the shapes of all outputs are those that the runtime infers. Each output has its own
        ``has_certain_shape``, too.
    ``not_checked``
        What could not be checked, and why.
    ``data_files``
        Files that belong to the model, relative to its folder: the external data of ONNX, the
        weights of OpenVINO.
    ``external_bytes``
        Bytes of the external data of ONNX that is read; ``None`` if they are not known.
    ``certain_weight_bytes``
        Bytes of weights that an instance on a GPU certainly has there, for ONNX and TorchScript;
        0 if none are certain.
    ``has_manifest``
        Whether the ``plan.json`` of a TensorRT plan can be read, and is that of this plan.
    ``path``
        Path of the file, or of the folder of a SavedModel.
    ``format``
        Format of the file.
    """

    path: Path
    format: ModelFormat
    inputs: tuple[ModelTensor, ...] = ()
    outputs: tuple[ModelTensor, ...] = ()
    has_batch_dimension: bool | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    model_type: str = ""
    is_classifier: bool | None = None
    devices: tuple[str, ...] = ()
    traced_types: tuple[str, ...] = ()
    faults: tuple[FileFault, ...] = ()
    has_inferred_shapes: bool = False
    not_checked: tuple[str, ...] = ()
    data_files: tuple[str, ...] = ()
    has_manifest: bool = False
    external_bytes: int | None = None
    certain_weight_bytes: int = 0

    @property
    def other_batch_axis(self) -> BatchAxis | None:
        """The first tensor whose batch is not its first dimension, as the names of the file say.

        The first dimension of an input is called like another dimension of the tensor, whose own
        first dimension has another name. Names are no proof: an exporter may give any.
        """
        first = [each.axes[0] for each in self.inputs if each.axes and each.axes[0]]
        for tensor in (*self.outputs, *self.inputs):
            if not (tensor.axes and tensor.axes[0]):
                continue
            for name in first:
                if name != tensor.axes[0] and name in tensor.axes[1:]:
                    return BatchAxis(tensor.name, name, tensor.axes.index(name), tensor.axes[0])
        return None

    @property
    def fixed_tensors(self) -> list[ModelTensor]:
        """The required inputs and the outputs without a batch dimension."""
        return [
            each
            for each in (*self.inputs, *self.outputs)
            if not (each.is_optional or each.is_batched)
        ]
