"""Recorded requests in tests, and the clients of the plugin's fixtures."""

from __future__ import annotations

from collections.abc import Mapping
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
