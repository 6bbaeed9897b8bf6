"""The comparison of a response with the recorded one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from constructs_triton_client import RecordedRequest
from constructs_triton_client.wire import decode_response, encode_response
from constructs_triton_functions.verification.comparison import differences

ARRAYS: dict[str, Any] = {
    "small": np.array([[1.5, -2.0]], dtype=np.float32),
    "large": np.arange(1000, dtype=np.int64).reshape(10, 100),
    "special": np.array([np.nan, np.inf], dtype=np.float64),
    "words": np.array([b"one", "zwölf".encode()], dtype=object),
    "flags": np.array([True, False]),
}
RESPONSE = encode_response(ARRAYS)
RESULT = decode_response(RESPONSE.body, RESPONSE.content_type)
EXPECTED = RecordedRequest.of("all", {}, RESULT).compile()["expected"]


def compare(outputs: dict[str, Any]) -> list[str]:
    response = encode_response(outputs)
    return differences(response.body, response.content_type, EXPECTED)


def test_equal_responses_have_no_differences() -> None:
    """The same values are equal, also NaN, and floats may differ within their tolerance."""
    assert compare(ARRAYS) == []
    assert compare({**ARRAYS, "small": ARRAYS["small"] + np.float32(1e-5)}) == []


@pytest.mark.parametrize(
    ("name", "value", "difference"),
    [
        (
            "small",
            np.array([[1.5, -3.0]], dtype=np.float32),
            "1 of 2 values differ, the first at 1: must be -2.0",
        ),
        ("small", np.array([1.5, -2.0], dtype=np.float32), "shape must be [1, 2], got [2]"),
        ("small", np.array([[1.5, -2.0]]), "datatype must be FP32, got FP64"),
        ("words", np.array([b"one", b"two"], dtype=object), "1 of 2 values differ"),
        ("special", np.array([np.nan, -np.inf]), "1 of 2 values differ"),
        (
            "special",
            np.array([1.0, np.inf]),
            "1 of 2 values differ, the first at 0: must be nan, got 1.0",
        ),
        ("flags", np.array([True, True]), "1 of 2 values differ"),
    ],
)
def test_a_difference_names_output_and_value(name: str, value: Any, difference: str) -> None:
    """One sentence says which output differs, where, and by what."""
    (found,) = compare({**ARRAYS, name: value})
    assert found.startswith(f"output {name}: {difference}")


def test_a_missing_output_and_a_broken_response_are_differences() -> None:
    """A response without the output, or one that is no response, is not equal."""
    assert compare({"small": ARRAYS["small"]})[0] == "output large is missing"
    assert "cannot be read" in differences(b"<html>", "text/html", [])[0]
