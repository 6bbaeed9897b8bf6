"""Inputs and outputs, and the tensors that Triton adds to a batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from triton_model_check.builder.typed_message import TypedMessage

DataType = Literal[
    "TYPE_INVALID",
    "TYPE_BOOL",
    "TYPE_UINT8",
    "TYPE_UINT16",
    "TYPE_UINT32",
    "TYPE_UINT64",
    "TYPE_INT8",
    "TYPE_INT16",
    "TYPE_INT32",
    "TYPE_INT64",
    "TYPE_FP16",
    "TYPE_FP32",
    "TYPE_FP64",
    "TYPE_STRING",
    "TYPE_BF16",
]
"""The element type of a tensor; ``"TYPE_INVALID"`` means that it is not set."""


class ModelTensorReshape(TypedMessage):
    """The shape of a tensor in the backend, if it is not ``dims``.

    Args:
        shape: Sizes without the batch axis; ``-1`` is a variable size. It must have as many
            elements as ``dims``. Empty means one value for each element of the batch.
    """

    shape: Sequence[int] = ()


class ModelInput(TypedMessage):
    """One input tensor.

    Args:
        name: Name of the input in the model file.
        data_type: Element type. It is required unless the backend reads it from the model file.
        format: Order of the axes of an image. Other formats than ``"FORMAT_NONE"`` need exactly
            three ``dims``.
        dims: Sizes, with ``-1`` for a variable size, and without the batch axis if
            ``max_batch_size`` is above 0.
        reshape: Shape that the backend receives instead of ``dims``. Default: ``dims``.
        is_shape_tensor: Whether it is a shape tensor. Only for TensorRT; it must match the model
            file.
        allow_ragged_batch: Whether requests with different shapes of this input may be in one
            batch.
        optional: Whether a request may omit the input.
        is_non_linear_format_io: Whether the model file uses a non-linear memory format. Only for
            TensorRT; it must match the model file.
    """

    name: str = ""
    data_type: DataType = "TYPE_INVALID"
    format: Literal["FORMAT_NONE", "FORMAT_NHWC", "FORMAT_NCHW"] = "FORMAT_NONE"
    dims: Sequence[int] = ()
    reshape: ModelTensorReshape | None = None
    is_shape_tensor: bool = False
    allow_ragged_batch: bool = False
    optional: bool = False
    is_non_linear_format_io: bool = False


class ModelOutput(TypedMessage):
    """One output tensor.

    Args:
        name: Name of the output in the model file.
        data_type: Element type. It is required unless the backend reads it from the model file.
        dims: Sizes, with ``-1`` for a variable size, and without the batch axis if
            ``max_batch_size`` is above 0.
        reshape: Shape that the backend returns; Triton changes it to ``dims``. Default: ``dims``.
        label_filename: File beside ``config.pbtxt`` with the label of one class on each line.
            Empty: no labels.
        is_shape_tensor: Whether it is a shape tensor. Only for TensorRT; it must match the model
            file.
        is_non_linear_format_io: Whether the model file uses a non-linear memory format. Only for
            TensorRT; it must match the model file.
    """

    name: str = ""
    data_type: DataType = "TYPE_INVALID"
    dims: Sequence[int] = ()
    reshape: ModelTensorReshape | None = None
    label_filename: str = ""
    is_shape_tensor: bool = False
    is_non_linear_format_io: bool = False


class BatchInput(TypedMessage):
    """An input that the backend computes for each batch, for models that accept ragged batches.

    Args:
        kind: What is computed from the source: its number of elements in each request, the running
            total of that number, the highest number as a shape, or the shape of each element of the
            batch.
        target_name: Names of the model's inputs that receive the value.
        data_type: ``"TYPE_INT32"`` or ``"TYPE_FP32"``.
        source_input: Name of the ragged input from which the value is computed, as the only
            element.
    """

    kind: Literal[
        "BATCH_ELEMENT_COUNT",
        "BATCH_ACCUMULATED_ELEMENT_COUNT",
        "BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO",
        "BATCH_MAX_ELEMENT_COUNT_AS_SHAPE",
        "BATCH_ITEM_SHAPE",
        "BATCH_ITEM_SHAPE_FLATTEN",
    ] = "BATCH_ELEMENT_COUNT"
    target_name: Sequence[str] = ()
    data_type: DataType = "TYPE_INVALID"
    source_input: Sequence[str] = ()


class BatchOutput(TypedMessage):
    """An output of a whole batch, and how the backend splits it among the responses.

    Args:
        target_name: Names of the outputs to split.
        kind: How to split: each response gets the part that belongs to the shape of its source
            input.
        source_input: Name of the input whose shape determines the parts, as the only element.
    """

    target_name: Sequence[str] = ()
    kind: Literal["BATCH_SCATTER_WITH_INPUT_SHAPE"] = "BATCH_SCATTER_WITH_INPUT_SHAPE"
    source_input: Sequence[str] = ()
