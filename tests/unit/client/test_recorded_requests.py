"""Recorded requests: what is written is read again, and a wrong file is an error with its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from constructs_triton_client import RecordedRequest, RecordedRequests
from constructs_triton_client.errors import InvalidValueError
from constructs_triton_client.wire import decode_response, encode_response

ARRAYS: dict[str, Any] = {
    "small": np.array([[1.5, -2.0]], dtype=np.float32),
    "large": np.arange(1000, dtype=np.int64).reshape(10, 100),
    "half": np.array([0.1, 1e-3], dtype=np.float16),
    "special": np.array([np.nan, np.inf], dtype=np.float64),
    "words": np.array([b"one", "zwölf".encode()], dtype=object),
    "flags": np.array([True, False]),
    "none": np.zeros((0, 3), dtype=np.uint8),
}


def recorded() -> RecordedRequest:
    response = encode_response(ARRAYS)
    result = decode_response(response.body, response.content_type)
    return RecordedRequest.of("all", ARRAYS, result, target_model="alpha")


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
    assert sorted(file.name for file in (tmp_path / "requests_arrays").iterdir()) == [
        f"all.{name}{suffix}.npy" for name in ("half", "large", "special") for suffix in (".expected", "")
    ]
    assert request.outputs["small"].relative_tolerance == 1e-4
    assert request.outputs["large"].absolute_tolerance == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 2}, '"version": 1'),
        ({"requests": []}, "at least one request"),
        ({"requests": [{"name": "a"}]}, "request a: must have name, inputs and outputs"),
        (
            {
                "requests": [
                    {
                        "name": "a",
                        "inputs": [{"name": "x", "datatype": "FP33", "shape": [1], "data": [1]}],
                        "outputs": [],
                    }
                ]
            },
            "no datatype 'FP33'",
        ),
        (
            {
                "requests": [
                    {
                        "name": "a",
                        "inputs": [{"name": "x", "datatype": "FP32", "file": "no.npy"}],
                        "outputs": [],
                    }
                ]
            },
            "no.npy cannot be read",
        ),
        (
            {"requests": [{"name": "a", "inputs": [], "outputs": [{"name": "y", "absolute_tolerance": -1}]}]},
            "a tolerance must be a number of at least 0",
        ),
    ],
)
def test_a_wrong_file_is_an_error(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    """The message names the file, the request and the fix."""
    path = tmp_path / "requests.json"
    path.write_text(json.dumps({"version": 1, "requests": [], **change}))
    with pytest.raises(InvalidValueError) as raised:
        RecordedRequests.from_file(path)
    assert message in str(raised.value)
