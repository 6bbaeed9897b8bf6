"""Maps NumPy dtypes to the datatypes of the wire.

NumPy has no bfloat16. With the optional package ``ml_dtypes`` a BF16 tensor is an array of
``ml_dtypes.bfloat16``. Without it, a BF16 tensor is a ``uint16`` array of the same bits: the caller
declares such an input as BF16, and ``InferenceResult.bit_patterns`` lists such outputs.
"""

from __future__ import annotations

import importlib
import sys
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from constructs_triton_core.datatypes import DATATYPES, Datatype, by_datatype

__all__ = ["Buffer", "bfloat16", "datatype_of", "dtype_of"]

Buffer: TypeAlias = bytes | bytearray | memoryview
"""The types of a body or a part of it. ``collections.abc.Buffer`` needs Python 3.12."""

_BY_DTYPE = {
    np.dtype(row.dtype): row for row in DATATYPES if row.item_size and row.datatype != "BF16"
}
# bytes, str, Python objects and NumPy 2's strings of any length: each element is checked when it
# is encoded.
_BYTES_KINDS = "SUOT"


def datatype_of(array: NDArray[Any]) -> Datatype | None:
    """Return the datatype of ``array`` in either byte order, or ``None`` if there is none."""
    dtype = array.dtype
    if (found := _BY_DTYPE.get(dtype)) is not None:
        return found
    if dtype.kind in _BYTES_KINDS:
        return by_datatype("BYTES")
    # A bfloat16 array exists only if ml_dtypes is imported, so this never imports it.
    if "ml_dtypes" in sys.modules and dtype == bfloat16():
        return by_datatype("BF16")
    return _BY_DTYPE.get(dtype.newbyteorder("<"))


@cache
def dtype_of(datatype: Datatype) -> np.dtype[Any]:
    """Return the little-endian dtype of a decoded tensor of ``datatype``."""
    if datatype.datatype == "BF16" and (half := bfloat16()) is not None:
        return half
    return np.dtype(datatype.dtype)


@cache
def bfloat16() -> np.dtype[Any] | None:
    """Return ``ml_dtypes.bfloat16`` as a dtype, or ``None`` if the package is not installed."""
    try:
        return np.dtype(importlib.import_module("ml_dtypes").bfloat16)
    except ImportError:
        return None
