"""Recorded requests in tests, and the clients of the plugin's fixtures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray

from constructs_triton.testing import assert_responses
from constructs_triton_client import (
    InMemoryTransport,
    ModelIndex,
    RecordedRequest,
    RecordedRequests,
    SageMakerTransport,
    TritonClient,
)
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_tools.local import LocalEndpoint
from constructs_triton_tools.local.endpoint_of_tests import client_of, local_endpoint

Arrays = Mapping[str, NDArray[Any]]
INPUTS = {"x": np.array([[1.0, 2.0]], np.float32)}


def double(inputs: Arrays) -> Arrays:
    return {"y": inputs["x"] * 2}


def recording(target_model: str | None = None) -> RecordedRequests:
    """Return a request with the response of ``double``."""
    result = TritonClient(InMemoryTransport(double)).infer(INPUTS)
    return RecordedRequests([RecordedRequest.of("pair", INPUTS, result, target_model=target_model)])


def test_equal_responses_pass_within_their_tolerances(tmp_path: Path) -> None:
    """A response may differ by the tolerance of its output, and requests may come from a file."""
    recording().save(tmp_path / "requests.json")
    near = TritonClient(InMemoryTransport(lambda inputs: {"y": inputs["x"] * 2.00001}))
    assert_responses(near, tmp_path / "requests.json")


def test_different_responses_are_listed() -> None:
    """The message names the request, the output and the difference."""
    other = TritonClient(InMemoryTransport(lambda inputs: {"y": inputs["x"] * 3}))
    with pytest.raises(AssertionError, match=r"1 of 1 responses differ\n  pair: .*y"):
        assert_responses(other, recording())


OUTPUTS: dict[str, NDArray[Any]] = {
    "number": np.array([[1.5, -2.0, 0.0]], np.float32),
    "count": np.array([[7, 0]], np.int64),
    "flag": np.array([[True, False]]),
    "word": np.array([[b"cat", b""]], np.object_),
    "empty": np.zeros((1, 0), np.float32),
}


def changed_outputs() -> Iterator[tuple[str, Arrays]]:
    """Yield each change of one value, type, shape or name of a response."""
    for name, array in OUTPUTS.items():
        for index in np.ndindex(array.shape):
            other = array.copy()
            value = array[index]
            if array.dtype == np.object_:
                other[index] = value + b"~"
            else:
                other[index] = not value if array.dtype == np.bool_ else value + 1
            yield f"{name}{index}", {**OUTPUTS, name: other}
        yield f"{name}: shape", {**OUTPUTS, name: array.reshape((*array.shape, 1))}
        yield f"{name}: missing", {each: OUTPUTS[each] for each in OUTPUTS if each != name}
    for name, dtype in (("number", np.float64), ("count", np.int32), ("empty", np.float64)):
        yield f"{name}: type", {**OUTPUTS, name: OUTPUTS[name].astype(dtype)}
    yield "number: not a number", {**OUTPUTS, "number": np.full((1, 3), np.nan, np.float32)}


def answering(outputs: Arrays) -> TritonClient:
    return TritonClient(InMemoryTransport(lambda _: dict(outputs)))


def test_each_change_of_a_response_fails() -> None:
    """A change of one value, type, shape or name of an output fails the assertion."""
    result = answering(OUTPUTS).infer(INPUTS)
    recorded = RecordedRequests([RecordedRequest.of("all", INPUTS, result)])
    assert_responses(answering(OUTPUTS), recorded)
    blind = []
    number = 0
    for what, outputs in changed_outputs():
        number += 1
        try:
            assert_responses(answering(outputs), recorded)
        except AssertionError:
            continue
        blind.append(what)
    assert number > 20
    assert blind == []


@pytest.mark.parametrize(
    "wrong", [None, 3, {"y": 1}, [], object()], ids=["none", "number", "mapping", "list", "object"]
)
def test_other_arguments_are_refused(wrong: Any) -> None:
    """A client or requests of another type are an error that shows what to write."""
    client = TritonClient(InMemoryTransport(double))
    with pytest.raises(InvalidValueError, match=r"^client: must be a TritonClient, got .*; write"):
        assert_responses(wrong, recording())
    with pytest.raises(InvalidValueError, match=r"^recorded: must be recorded requests .*; write"):
        assert_responses(client, wrong)


def test_models_are_found_by_name() -> None:
    """The client's index and its default model apply to recorded requests."""
    index = ModelIndex({"double": "double-3f9c2a1b.tar.gz"})
    for recorded, target_model in ((recording("double"), None), (recording(), "double")):
        transport = InMemoryTransport(double)
        assert_responses(TritonClient(transport, index=index, target_model=target_model), recorded)
        assert transport.calls[0].options == {"TargetModel": "double-3f9c2a1b.tar.gz"}


def local_run(*names: str) -> LocalEndpoint:
    """Return what a run with these endpoints says of itself."""
    return cast(
        LocalEndpoint, SimpleNamespace(endpoint_names=names, endpoint_url="http://127.0.0.1:9")
    )


def test_one_of_several_endpoints_must_be_named() -> None:
    """Of several endpoints, or of an unknown name, the message lists the names."""
    run = local_run("shop", "bank")
    transport = client_of(run, "bank").transport
    assert isinstance(transport, SageMakerTransport)
    assert transport.endpoint_name == "bank"
    for name in (None, "barn"):
        with pytest.raises(
            InvalidValueError, match='set --triton-endpoint to one of "shop" and "bank"'
        ):
            client_of(run, name)


def test_fixture_that_returns_something_else(tmp_path: Path) -> None:
    """The messages name the fixture and the options of pytest, not only a missing manifest."""
    with pytest.raises(
        InvalidValueError, match="absent does not exist; define a fixture triton_app"
    ):
        local_endpoint(tmp_path / "absent", {})
    with pytest.raises(InvalidValueError, match=r"triton_app: must be a cdk.App or .*, got int"):
        local_endpoint(5, {})
