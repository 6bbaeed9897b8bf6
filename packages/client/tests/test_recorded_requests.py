"""Recorded requests: what is written is read again, and a wrong file is an error with its place."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from numpy.typing import NDArray

from constructs_triton_client import RecordedRequest, RecordedRequests, recorded_requests
from constructs_triton_client.recorded_tensors import RecordedTensor
from constructs_triton_client.wire import decode_response, encode_response
from constructs_triton_core.errors import ConstructsTritonError, InvalidValueError

ARRAYS: dict[str, Any] = {
    "small": np.array([[1.5, -2.0]], dtype=np.float32),
    "large": np.arange(1000, dtype=np.int64).reshape(10, 100),
    "half": np.array([0.1, 1e-3], dtype=np.float16),
    "special": np.array([np.nan, np.inf], dtype=np.float64),
    "images": np.array([[b"\x89PNG"], [b"text"]], dtype=object),
    "words": np.array([b"one", "zwölf".encode()], dtype=object),
    "flags": np.array([True, False]),
    "none": np.zeros((0, 3), dtype=np.uint8),
}


def recorded() -> RecordedRequest:
    response = encode_response(ARRAYS)
    result = decode_response(response.body, response.content_type)
    return RecordedRequest.of("all", ARRAYS, result, target_model="alpha")


@pytest.mark.parametrize("given", ["requests.json", Path("requests.json")])
def test_path_in_place_of_requests_is_rejected(given: Any) -> None:
    """The error names the method that reads a file."""
    with pytest.raises(
        InvalidValueError, match=r"requests: must be .*; write RecordedRequests.from_file\(path"
    ):
        RecordedRequests(given)


def test_a_file_holds_every_kind_of_tensor(tmp_path: Path) -> None:
    """Small finite arrays are in the JSON, others in .npy files, and all come back as they were."""
    path = tmp_path / "requests.json"
    RecordedRequests([recorded()]).save(path)
    (request,) = RecordedRequests.from_file(path).requests
    assert (request.name, request.target_model) == ("all", "alpha")
    for name, array in ARRAYS.items():
        for found in (request.inputs[name].array, request.outputs[name].tensor.array):
            assert found.shape == array.shape
            assert found.tolist() == array.tolist() or name == "special"
    np.testing.assert_array_equal(request.inputs["special"].array, ARRAYS["special"])
    files = (file.name for file in (tmp_path / "requests_arrays").iterdir())
    assert sorted(re.sub(r"[0-9a-f]{16}", "DIGEST", name) for name in files) == [
        f"all.{name}{suffix}.DIGEST.npy"
        for name in ("half", "large", "special")
        for suffix in ("", ".expected")
    ]
    assert request.outputs["small"].relative_tolerance == 1e-4
    assert request.outputs["large"].absolute_tolerance == 0


def test_a_recording_is_replaced_with_its_arrays_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kill or a full disk before the last step leaves the old recording as it was, and the next
    recording leaves no array of another one.
    """
    path = tmp_path / "requests.json"
    old, new = (np.full(200, value, np.float32) for value in (1, 2))

    def save(array: NDArray[np.float32]) -> None:
        tensor = RecordedTensor(array, "FP32")
        RecordedRequests([RecordedRequest("one", {"x": tensor}, {})]).save(path)

    save(old)
    with monkeypatch.context() as patch:
        patch.setattr(recorded_requests, "write_whole", Mock(side_effect=OSError("disk is full")))
        with pytest.raises(OSError, match="disk is full"):
            save(new)
    (request,) = RecordedRequests.from_file(path).requests
    np.testing.assert_array_equal(request.inputs["x"].array, old)
    save(new)
    assert len(list((tmp_path / "requests_arrays").iterdir())) == 1


@pytest.mark.parametrize("name", ["requests.json", "requests_arrays", "array"])
def test_a_recording_is_not_written_through_a_link(tmp_path: Path, name: str) -> None:
    """Neither the file, its folder nor an array leads to a file of the user."""
    if name == "array":
        (tmp_path / "other").mkdir()
        RecordedRequests([recorded()]).save(tmp_path / "other" / "requests.json")
        name = f"requests_arrays/{next((tmp_path / 'other' / 'requests_arrays').iterdir()).name}"
    (tmp_path / "victim").mkdir()
    link = tmp_path / name
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(tmp_path / "victim")
    with pytest.raises(OSError, match="a link instead of"):
        RecordedRequests([recorded()]).save(tmp_path / "requests.json")
    assert not list((tmp_path / "victim").iterdir())


