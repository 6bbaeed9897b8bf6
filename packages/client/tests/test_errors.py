"""The class, message and hint of an endpoint's errors."""

from __future__ import annotations

import re

import pytest

from constructs_triton_client.errors import build_invocation_error, read_model_message
from constructs_triton_core.errors import (
    EndpointThrottledError,
    InvocationError,
    ModelNotReadyError,
    ModelOutOfMemoryError,
)


@pytest.mark.parametrize(
    ("code", "status", "error", "hint"),
    [
        ("ModelError", 507, ModelOutOfMemoryError, "use a larger instance type"),
        ("ModelNotReadyException", 429, ModelNotReadyError, "still loading.* try again"),
        ("", 429, EndpointThrottledError, "send fewer requests"),
        ("ThrottlingException", 400, EndpointThrottledError, "send fewer requests"),
        ("Throttling", None, EndpointThrottledError, "send fewer requests"),
        ("TooManyRequestsException", None, EndpointThrottledError, "send fewer requests"),
        ("RequestLimitExceeded", None, EndpointThrottledError, "send fewer requests"),
        ("ValidationError", None, InvocationError, "compare the request"),
        ("ValidationException", None, InvocationError, "compare the request"),
        ("", 400, InvocationError, "compare the request"),
        ("", 404, InvocationError, "compare the request"),
        ("", 403, InvocationError, "allow the call to the role"),
        ("", 405, InvocationError, "use TritonClient.for_endpoint"),
        ("", 413, InvocationError, "send fewer rows in a request, or use an asynchronous endpoint"),
        ("", 500, InvocationError, "see the endpoint's log"),
        (
            "ConnectTimeoutError",
            None,
            InvocationError,
            "check the address, and that it can be reached",
        ),
        ("EndpointConnectionError", None, InvocationError, "that a server listens there"),
        ("NewConnectionError", None, InvocationError, "that a server listens there"),
        ("InvalidRegionError", None, InvocationError, "set region_name to a Region"),
        ("LocationParseError", None, InvocationError, "write the address as http://host:port"),
        ("LocationValueError", None, InvocationError, "write the address as http://host:port"),
        ("NoCredentialsError", None, InvocationError, "log in to AWS"),
        ("NoRegionError", None, InvocationError, "set region_name, or the environment variable"),
        ("ProfileNotFound", None, InvocationError, "set AWS_PROFILE"),
        (
            "ReadTimeoutError",
            None,
            InvocationError,
            "raise read_timeout_seconds, or use infer_async",
        ),
    ],
)
def test_class_and_hint(
    code: str, status: int | None, error: type[InvocationError], hint: str
) -> None:
    """Code and status decide the class of the error and its hint."""
    built = build_invocation_error("demo", "it failed", code=code, status=status, request_id="r")
    assert type(built) is error
    got = f"status {status}" if status else code
    assert re.match(rf"endpoint demo: it failed, got {got}; .*{hint}", str(built))
    assert (built.status, built.request_id, built.model_message) == (status, "r", None)


def _rejected(said: str, code: str = "ValidationError") -> str:
    return str(
        build_invocation_error("demo", "it failed", code=code, status=400, model_message=said)
    )


def test_ended_process_of_a_python_model_names_the_command_that_tells_causes_apart() -> None:
    """The log does not always contain the cause, so the hint leads to the list of all."""
    said = "Stub process 'crash_0_0' is not healthy."
    assert "`constructs-triton explain py-stub-unhealthy`" in _rejected(said, "ModelError")


def test_unknown_endpoint_names_the_command_that_lists_endpoints() -> None:
    """SageMaker's message for an unknown endpoint gets its own hint,
    that of an unknown variant does not.
    """
    said = "Endpoint demo of account 123456789012 not found."
    hint = "check the name and the Region; `aws sagemaker list-endpoints` lists endpoints"
    assert _rejected(said).endswith(f"not found.; {hint}")
    local = _rejected(f"{said} Endpoints of this local run: digits")
    assert local.endswith("run: digits; use the name of an endpoint of this local run")
    assert _rejected("Variant A not found for endpoint demo").endswith(
        ": Variant A not found for endpoint demo"
    )


SHAPE = "unexpected shape for input 'X' for model 'm'. Expected [-1,4],"
WRONG_TYPE = "inference input 'x' data-type is 'FP64', but model 'm' expects 'FP32'"
NOTE = "NOTE: Setting a non-zero max_batch_size in the model config requires a batch dimension"


@pytest.mark.parametrize(
    ("said", "end"),
    [
        ("unexpected inference input 'k' for model 'm'", "; use the names of the model's inputs"),
        ("Unable to parse 'inputs': attempt to access", "; the endpoint runs with inference_type"),
        (
            f"{SHAPE} got [1,5]",
            '; input "X": shape must fit [-1, 4], got [1, 5]; reshape it so that axis 1',
        ),
        (
            f"{SHAPE} got [4]. {NOTE}",
            "add the batch axis with array[None]; max_batch_size can stay as it is",
        ),
        (
            f"{SHAPE} got [5]. {NOTE}",
            "; reshape it to 2 dimensions; max_batch_size can stay as it is",
        ),
        (f"in ensemble 'e', {SHAPE} got [5]", "got [5]"),
        (
            (
                "expected 2 inputs but got 1 inputs. Got input(s) ['x'], "
                "but missing required input(s) ['y']."
            ),
            ".",
        ),
        (WRONG_TYPE, "; convert the array with astype"),
        (
            WRONG_TYPE.replace("FP32", "BF16"),
            "; convert the array with astype(ml_dtypes.bfloat16), of `pip",
        ),
        (
            WRONG_TYPE.replace("FP32", "BYTES"),
            "; for a file such as an image, pass its bytes: np.arr",
        ),
        (
            "input byte size mismatch for input 'raw_input' for model 'm'. Expected 16, got 32",
            "; pass one row to infer_raw, in the model's data type",
        ),
        (
            "input 'T' has no shape but model requires batch dimension for 'm'",
            "; pass an array with the",
        ),
        (
            "inference request batch-size must be <= 32 for 'm'",
            "; send fewer rows in a request; if the array is one row, add",
        ),
        (
            "404: Not Found",
            "; what answers at this address is no endpoint; pass the address",
        ),
        ("<html>nginx</html>", "; what answers at this address is no endpoint; pass the address"),
        (
            "Endpoint m is asynchronous; call invoke_endpoint_async",
            "; with this client, call infer_async with",
        ),
        (
            "Endpoint m is not an asynchronous endpoint; call invoke_endpoint",
            "; with this client, call infer",
        ),
    ],
)
def test_a_message_of_the_model_has_a_hint_only_if_the_fix_is_elsewhere(
    said: str, end: str
) -> None:
    """What Triton's message leaves out is added: names, inference type,
    and how to change a shape.
    """
    text = _rejected(said, "")
    assert text.partition(said)[2].startswith(end) or text.endswith(end)


