"""What a failed call is the fault of, from answers of the real server 24.10."""

from __future__ import annotations

import json

import pytest

from constructs_triton_tools.local.gateway.runtime_errors import (
    RuntimeApiError,
    model_error,
    service_unavailable,
    validation_error,
)
from constructs_triton_tools.local.page.call_record import Fault, failed_step, fault_of
from constructs_triton_tools.local.sources.specs import EndpointSpec

ENDPOINT = EndpointSpec("e", "s", ())
RAISED = (
    "Failed to process the request(s) for model 'm_0', message: ValueError: I failed\n\nAt:\n"
    "  /opt/ml/model/m/1/model.py(10): execute\n"
)
SHAPE = (
    "[request id: <id_unknown>] unexpected shape for input 'X' for model 'm'. "
    "Expected [3], got [0]. "
)
#: Each text with its status in a single-model container; a multi-model container answers all with
#: 400.
REFUSED = [
    (400, "unexpected inference input 'W' for model 'm'"),
    (400, "unexpected inference output 'nope' for model 'm'"),
    (
        400,
        (
            "[request id: <id_unknown>] inference input 'X' data-type is 'INT32', "
            "but model 'm' expects 'FP32'"
        ),
    ),
    (400, "[request id: <id_unknown>] inference request batch-size must be <= 2 for 'm'"),
    (400, SHAPE),
    (400, "invalid datatype for input X"),
    (400, "inference header size should be in range (0, 80), got: 50000"),
    (500, "Unable to parse 'data': Shape does not match true shape of 'data' field"),
    (500, "Unable to parse 'shape': attempt to access non-existing object member 'shape'"),
    (500, "Unable to parse 'inputs': attempt to access non-existing object member 'inputs'"),
    (500, "failed to parse the request JSON buffer: Invalid value. at 0"),
    (
        400,
        (
            "[request id: <id_unknown>] expected 1 inputs but got 0 inputs for model 'm'. Got "
            "input(s) [], but missing required input(s) ['X']. "
            "Please provide all required input(s)."
        ),
    ),
]
FAILED = [
    (500, RAISED),
    (500, f"in ensemble 'e', {RAISED}"),
    (500, "in ensemble 'e', Stub process 'm_0' is not healthy."),
    (500, "I failed politely"),
    (500, "Model m - Error when running inference: Failed for execute the inference request."),
    # The request fits the configuration of the ensemble, so its steps do not fit each other.
    (400, f"in ensemble 'e', {SHAPE}"),
]


def fault(error: RuntimeApiError, *, is_multi_model: bool = False) -> Fault:
    return fault_of(error.status, error.body(), is_multi_model=is_multi_model)


def answered(status: int, text: str) -> RuntimeApiError:
    return model_error(ENDPOINT, status, json.dumps({"error": text}))


@pytest.mark.parametrize(
    ("status", "text", "expected"),
    [*((*each, Fault.REQUEST) for each in REFUSED), *((*each, Fault.MODEL) for each in FAILED)],
)
def test_what_a_failed_call_is_the_fault_of(status: int, text: str, expected: Fault) -> None:
    """Refused requests, some with status 500, and errors of models,
    also where multi-model answers 400.
    """
    assert fault(answered(status, text)) is expected
    assert fault(answered(400, text), is_multi_model=True) is expected


def test_invalid_argument_of_a_model_blames_the_request() -> None:
    """A TritonError with INVALID_ARG, status 400, blames the request where the status is known."""
    error = answered(
        400, "in ensemble 'digits', image[0]: no PNG file; send one whole PNG file per element"
    )
    assert fault(error) is Fault.REQUEST
    assert fault(error, is_multi_model=True) is Fault.MODEL


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (validation_error("Variant x not found"), Fault.REQUEST),
        (validation_error("Failed to extract model data archive: no gzip"), Fault.MODEL),
        (service_unavailable("starting"), Fault.SERVER),
        (model_error(ENDPOINT, 0, "Your invocation timed out"), Fault.MODEL),
    ],
)
def test_own_errors_of_the_gateway(error: RuntimeApiError, expected: Fault) -> None:
    """Without an answer of the container, the gateway's own error says what is at fault."""
    assert fault(error) is expected


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("Failed to process the request(s) for model 'resize_0', message: E: x", "resize"),
        ("Failed to process the request(s) for model 'resize_2_0_1', message: E: x", "resize_2"),
        ("in ensemble 'e', Stub process 'sort_0' is not healthy.", "sort"),
        (f"in ensemble 'e', {SHAPE}", "m"),
        ("in ensemble 'e', I failed politely", ""),
    ],
)
def test_step_is_read_from_the_error(message: str, expected: str) -> None:
    """The model that an error names is found by the names of the server's models."""
    assert failed_step(message, ["resize", "resize_2", "sort", "m", "e"]) == expected
