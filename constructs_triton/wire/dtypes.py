"""Which NumPy dtype carries which datatype of the wire.

NumPy has no bfloat16. With the optional package ``ml_dtypes`` a BF16 tensor is an array of
``ml_dtypes.bfloat16``; without it, a ``uint16`` array of the same bits, which the caller must name as BF16
and which ``InferenceResult.bit_patterns`` flags on the way back.
"""

from __future__ import annotations

import importlib
import sys
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from constructs_triton.datatypes import DATATYPES, Datatype, by_datatype

__all__ = ["Buffer", "bfloat16", "datatype_of", "dtype_of"]

Buffer: TypeAlias = bytes | bytearray | memoryview
"""What a body or a part of one may be. ``collections.abc.Buffer`` needs Python 3.12."""

_BY_DTYPE = {np.dtype(row.dtype): row for row in DATATYPES if row.item_size and row.datatype != "BF16"}
# bytes, str and Python objects: the elements are looked at one by one when they are encoded.
_BYTES_KINDS = "SUO"


def datatype_of(array: NDArray[Any]) -> Datatype | None:
    """The row of the datatype that carries ``array``, whatever its byte order, or ``None``."""
    dtype = array.dtype
    if (found := _BY_DTYPE.get(dtype)) is not None:
        return found
    if dtype.kind in _BYTES_KINDS:
        return by_datatype("BYTES")
    # A bfloat16 array cannot exist before ml_dtypes was imported, so looking there imports nothing.
    if "ml_dtypes" in sys.modules and dtype == bfloat16():
        return by_datatype("BF16")
    return _BY_DTYPE.get(dtype.newbyteorder("<"))


@cache
def dtype_of(datatype: Datatype) -> np.dtype[Any]:
    """The dtype in which a tensor of ``datatype`` is handed out, little-endian."""
    if datatype.datatype == "BF16" and (half := bfloat16()) is not None:
        return half
    return np.dtype(datatype.dtype)


@cache
def bfloat16() -> np.dtype[Any] | None:
    """``ml_dtypes.bfloat16`` as a dtype, or ``None`` where the package is absent."""
    try:
        return np.dtype(importlib.import_module("ml_dtypes").bfloat16)
    except ImportError:
        return None