@pytest.mark.parametrize(
    ("said", "fix"),
    [
        (
            "User: U is not authorized to perform: sagemaker:InvokeEndpoint on R",
            "allow it to the role of the",
        ),
        ("The security token included in the request is expired", "log in to AWS again"),
        ("The request signature we calculated does not match", "log in to AWS again"),
    ],
)
def test_a_call_that_aws_refuses_is_about_the_caller(said: str, fix: str) -> None:
    """The endpoint has not seen the request, so its log does not have the cause."""
    error = build_invocation_error(
        "demo", "it failed", code="Denied", status=403, model_message=said
    )
    assert str(error).partition(said)[2].startswith(f"; {fix}")


def test_asynchronous_failure_has_the_hint_of_the_same_message() -> None:
    """The message of the model is within SageMaker's."""
    said = (
        f'Received client error (400) from primary with message "{{"error":"{SHAPE} got [1,5]"}}".'
    )
    error = build_invocation_error(
        "demo", "it failed", code="AsyncInferenceFailure", model_message=said
    )
    assert str(error).endswith("got [1, 5]; reshape it so that axis 1 has size 4")


def test_asynchronous_request_that_the_role_may_not_read_names_the_location() -> None:
    """SageMaker reads the request before the container,
    so the endpoint's log says nothing about it.
    """
    said = (
        "AccessDenied: role R is not authorized to perform: "
        's3:GetObject on resource: "arn:aws:s3:::b/k"'
    )
    hint = (
        "; for an asynchronous request, set input_location "
        "to the input_prefix of the endpoint's Async"
    )
    error = build_invocation_error(
        "demo", "it failed", code="AsyncInferenceFailure", model_message=said
    )
    assert hint in str(error)


@pytest.mark.parametrize(
    ("said", "fix"),
    [
        (
            "HTTP end point doesn't support models with decoupled transaction policy",
            "set inference_type to",
        ),
        (
            "parameter 'inputs' has invalid type. It should be either",
            (
                'for event in client.infer_stream({"text_input": "..."}): '
                'print(event.text("text_output"))`'
            ),
        ),
        (
            "JSON buffer: The document root must not be followed by other values. at 9",
            "infer_stream",
        ),
    ],
)
def test_a_request_of_the_other_inference_type_is_explained(said: str, fix: str) -> None:
    """Each of Triton's errors names the method and the setting that fit,
    also for a binary request.
    """
    assert fix in _rejected(said, "")


def test_long_messages_are_shortened_in_print_only() -> None:
    """The first 2000 characters of the model's message are printed, and the attribute has all."""
    error = build_invocation_error("demo", "it failed", model_message="x" * 2001)
    assert error.model_message == "x" * 2001
    assert "got no response: " + "x" * 2000 + "; see" in str(error)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{"error":"no space left"}', "no space left"),
        (b'{"error":5}', "5"),
        (b'data: {"error":"no first"}\n\n', "no first"),
        (b'{"error":"' + b"x" * 5000 + b'"}', "x" * 5000),
        (b" segmentation fault\n", "segmentation fault"),
        (b'{"message":"x"}', '{"message":"x"}'),
        (b'["error"]', '["error"]'),
        (b"", ""),
        (b"caf\xe9", "caf\ufffd"),
        (b"[" * 10_000, "[" * 10_000),
        (b"x" * 70_000, "x" * 65_536),
    ],
)
def test_message_of_an_error_body(body: bytes, expected: str) -> None:
    """The message is Triton's error, or the text of a body of another form."""
    assert read_model_message(body) == expected


def test_a_full_queue_is_a_throttled_endpoint_whatever_its_status() -> None:
    """A multi-model endpoint answers 400 where others answer 503; callers wait and try again."""
    said = "in ensemble 'e', [request id: 1] Exceeds maximum queue size"
    error = build_invocation_error("m", "it failed", status=400, model_message=said)
    assert isinstance(error, EndpointThrottledError)
    assert "queue is full" in str(error)


@pytest.mark.parametrize(
    ("code", "fix"),
    [
        ("ProxyConnectionError", "NO_PROXY"),
        ("SSLError", "AWS_CA_BUNDLE"),
        ("ConfigParseError", "AWS_CONFIG_FILE"),
    ],
)
def test_a_request_that_never_left_has_a_fix_on_this_machine(code: str, fix: str) -> None:
    """The log of the endpoint has nothing about it."""
    error = build_invocation_error("m", "it failed", code=code, model_message="refused")
    assert fix in str(error)
    assert "log" not in str(error)
