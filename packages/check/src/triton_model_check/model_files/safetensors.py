"""Reads how many bytes of each data type the tensors of a safetensors file have.

A file begins with the length of its header, a JSON object that has the data type and the place of
each tensor. Source: github huggingface/safetensors README.md, "Format".
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

from constructs_triton_core.bounded_json import parse_bounded_json
from constructs_triton_core.untrusted.regular_files import open_regular

_LENGTH_BYTES = 8
_LARGEST_HEADER = 16 << 20


def bytes_by_type(path: Path) -> Counter[str] | None:
    """Return the bytes of the tensors of each data type, such as ``{"BF16": 1024}``.

    ``None`` if the header cannot be read.
    """
    try:
        header = _header(path)
    except (OSError, ValueError):
        return None
    if not isinstance(header, dict):
        return None

    found: Counter[str] = Counter()
    for name, tensor in header.items():
        if name == "__metadata__":
            continue
        size = _tensor_bytes(tensor)
        if size is None:
            return None
        found[str(tensor["dtype"])] += size
    return found


def _header(path: Path) -> Any:
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        length = int.from_bytes(file.read(_LENGTH_BYTES), "little")
        if length > min(_LARGEST_HEADER, size - _LENGTH_BYTES):
            raise ValueError("the header is larger than the file, or than 16 MiB")
        return parse_bounded_json(file.read(length))


def _tensor_bytes(tensor: Any) -> int | None:
    """Return the bytes of one tensor; ``None`` if its entry is not one of the format."""
    if not isinstance(tensor, dict) or not isinstance(tensor.get("dtype"), str):
        return None
    offsets = tensor.get("data_offsets")
    if not isinstance(offsets, list) or len(offsets) != 2:
        return None
    begin, end = offsets
    if type(begin) is not int or type(end) is not int or not 0 <= begin <= end:
        return None
    return end - begin
