"""Reads how many bytes of each data type the tensors of safetensors files have.

A file begins with the length of its header, a JSON object that has the data type and the place of
each tensor. Source: github huggingface/safetensors README.md, "Format".
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from constructs_triton_core.bounded_json import parse_bounded_json
from constructs_triton_core.untrusted.regular_files import open_regular

_LENGTH_BYTES = 8
_LARGEST_HEADER = 16 << 20
_ALL_HEADERS = 64 << 20
"""Of all files together; a model of 671 billion parameters has 12 MiB."""


def bytes_by_type(paths: Iterable[Path]) -> Counter[str] | None:
    """Return the bytes of the tensors of each data type, such as ``{"BF16": 1024}``.

    ``None`` if a header cannot be read, or if the headers are larger than 64 MiB together.
    """
    found: Counter[str] = Counter()
    remaining = _ALL_HEADERS
    for path in paths:
        try:
            header = _header(path, remaining)
            remaining -= len(header)
            types = _types(parse_bounded_json(header))
        except (OSError, ValueError):
            return None
        if types is None:
            return None
        found += types
    return found


def _header(path: Path, most: int) -> bytes:
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        length = int.from_bytes(file.read(_LENGTH_BYTES), "little")
        if length > min(_LARGEST_HEADER, most, size - _LENGTH_BYTES):
            raise ValueError("the header is larger than the file, or than what is read")
        return file.read(length)


def _types(header: Any) -> Counter[str] | None:
    """Return how many bytes of each data type a file has; ``None`` if its header is malformed."""
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
