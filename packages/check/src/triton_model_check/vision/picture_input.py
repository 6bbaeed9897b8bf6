"""The input of a network that takes a picture: its size, its layout and its numbers."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any, Literal

from constructs_triton_core.errors import InvalidValueError
from triton_model_check.model_files.model_file import ModelTensor
from triton_model_check.vision.onnx_network import Network

__all__ = ["PictureInput", "picture_input"]

_CHANNELS = 3
_RANK = 4


@dataclass(frozen=True, slots=True)
class PictureInput:
    """Where the network reads its picture.

    Args:
        name: Name of the input.
        layout: ``"NCHW"`` or ``"NHWC"``.
        width: Pixels of a row.
        height: Pixels of a column.
        data_type: ``"TYPE_FP32"`` or ``"TYPE_FP16"``.
        others: The other inputs.
    """

    name: str
    layout: Literal["NCHW", "NHWC"]
    width: int
    height: int
    data_type: Literal["TYPE_FP32", "TYPE_FP16"]
    others: tuple[ModelTensor, ...] = ()

    @property
    def dims(self) -> list[int]:
        """Its sizes without the batch."""
        if self.layout == "NCHW":
            return [_CHANNELS, self.height, self.width]
        return [self.height, self.width, _CHANNELS]


def picture_input(network: Network, fields: dict[str, Any]) -> PictureInput:
    """Find the input for the picture. ``fields`` may have an ``input`` with its size.

    Raises:
        InvalidValueError: no input, or several, can be a picture; or its size is not known.
    """
    found = [tensor for tensor in network.inputs if _layout(tensor) is not None]
    if len(found) != 1:
        shapes = ", ".join(f'"{each.name}" {list(each.shape or ())}' for each in network.inputs)
        raise InvalidValueError(
            f"{network.path}: exactly one input must have four dimensions with three channels, "
            f"[batch, 3, height, width] or [batch, height, width, 3], got {shapes}; export a "
            "network that takes a picture, or connect its steps yourself with --backend ensemble"
        )
    tensor = found[0]
    _require_one_picture(network, tensor)
    data_type = _float_type(tensor)
    if data_type is None:
        raise InvalidValueError(
            f'{network.path}: the input "{tensor.name}" must be FP32 or FP16, got '
            f"{tensor.data_type.removeprefix('TYPE_')}; write the step before it yourself, with "
            "--backend python"
        )
    layout = _layout(tensor)
    assert layout is not None
    height, width = _size(network, tensor, layout, fields)
    others = tuple(each for each in network.inputs if each is not tensor)
    return PictureInput(tensor.name, layout, width, height, data_type, others)


def _float_type(tensor: ModelTensor) -> Literal["TYPE_FP32", "TYPE_FP16"] | None:
    if tensor.data_type == "TYPE_FP32":
        return "TYPE_FP32"
    if tensor.data_type == "TYPE_FP16":
        return "TYPE_FP16"
    return None


def _layout(tensor: ModelTensor) -> Literal["NCHW", "NHWC"] | None:
    """Return the order of the axes of a picture; ``None`` if the tensor is no picture."""
    shape = tensor.shape or ()
    if len(shape) != _RANK:
        return None
    if shape[1] == _CHANNELS:
        return "NCHW"
    if shape[3] == _CHANNELS:
        return "NHWC"
    return None


def _require_one_picture(network: Network, tensor: ModelTensor) -> None:
    batch = (tensor.shape or (0,))[0]
    if batch not in (-1, 1):
        raise InvalidValueError(
            f'{network.path}: the input "{tensor.name}" takes exactly {batch} pictures; export it '
            "with a batch of variable size (dynamic=True), or of 1"
        )


def _size(
    network: Network, tensor: ModelTensor, layout: str, fields: dict[str, Any]
) -> tuple[int, int]:
    """Return height and width: of the file, of ``--input``, or of the exporter's metadata."""
    rows = 2 if layout == "NCHW" else 1
    sizes = list((tensor.shape or ())[rows : rows + 2])
    if min(sizes) > 0:
        return sizes[0], sizes[1]
    for declared in fields.get("input", ()):
        if declared.name == tensor.name:
            first = len(declared.dims) - (2 if layout == "NCHW" else 3)
            sizes = list(declared.dims[first : first + 2])
    if len(sizes) == 2 and min(sizes) > 0:
        return int(sizes[0]), int(sizes[1])
    trained = _image_size(network)
    if trained is not None:
        return trained
    example = "3,640,640" if layout == "NCHW" else "640,640,3"
    raise InvalidValueError(
        f'{network.path}: the input "{tensor.name}" has a variable size; write that with which it '
        f"was trained, for example --input {tensor.name}:FP32:{example}"
    )


def _image_size(network: Network) -> tuple[int, int] | None:
    """Return height and width that Ultralytics wrote as ``imgsz``, such as ``[640, 640]``."""
    try:
        sizes = ast.literal_eval(network.metadata.get("imgsz", ""))
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    if not isinstance(sizes, list) or len(sizes) != 2:
        return None
    if not all(isinstance(size, int) and size > 0 for size in sizes):
        return None
    return sizes[0], sizes[1]
