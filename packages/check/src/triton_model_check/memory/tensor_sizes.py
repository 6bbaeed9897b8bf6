"""The bytes of the tensors of a configuration, as far as it says them."""

from __future__ import annotations

from typing import Any

from constructs_triton_core.datatypes import by_data_type
from triton_model_check.model_config.schema import data_type_name
from triton_model_check.untrusted.budget import count_elements

__all__ = ["has_unknown_size", "tensor_bytes"]

_LENGTH_OF_A_STRING = 4


def tensor_bytes(tensor: Any) -> int:
    """Return the bytes of a tensor of the configuration, at least.

    A variable dimension counts as 1, and a string as its length of four bytes.
    """
    row = by_data_type(data_type_name(tensor.data_type))
    item = row.item_size if row is not None and row.item_size else _LENGTH_OF_A_STRING
    return int(item * count_elements(max(1, dim) for dim in tensor.dims))


def has_unknown_size(tensor: Any) -> bool:
    """Return whether a tensor has a variable dimension, or strings."""
    row = by_data_type(data_type_name(tensor.data_type))
    return row is None or not row.item_size or any(dim < 0 for dim in tensor.dims)
