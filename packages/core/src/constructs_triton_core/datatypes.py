"""Triton's data types and their three names.

``datatype`` is the name on the wire ("FP32"), ``data_type`` the name in ``config.pbtxt``
("TYPE_FP32"), ``dtype`` the NumPy type. Source: KServe v2 "Tensor Data Types" and Triton's
``model_config.proto``, enum ``DataType``. NumPy has no bfloat16: BF16 is read as ``uint16`` bit
patterns unless the optional package ``ml_dtypes`` is installed.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["DATATYPES", "FILE_HINT", "Datatype", "by_data_type", "by_datatype"]


@dataclass(frozen=True, slots=True)
class Datatype:
    """One data type; ``item_size`` is in bytes, or ``None`` if elements vary in length.

    ``dtype`` is NumPy's name for it, in the little-endian byte order of the wire.
    """

    datatype: str
    data_type: str
    dtype: str
    item_size: int | None


DATATYPES: tuple[Datatype, ...] = (
    Datatype("BOOL", "TYPE_BOOL", "|b1", 1),
    Datatype("UINT8", "TYPE_UINT8", "|u1", 1),
    Datatype("UINT16", "TYPE_UINT16", "<u2", 2),
    Datatype("UINT32", "TYPE_UINT32", "<u4", 4),
    Datatype("UINT64", "TYPE_UINT64", "<u8", 8),
    Datatype("INT8", "TYPE_INT8", "|i1", 1),
    Datatype("INT16", "TYPE_INT16", "<i2", 2),
    Datatype("INT32", "TYPE_INT32", "<i4", 4),
    Datatype("INT64", "TYPE_INT64", "<i8", 8),
    Datatype("FP16", "TYPE_FP16", "<f2", 2),
    Datatype("FP32", "TYPE_FP32", "<f4", 4),
    Datatype("FP64", "TYPE_FP64", "<f8", 8),
    Datatype("BF16", "TYPE_BF16", "<u2", 2),
    Datatype("BYTES", "TYPE_STRING", "|O", None),
)

_BY_DATATYPE = {row.datatype: row for row in DATATYPES}
_BY_DATA_TYPE = {row.data_type: row for row in DATATYPES}
FILE_HINT = (
    "for a file such as an image, pass its bytes: np.array([[open(path, "
    '"rb").read()]], dtype=object)'
)


def by_datatype(datatype: str) -> Datatype | None:
    """Return the row of a wire datatype such as ``"FP32"``, or ``None``."""
    return _BY_DATATYPE.get(datatype)


def by_data_type(data_type: str) -> Datatype | None:
    """Return the row of a configuration's data type such as ``"TYPE_FP32"``, or ``None``."""
    return _BY_DATA_TYPE.get(data_type)
