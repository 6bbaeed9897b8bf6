"""Inputs and outputs, and the tensors that Triton adds to a batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from constructs_triton.model_config.builder.typed_message import TypedMessage

__all__ = ["BatchInput", "BatchOutput", "DataType", "ModelInput", "ModelOutput", "ModelTensorReshape"]

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
    """The shape that the backend receives instead of ``dims``; ``-1`` is a variable size.

    It does not include the batch axis. An empty ``shape`` means one value for each element of the batch.
    """

    shape: Sequence[int] = ()


class ModelInput(TypedMessage):
    """One input tensor.

    ``dims`` has ``-1`` for a variable size, and no batch axis if ``max_batch_size`` is above 0.
    ``format`` is for images, ``allow_ragged_batch`` for inputs whose shapes may differ within a batch, and
    ``optional`` inputs may be left out of a request.
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
    """One output tensor; ``label_filename`` is a file beside ``config.pbtxt`` with one label on each line.

    ``dims`` has ``-1`` for a variable size, and no batch axis if ``max_batch_size`` is above 0.
    """

    name: str = ""
    data_type: DataType = "TYPE_INVALID"
    dims: Sequence[int] = ()
    reshape: ModelTensorReshape | None = None
    label_filename: str = ""
    is_shape_tensor: bool = False
    is_non_linear_format_io: bool = False


class BatchInput(TypedMessage):
    """An input that Triton computes for each batch, for models that accept ragged batches."""

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
    """An output of a whole batch, and how Triton splits it among the responses."""

    target_name: Sequence[str] = ()
    kind: Literal["BATCH_SCATTER_WITH_INPUT_SHAPE"] = "BATCH_SCATTER_WITH_INPUT_SHAPE"
    source_input: Sequence[str] = ()
