"""The same tests of the client for every type of endpoint.

They always run with the in-memory transport and with the local gateway and Triton. To run them with
another endpoint, set CONSTRUCTS_TRITON_ENDPOINT_URL (SageMaker's runtime API, in AWS or elsewhere).
The endpoint must serve `tests/contract/contract_repository`. Its name is
CONSTRUCTS_TRITON_ENDPOINT_NAME (default: contract-repository). The credentials are those of boto3's
environment.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from triton_server import needs_server

from constructs_triton_client import InMemoryTransport, TritonClient
from constructs_triton_core.errors import InvocationError
from constructs_triton_tools.local import LocalEndpoint

REPOSITORY = Path(__file__).parent / "contract_repository"
URL = os.environ.get("CONSTRUCTS_TRITON_ENDPOINT_URL")
NAME = os.environ.get("CONSTRUCTS_TRITON_ENDPOINT_NAME", "contract-repository")
Arrays = Mapping[str, NDArray[Any]]
INPUTS: Arrays = {
    "FLOATS": np.array([[1.5, -0.0, np.inf], [np.nan, 1e-45, 3.4e38]], dtype=np.float32),
    "COUNTS": np.array([-(2**63), 0, 2**63 - 1], dtype=np.int64),
    "FLAGS": np.array([True, False, True]),
    "TEXTS": np.array(["grüß", "", "日本 \0 x"], dtype=object),
}


def _echo(inputs: Arrays) -> Arrays:
    """Do the same as `contract_repository/echo/1/model.py`."""
    if b"refuse this" in inputs.get("TEXTS", np.array([])):
        raise InvocationError(
            "echo: refused as asked", status=500, model_message="refused as asked"
        )
    return {f"{name}_OUT": array for name, array in inputs.items()}


@pytest.fixture(scope="module")
def local_url() -> Iterator[str]:
    """The gateway of a local run of `contract_repository`."""
    with LocalEndpoint.from_repository(REPOSITORY, endpoint=NAME) as local:
        yield local.endpoint_url


@pytest.fixture(
    scope="module",
    params=[
        "in-memory",
        pytest.param("local", marks=[pytest.mark.e2e, needs_server]),
        pytest.param(
            "url",
            marks=pytest.mark.skipif(
                URL is None, reason="CONSTRUCTS_TRITON_ENDPOINT_URL is not set"
            ),
        ),
    ],
)
def client(request: pytest.FixtureRequest) -> TritonClient:
    """A client of the same model over each transport."""
    match request.param:
        case "in-memory":
            return TritonClient(InMemoryTransport(_echo))
        case "local":
            return TritonClient.for_endpoint(
                NAME, endpoint_url=request.getfixturevalue("local_url")
            )
    return TritonClient.for_endpoint(NAME, endpoint_url=URL)


def _same(given: NDArray[Any], answered: NDArray[Any]) -> bool:
    """Check equality of all bits, including NaN, minus zero and denormal numbers."""
    if given.dtype == object:
        return [str(text).encode() for text in given] == list(answered)
    return (given.dtype, given.shape, given.tobytes()) == (
        answered.dtype,
        answered.shape,
        answered.tobytes(),
    )


def test_arrays_come_back_bit_for_bit(client: TritonClient) -> None:
    """Floats with NaN and denormals, limits of INT64, booleans,
    and strings are returned exactly.
    """
    result = client.infer(INPUTS)
    assert {name for name, array in INPUTS.items() if _same(array, result[f"{name}_OUT"])} == set(
        INPUTS
    )


@pytest.mark.parametrize(
    ("binary", "binary_output"), [(False, False), (True, False), (False, True)]
)
def test_json_equals_binary(client: TritonClient, binary: bool, binary_output: bool) -> None:
    """Requests and responses work in JSON and binary, in any combination, for finite numbers."""
    inputs = {**INPUTS, "FLOATS": np.array([[0.1, -2.5e-38, 3.4e38]], dtype=np.float32)}
    result = client.infer(inputs, binary=binary, binary_output=binary_output)
    assert {name for name, array in inputs.items() if _same(array, result[f"{name}_OUT"])} == set(
        inputs
    )


def test_only_requested_outputs_are_sent(client: TritonClient) -> None:
    """Only the requested outputs are returned."""
    assert set(client.infer(INPUTS, ["COUNTS_OUT"])) == {"COUNTS_OUT"}


def test_empty_and_large_arrays_keep_their_shape(client: TritonClient) -> None:
    """An array without rows and one of about 5 MB are returned exactly."""
    for shape in ((0, 3), (1250, 1000)):
        floats = np.random.default_rng(0).random(shape, dtype=np.float32)
        assert _same(floats, client.infer({"FLOATS": floats})["FLOATS_OUT"])


def test_an_output_that_does_not_exist_is_refused_with_a_client_status(
    client: TritonClient,
) -> None:
    """A request for an unknown output is an error of status 400 that names the output."""
    with pytest.raises(InvocationError, match="NOTHING") as refused:
        client.infer(INPUTS, ["NOTHING"])
    assert refused.value.status == 400


def test_error_of_the_model_reaches_the_caller(client: TritonClient) -> None:
    """A model that raises an error gives status 500 and its message; the next request succeeds."""
    with pytest.raises(InvocationError) as refused:
        client.infer({"TEXTS": np.array(["refuse this"], dtype=object)})
    assert refused.value.status == 500
    assert "refused as asked" in str(refused.value.model_message)
    assert (
        client.infer({"COUNTS": INPUTS["COUNTS"]})["COUNTS_OUT"].tolist()
        == INPUTS["COUNTS"].tolist()
    )
