"""The in-memory transport, which users test their own code with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from constructs_triton_client import InMemoryTransport, Invocation, RecordedCall, TritonClient
from constructs_triton_core.errors import InvocationError


def double(inputs: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    return {"Y": inputs["X"] * 2, "Z": inputs["X"] + 1}


def test_calls_are_recorded() -> None:
    """Every call has its arrays, options, bytes and request."""
    transport = InMemoryTransport(double)
    inputs = {"X": np.array([2], dtype="f4")}
    client = TritonClient(transport, target_model="a.tar.gz")
    result = client.infer(inputs, id="7", InferenceId="i")
    (call,) = transport.calls
    assert isinstance(call, RecordedCall)
    assert call.inputs["X"].tolist() == [2.0]
    assert call.options == {"InferenceId": "i", "TargetModel": "a.tar.gz"}
    assert (call.request.id, result.id) == ("7", "7")
    assert b'"X"' in call.invocation.body
    assert list(result) == ["Y", "Z"]


def test_outputs_have_the_requested_order() -> None:
    """Only the requested outputs are returned, in the order of the request."""
    client = TritonClient(InMemoryTransport(double))
    assert list(client.infer({"X": np.array([2], dtype="f4")}, ["Z", "Y"])) == ["Z", "Y"]


def test_unknown_output_is_rejected() -> None:
    """An output that the model does not return is an error of status 400 that lists the outputs."""
    client = TritonClient(InMemoryTransport(double))
    with pytest.raises(InvocationError, match='has no output "W"; ask for "Y" and "Z"') as caught:
        client.infer({"X": np.array([2], dtype="f4")}, ["W"])
    assert caught.value.status == 400


def test_raw_requests_are_rejected_and_recorded() -> None:
    """A raw request has no names, so the function cannot be called; the call is recorded."""
    transport = InMemoryTransport(double)
    with pytest.raises(
        InvocationError, match="a raw request has no input names; use infer"
    ) as caught:
        TritonClient(transport).infer_raw(b"jpeg")
    assert caught.value.status == 400
    assert transport.calls[0].request.raw == b"jpeg"


def test_streams_are_recorded() -> None:
    """A stream yields the given parts, and its request is recorded as bytes."""
    transport = InMemoryTransport(double, parts=[b"a", b"b"])
    assert list(transport.stream(Invocation(b"{}", "application/json"))) == [b"a", b"b"]
    assert transport.calls[0].request.raw == b"{}"
    assert list(InMemoryTransport(double).stream(Invocation(b"{}", "application/json"))) == []
