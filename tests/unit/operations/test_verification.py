"""Recorded requests that are sent alone and together, with a function in place of the model."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from constructs_triton.testing import assert_responses
from constructs_triton_client import (
    InMemoryTransport,
    RecordedRequest,
    RecordedRequests,
    TritonClient,
)
from constructs_triton_core.errors import InvalidValueError, InvocationError
from constructs_triton_tools.cli.verify import result_lines
from constructs_triton_tools.operations.verification import verify_requests

Arrays = Mapping[str, NDArray[Any]]


def double(inputs: Arrays) -> Arrays:
    return {"y": inputs["x"] * 2}


def recording(*values: float) -> RecordedRequests:
    """Requests with the responses of ``double``."""
    client = TritonClient(InMemoryTransport(double))
    inputs = {f"n{value:g}": {"x": np.array([[value]], np.float32)} for value in values}
    return RecordedRequests(
        [RecordedRequest.of(name, arrays, client.infer(arrays)) for name, arrays in inputs.items()]
    )


class Batcher:
    """Answers calls in batches of those that are waiting, and records the largest batch."""

    def __init__(self, *, mixes: bool = False, fails: bool = False) -> None:
        self._mixes, self._fails = mixes, fails
        self._met = threading.Barrier(2)
        self.largest = 1

    def __call__(self, inputs: Arrays) -> Arrays:
        try:
            self._met.wait(0.2)
        except threading.BrokenBarrierError:  # no other request came
            self._met.reset()
            return double(inputs)
        self.largest = 2
        if self._fails:
            raise InvocationError("out of memory", status=500)
        return {"y": inputs["x"] * 2 + self._mixes}


@pytest.mark.parametrize(
    ("mixes", "options", "largest"), [(True, {}, 1), (False, {"concurrency": 4}, 2)]
)
def test_requests_are_sent_alone_unless_asked(
    mixes: bool, options: dict[str, Any], largest: int
) -> None:
    """A model that would mix requests passes if no two meet,
    and one that keeps them apart if they do.
    """
    model = Batcher(mixes=mixes)
    found = verify_requests(recording(1, 2), InMemoryTransport(model), **options)
    assert (result_lines(found)[-1], model.largest) == ("0 of 2 responses differ", largest)


def test_a_model_that_mixes_requests_is_named() -> None:
    """The differences say that they come from requests sent together,
    and the last line what to do.
    """
    found = verify_requests(recording(1, 2), InMemoryTransport(Batcher(mixes=True)), concurrency=4)
    assert [each.is_batching_fault for each in found] == [True, True]
    assert (
        found[0]
        .differences[0]
        .startswith("together with other requests: output y: 1 of 1 values differ")
    )
    assert result_lines(found)[-1].startswith("a model mixes the requests of a batch")
    with pytest.raises(AssertionError, match="together with other requests: output y"):
        assert_responses(
            TritonClient(InMemoryTransport(Batcher(mixes=True))), recording(1, 2), concurrency=2
        )


def test_a_request_that_differs_alone_is_no_batching_fault() -> None:
    """Its own difference is reported, whatever happens together."""
    triple = InMemoryTransport(lambda inputs: {"y": inputs["x"] * 3})
    found = verify_requests(recording(1, 2), triple, concurrency=4)
    assert [each.is_batching_fault for each in found] == [False, False]
    assert found[0].differences[0].startswith("output y:")


def test_an_error_of_a_batch_is_reported_as_an_error() -> None:
    """A batch that does not fit into memory is a failure, and not a mixture."""
    found = verify_requests(recording(1, 2), InMemoryTransport(Batcher(fails=True)), concurrency=2)
    assert [(each.is_batching_fault, each.error is None) for each in found] == [(False, False)] * 2
    assert "together with other requests: " in found[0].differences[0]


@pytest.mark.parametrize(
    ("values", "concurrency", "message"),
    [
        ((1, 2), 0, "concurrency: must be from 1 to 256, got 0"),
        ((1, 2), 257, "concurrency: must be from 1 to 256, got 257"),
        ((1,), 2, "concurrency: needs at least two different recorded requests"),
        ((1, 1), 2, "concurrency: needs at least two different recorded requests"),
    ],
)
def test_what_cannot_show_a_fault_is_refused(
    values: tuple[float, ...], concurrency: int, message: str
) -> None:
    """Equal requests have equal responses, also in a batch that mixes them."""
    with pytest.raises(InvalidValueError, match=message):
        verify_requests(recording(*values), InMemoryTransport(double), concurrency=concurrency)
