"""Reads what an ONNX model says of a tensor: type, dims and where its content is, without the
content.

Field numbers: https://github.com/onnx/onnx/blob/v1.16.0/onnx/onnx.proto
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from triton_model_check.model_files.protobuf_wire import Field, MessageReader, signed
from triton_model_check.untrusted.budget import count_elements

_EXTERNAL = 1
#: Bytes of an element of each ``TensorProto.DataType`` that has whole bytes.
_ITEM_BYTES = {
    **dict.fromkeys((2, 3, 9), 1),
    **dict.fromkeys((4, 5, 10, 16), 2),
    **dict.fromkeys((1, 6, 12), 4),
    **dict.fromkeys((7, 11, 13, 14), 8),
    15: 16,
}
#: The field with the elements of each ``TensorProto.DataType``, unless they are raw bytes.
_DATA_FIELDS = {
    **dict.fromkeys((2, 3, 4, 5, 6, 9, 10, 16), 5),
    1: 4,
    7: 7,
    8: 6,
    11: 10,
    12: 11,
    13: 11,
}
_VALUE_FIELDS = frozenset(_DATA_FIELDS.values())
_STRINGS = 6
_PACKED_ITEM_BYTES = {4: 4, 10: 8}
_CONTINUED = bytes(range(0x80, 0x100))  # every byte of a varint but the last one
_MOST_COUNTED_BYTES, _COUNTED_BYTES_PER_STEP = 4 << 10, 64
#: The entries of external data that every ONNX Runtime accepts. 1.20 and later write the others
#: themselves.
_KNOWN_ENTRIES = frozenset({"location", "offset", "length", "checksum"})
_LONGEST_NUMBER = 20
_NUMBER = re.compile(r"[ \t]*[+-]?[0-9]+")


class ExternalData(NamedTuple):
    """Where the content of an initializer is: a file beside the model, an offset and a length in
    bytes.

    ``offset`` is ``None`` and ``length`` is -1 if it is not a number. ``size`` is how many bytes
    the dims and the type need; ``None`` if the type has no fixed size. ``wrong_entry`` is an entry
    that the runtime does not accept.
    """

    initializer: str
    location: str
    offset: int | None
    length: int | None
    size: int | None = None
    wrong_entry: str = ""


class OnnxTensor(NamedTuple):
    """A constant.

    ``data_type`` is the number of ``TensorProto.DataType``. ``elements`` is -1 if a dim is
    negative, and ``None`` if it is not known. ``raw_bytes`` is the length of ``raw_data``, if it
    has any. ``values`` is how many elements the field for its type has; ``None`` if that is not
    known.
    """

    name: str
    data_type: int
    elements: int | None
    raw_bytes: int | None = None
    external: ExternalData | None = None
    values: int | None = None

    @property
    def size(self) -> int | None:
        """How many bytes the dims and the type need; ``None`` if that is not known."""
        item = _ITEM_BYTES.get(self.data_type)
        return None if item is None or self.elements in (None, -1) else (self.elements or 0) * item


def read_tensor(message: MessageReader) -> OnnxTensor:
    """Read a ``TensorProto``."""
    name, data_type, location = "", 0, 0
    elements: int | None = 1
    raw_bytes = None
    entries: dict[str, str] = {}
    counts: dict[int, int | None] = {}
    for each in message:
        if each.number == 1:
            # Writers of ONNX do not pack dims.
            elements = None if each.is_bytes else _multiplied(elements, signed(each.value))
        elif each.number == 2:
            data_type = each.value
        elif each.number == 8:
            name = message.text(each)
        elif each.number == 9:
            raw_bytes = each.end - each.start
        elif each.number == 13:
            key, value = _entry(message.message(each))
            entries[key] = value
        elif each.number == 14:
            location = each.value
        elif each.number in _VALUE_FIELDS:
            known = counts.get(each.number, 0)
            more = _count(message, each)
            counts[each.number] = None if known is None or more is None else known + more
    field = _DATA_FIELDS.get(data_type)
    values = None if field is None else counts.get(field, 0)
    tensor = OnnxTensor(name, data_type, elements, raw_bytes, values=values)
    return tensor._replace(external=_external(tensor, entries)) if location == _EXTERNAL else tensor


def _count(message: MessageReader, field: Field) -> int | None:
    """Return how many elements a field has; ``None`` if they are too many to be counted."""
    if not field.is_bytes or field.number == _STRINGS:
        return 1
    length = field.end - field.start
    if field.number in _PACKED_ITEM_BYTES:
        return length // _PACKED_ITEM_BYTES[field.number]
    if length > _MOST_COUNTED_BYTES:
        return None
    message.keep(length // _COUNTED_BYTES_PER_STEP)
    return len(message.raw(field).translate(None, _CONTINUED))


def _multiplied(elements: int | None, dim: int) -> int | None:
    if elements is None:
        return None
    return -1 if elements < 0 or dim < 0 else count_elements((elements, dim))


def _external(tensor: OnnxTensor, entries: Mapping[str, str]) -> ExternalData:
    """Return where the data of a tensor is, from the entries of ``external_data``."""
    length = entries.get("length")
    unknown = [
        key for key in entries if key not in _KNOWN_ENTRIES and not key.startswith("prepacked")
    ]
    return ExternalData(
        tensor.name,
        entries.get("location", ""),
        _number(entries.get("offset", "0"), None),
        None if length is None else _number(length, -1),
        tensor.size,
        next((key for key, value in entries.items() if not value or key in unknown), ""),
    )


def _number(text: str, otherwise: int | None) -> int | None:
    """Return the number that C's ``strtol`` reads, if it reads the whole string."""
    return int(text) if len(text) < _LONGEST_NUMBER and _NUMBER.fullmatch(text) else otherwise


def _entry(message: MessageReader) -> tuple[str, str]:
    key = value = ""
    for each in message:
        if each.number == 1:
            key = message.text(each)
        elif each.number == 2:
            value = message.text(each)
    return key, value
