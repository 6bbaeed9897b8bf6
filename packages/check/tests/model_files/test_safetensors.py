"""The data types of the tensors of a safetensors file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from triton_model_check.model_files.safetensors import bytes_by_type

_TENSOR = {"dtype": "F16", "shape": [4], "data_offsets": [0, 8]}


def _write(path: Path, header: Any, length: int | None = None) -> Path:
    text = json.dumps(header).encode()
    path.write_bytes((len(text) if length is None else length).to_bytes(8, "little") + text)
    return path


def test_bytes_are_those_of_the_offsets(tmp_path: Path) -> None:
    """Tensors of one type are added; the metadata is no tensor."""
    header = {
        "__metadata__": {"format": "pt"},
        "a": _TENSOR,
        "b": {"dtype": "F16", "shape": [2], "data_offsets": [8, 12]},
        "c": {"dtype": "U8", "shape": [1], "data_offsets": [12, 13]},
    }
    assert bytes_by_type([_write(tmp_path / "f", header)]) == {"F16": 12, "U8": 1}


@pytest.mark.parametrize(
    ("header", "length"),
    [
        ([], None),
        ({"a": 1}, None),
        ({"a": {**_TENSOR, "dtype": 3}}, None),
        ({"a": {**_TENSOR, "data_offsets": [8, 0]}}, None),
        ({"a": {**_TENSOR, "data_offsets": [0, 1e300]}}, None),
        ({"a": _TENSOR}, 2**63),
        ({"a": _TENSOR}, 5),
    ],
)
def test_other_content_has_no_types(header: Any, length: int | None, tmp_path: Path) -> None:
    """A header that is not of the format, or larger than the file, says nothing."""
    assert bytes_by_type([_write(tmp_path / "f", header, length)]) is None


def test_absent_file_has_no_types(tmp_path: Path) -> None:
    """A file that cannot be opened says nothing."""
    assert bytes_by_type([tmp_path / "absent"]) is None


def test_headers_of_all_files_have_a_bound(tmp_path: Path) -> None:
    """Many large headers are not read, so that a folder of them takes no time."""
    large = {"__metadata__": {"a": "b" * (15 << 20)}, "t": _TENSOR}
    path = _write(tmp_path / "f", large)
    assert bytes_by_type([path] * 4) == {"F16": 32}
    assert bytes_by_type([path] * 1000) is None