def _tensor(**changes: Any) -> dict[str, Any]:
    return {"name": "x", "datatype": "FP32", "shape": [1], "data": [1], **changes}


def _request(*inputs: Any, outputs: Any = ()) -> dict[str, Any]:
    return {"requests": [{"name": "a", "inputs": inputs, "outputs": outputs}]}


NO_TOLERANCE = "a tolerance must be a number of at least 0"
BASE64 = {"name": "x", "datatype": "BYTES", "shape": [2], "base64": ["AAAA"]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 2}, '"version": 1'),
        ({"requests": []}, "at least one request"),
        ({"requests": [{"name": "a"}]}, "request a: must have name, inputs and outputs"),
        (_request(_tensor(datatype="FP33")), "no datatype 'FP33'"),
        (_request({"name": "x", "datatype": "FP32", "file": "no.npy"}), "no.npy cannot be read"),
        (_request(BASE64), "a base64 string for each element"),
        (_request(outputs=[{"name": "y", "absolute_tolerance": -1}]), NO_TOLERANCE),
    ],
)
def test_a_wrong_file_is_an_error(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    """The message names the file, the request and the fix."""
    path = tmp_path / "requests.json"
    path.write_text(json.dumps({"version": 1, "requests": [], **change}))
    with pytest.raises(InvalidValueError) as raised:
        RecordedRequests.from_file(path)
    assert message in str(raised.value)


WRONG_MEMBERS: tuple[tuple[str, Any], ...] = (
    *(("data", [10**300]), ("data", {}), ("name", 1), ("name", [])),
    *(("datatype", []), ("datatype", "x" * 5000)),
)
HOSTILE_TENSORS: tuple[Any, ...] = (
    *(_tensor(shape=shape) for shape in ([10**300], [-1], [True], [1.0], [1] * 100, "1")),
    *(_tensor(**{member: value}) for member, value in WRONG_MEMBERS),
    *(_tensor(file=file) for file in (1, "a.npz", "text.npy", "complex.npy", "objects.npy")),
    *(_tensor(file=file) for file in ("/etc/passwd", "/dev/zero", "../" * 20 + "etc/passwd")),
    *(_tensor(file=file) for file in ("x" * 5000, "a\0b")),
    _tensor(file="float.npy", datatype="BYTES"),
    *(None, "x", []),
)


@pytest.mark.parametrize(
    "tensor",
    [
        '{"name": "x", "datatype": "FP32", "shape": [1e400], "data": [1]}',
        '{"name": "x", "datatype": "FP32", "shape": [NaN], "data": [1]}',
        '{"name": "x", "datatype": "FP32", "shape": [' + "9" * 5000 + '], "data": [1]}',
        *map(json.dumps, HOSTILE_TENSORS),
    ],
)
def test_hostile_tensor_is_an_error(tensor: str, tmp_path: Path) -> None:
    """No tensor of a file ends the reader with another error, and no file elsewhere is read."""
    np.savez(tmp_path / "a.npz", x=np.zeros(1))
    np.save(tmp_path / "text.npy", np.array(["a"]))
    np.save(tmp_path / "complex.npy", np.array([1j]))
    np.save(tmp_path / "objects.npy", np.array([{}], dtype=object), allow_pickle=True)
    np.save(tmp_path / "float.npy", np.zeros(1))
    path = tmp_path / "requests.json"
    for side, other in (("inputs", "outputs"), ("outputs", "inputs")):
        path.write_text(
            f'{{"version": 1, "requests": [{{"name": "a", "{side}": [{tensor}], "{other}": []}}]}}'
        )
        with pytest.raises(ConstructsTritonError):
            RecordedRequests.from_file(path)


@pytest.mark.parametrize(
    "content", ["[" * 50_000, '{"version": 1, "requests": ' + "[" * 500 + "]" * 500 + "}", "[]"]
)
def test_deep_document_is_an_error(content: str, tmp_path: Path) -> None:
    """Deep JSON is refused, and a device is no document."""
    (tmp_path / "requests.json").write_text(content)
    for path in (tmp_path / "requests.json", Path("/dev/zero"), tmp_path):
        with pytest.raises(InvalidValueError):
            RecordedRequests.from_file(path)
