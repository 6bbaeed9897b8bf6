"""Builds the error of an endpoint's answer, one class per reaction of the caller, and the fix of a
shape.

Source: botocore sagemaker-runtime service model, "InvokeEndpoint" errors; triton server
``src/sagemaker_server.cc`` for 507; AWS's examples of inference components for messages about them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import permutations
from typing import Any

from constructs_triton_core.datatypes import FILE_HINT
from constructs_triton_core.errors import (
    EndpointThrottledError,
    InvocationError,
    ModelNotReadyError,
    ModelOutOfMemoryError,
    NoCapacityError,
)

INSUFFICIENT_STORAGE = 507
ANY_SIZE = -1
_MOST_TRANSPOSED = 5
_THROTTLED_CODES = {
    "ThrottlingException",
    "Throttling",
    "TooManyRequestsException",
    "RequestLimitExceeded",
}
_INVALID_CODES = {"ValidationError", "ValidationException"}
# SageMaker reports these with status 400 and the code ValidationError, so only the message
# identifies them.
# Triton's, of a request that max_queue_size refuses; the status depends on the kind of endpoint.
_FULL_QUEUE = "Exceeds maximum queue size"
_NO_CAPACITY = "has no capacity to process this request"
_NO_CAPACITY_HINT = (
    "a component that scales from zero starts its first copy within minutes; try again, or set "
    "wake_timeout on the client"
)
_NOT_TENSORS = (
    "the endpoint runs with inference_type generate or generate_stream, so send text with `for "
    'event in client.infer_stream({"text_input": "..."}): print(event.text("text_output"))`, with '
    "--stream of the command, or as JSON with curl"
)
_STREAMING_TYPE = "set inference_type to generate_stream on the endpoint"
_OWNER = (
    "its owner reads them with `constructs-triton config show FOLDER`, and a client with "
    "model_config checks them before a request"
)
# Triton's messages are complete except for these, and so are SageMaker's. Only the configuration
# has the names of tensors: SageMaker passes no request for them to the server.
_HINTS_BY_MESSAGE = {
    # Triton's, for a generate request at an endpoint that expects tensors.
    "Unable to parse 'inputs'": (
        "the endpoint runs with inference_type infer, "
        f"so send tensors with infer of the client, or {_STREAMING_TYPE}"
    ),
    "generate expects model to produce exactly 1 response": _STREAMING_TYPE,
    "Stub process": "`constructs-triton explain py-stub-unhealthy` lists its causes",
    # Triton's, for requests that do not fit the endpoint's inference type.
    "doesn't support models with decoupled": f"{_STREAMING_TYPE}, and call infer_stream",
    "parameter 'inputs' has invalid type": _NOT_TENSORS,
    "document root must not be followed by other values": _NOT_TENSORS,  # a binary request
    "Inference Component Name header is required": "set inference_component to one of the endpoint",
    ("Inference Component Name header is not allowed"): (
        "remove inference_component: the endpoint has none"
    ),
    "Failed to download model data": (
        "set target_model to the name of a model, which is looked up in the endpoint's index, or "
        "to an archive that exists"
    ),
    "Could not find inference component": (
        "check the name; `aws sagemaker list-inference-components` lists components"
    ),
    "Endpoints of this local run": "use the name of an endpoint of this local run",
    # Of InvokeEndpoint and of DescribeEndpoint.
    r"(?i)^(Endpoint \S+ .*not found|Could not find endpoint)": (
        "check the name and the Region; `aws sagemaker list-endpoints` lists endpoints"
    ),
    "not authorized to perform: sagemaker:Invoke": (
        "allow it to the role of the caller; in its CDK app, grant_invoke of the endpoint does so, "
        "grant_invoke_async, or grant_invoke_with_response_stream"
    ),
    # S3 refused the caller, or the role of an asynchronous endpoint; the container has not seen the
    # request.
    "to perform: s3:GetObject": (
        "for an asynchronous request, set input_location to the input_prefix of the endpoint's "
        "AsyncInferenceConfig, such as s3://BUCKET/async/input/; "
        "if not, grant the role s3:GetObject"
    ),
    "security token|signature we calculated|Signature expired|provided token|Access Key Id": (
        "log in to AWS again, or correct the credentials"
    ),
    "unexpected inference input": f"use the names of the model's inputs; {_OWNER}",
    "unexpected inference output": f"use the names of the model's outputs; {_OWNER}",
    r"data-type is '\w+', but model '[^']+' expects 'BF16'": "convert the array with "
    "astype(ml_dtypes.bfloat16), of `pip install 'constructs-triton-client[bfloat16]'`",
    r"data-type is '\w+', but model '[^']+' expects 'BYTES'": f"{FILE_HINT}; for numbers as text, "
    "convert the array with astype(str)",
    r"data-type is '\w+', but model": "convert the array with astype",
    "byte size mismatch for input 'raw_input'": (
        "pass one row to infer_raw, in the model's data type, such as "
        "array.astype(numpy.float32); for a batch, use infer"
    ),
    "has no shape but model requires batch dimension": (
        "pass an array with the batch axis and the model's dimensions, such as array.reshape(1, 1)"
    ),
    "batch-size must be <=": (
        "send fewer rows in a request; if the array is one row, add the batch axis with array[None]"
    ),
    r"^(404: )?Not Found$|^<": (
        "what answers at this address is no endpoint; pass the address of SageMaker's API or of "
        "`constructs-triton local up` alone, without a path"
    ),
    "not an asynchronous endpoint": "with this client, call infer",
    "is asynchronous; call": (
        'with this client, call infer_async with input_location="s3://BUCKET/async/input/", the '
        "bucket and the input_prefix of the endpoint's AsyncInferenceConfig"
    ),
}
# Triton adds a note that advises to set max_batch_size to zero, also where only the array is wrong.
_BATCH_NOTE = "NOTE: Setting a non-zero max_batch_size"
_WRONG_SHAPE = re.compile(
    r"unexpected shape for input '([^']+)' for model '[^']+'\. "
    r"Expected (\[[-\d, ]*\]), got (\[[-\d, ]*\])"
)
_OF_A_STEP = "in ensemble '"
# The number of characters of a model's message that are printed; ``model_message`` keeps all of
# them.
_MAXIMUM_PRINTED = 2000
# A longer error body is not parsed: the start of its text is enough for a message.
MAXIMUM_PARSED_BYTES = 65536
_LISTEN_HINT = "check the address, and that a server listens there"
# Errors of botocore, urllib3 and Python in responses that do not follow their protocol.
_BROKEN = {
    "ChecksumMismatch",
    "IncompleteReadError",
    "InvalidChunkLength",
    "InvalidHeader",
    "ProtocolError",
    "RecursionError",
    "ResponseParserError",
    "ResponseStreamingError",
    "UnicodeDecodeError",
}
# By status, or by the name that botocore and urllib3 give to a request that never reached the
# service.
_HINTS_BY_CODE: dict[str | int | None, str] = {
    **dict.fromkeys(_BROKEN, "the response is corrupt or incomplete, so send the request again"),
    "ConnectTimeoutError": "check the address, and that it can be reached from this machine",
    **dict.fromkeys(("EndpointConnectionError", "NewConnectionError"), _LISTEN_HINT),
    "InvalidRegionError": "set region_name to a Region such as us-east-1",
    **dict.fromkeys(
        ("LocationParseError", "LocationValueError"), "write the address as http://host:port"
    ),
    "NoCredentialsError": "log in to AWS, or pass a session that has credentials",
    **dict.fromkeys(
        ("ProxyConnectionError", "ProxyError"),
        "check the proxy in HTTPS_PROXY or HTTP_PROXY, or name the address in NO_PROXY",
    ),
    "SSLError": (
        "check that the address speaks https, and that AWS_CA_BUNDLE has the authority of its "
        "certificate"
    ),
    **dict.fromkeys(
        ("ConfigParseError", "ConfigNotFound"),
        "correct the file, or name another one in AWS_CONFIG_FILE",
    ),
    **dict.fromkeys(("NoSuchBucket", "NoSuchKey"), "check the bucket and the key"),
    "NoRegionError": "set region_name, or the environment variable AWS_DEFAULT_REGION",
    "ProfileNotFound": "set AWS_PROFILE to a profile of the AWS configuration file, or unset it",
    "ReadTimeoutError": (
        "raise read_timeout_seconds, or use infer_async if a model needs more than 60 s"
    ),
    403: "allow the call to the role of the caller",
    405: "no container is at this address; for SageMaker or `constructs-triton local up`, use "
    "TritonClient.for_endpoint(name, endpoint_url=...)",
    413: "send fewer rows in a request, or use an asynchronous endpoint, which takes 1 GB",
}


def build_invocation_error(
    endpoint: str,
    what: str,
    *,
    code: str = "",
    status: int | None = None,
    model_message: object = None,
    request_id: str | None = None,
) -> InvocationError:
    """Build the error of the class that belongs to ``code``, the service's name for it, and
    ``status``.

    ``model_message`` may be any value of JSON, and is kept as a string.
    """
    if model_message is not None:
        model_message = str(model_message)
    error_class, hint = _classify(code, status, model_message or "")
    got = f"status {status}" if status else code or "no response"
    reported = f": {model_message[:_MAXIMUM_PRINTED]}" if model_message else ""
    fix = f"; {hint}" if hint else ""
    return error_class(
        f"endpoint {endpoint}: {what}, got {got}{reported}{fix}",
        status=status,
        model_message=model_message,
        request_id=request_id,
    )


def _classify(code: str, status: int | None, said: str) -> tuple[type[InvocationError], str]:
    """Return the class of an error, and what the caller can do."""
    if status == INSUFFICIENT_STORAGE:
        return (
            ModelOutOfMemoryError,
            "use a larger instance type, or fewer or smaller models on the endpoint",
        )
    if _NO_CAPACITY in said:
        return NoCapacityError, _NO_CAPACITY_HINT
    if code == "ModelNotReadyException":
        return (
            ModelNotReadyError,
            "the model is still loading, which may take up to 360 s; try again",
        )
    if code in _THROTTLED_CODES or status == 429:
        return EndpointThrottledError, "send fewer requests at a time, or add instances"
    if _FULL_QUEUE in said:
        return EndpointThrottledError, "the model's queue is full: send fewer requests at a time"
    return InvocationError, _hint(code, status, said)


def _hint(code: str, status: int | None, said: str) -> str:
    """Return what the caller can do about an error without a class of its own."""
    if hint := fix_of(said) or _HINTS_BY_CODE.get(code):
        return hint
    if code in _INVALID_CODES or status in {400, 404}:
        return "" if said else "compare the request with the endpoint and the model's configuration"
    return _HINTS_BY_CODE.get(
        status, "see the endpoint's log, which `constructs-triton diagnose` reads"
    )


def fix_of(said: str) -> str:
    """Return the fix of a message of Triton or SageMaker that does not contain it;
    otherwise empty.
    """
    fixes = (fix for pattern, fix in _HINTS_BY_MESSAGE.items() if re.search(pattern, said))
    return next(fixes, "") or _shape_hint(said)


def _shape_hint(said: str) -> str:
    """Return which shape an input must have; empty for another message,
    and for a step of an ensemble.
    """
    found = _WRONG_SHAPE.search(said)
    if found is None or _OF_A_STEP in said[: found.start()]:
        return ""
    expected, shape = (json.loads(part) for part in found.group(2, 3))
    hint = reshape_hint(shape, expected)
    kept = "; max_batch_size can stay as it is" if _BATCH_NOTE in said else ""
    return f'input "{found[1]}": shape must fit {expected}, got {shape}; {hint}{kept}'


def read_model_message(body: bytes | str) -> str:
    """Return Triton's message from an error body ``{"error": "..."}``; of any other body, its text.

    An error in the place of a stream's first event is framed as an event.
    """
    start = body[:MAXIMUM_PARSED_BYTES]
    text = (start if isinstance(start, str) else start.decode("utf-8", errors="replace")).strip()
    try:
        value: Any = json.loads(text.removeprefix("data:"))
        return str(value["error"]) if isinstance(value, dict) and "error" in value else text
    except (ValueError, RecursionError):
        return text


def fits(shape: Sequence[int], expected: Sequence[int]) -> bool:
    """Return whether a shape has the expected sizes; ``ANY_SIZE`` is any size."""
    return len(shape) == len(expected) and not _wrong_axes(shape, expected)


def reshape_hint(shape: Sequence[int], expected: Sequence[int]) -> str:
    """Return the fix of a shape that does not fit."""
    if list(expected[:1]) == [ANY_SIZE] and fits(shape, expected[1:]):
        return "add the batch axis with array[None]"
    if len(shape) != len(expected):
        dimensions = "1 dimension" if len(expected) == 1 else f"{len(expected)} dimensions"
        return f"reshape it to {dimensions}"
    axes = _axes_in_order(shape, expected)
    if axes is not None:
        return f"put the axes in the order of the model with array.transpose{axes}"
    sizes = [f"axis {axis} has size {expected[axis]}" for axis in _wrong_axes(shape, expected)]
    return f"reshape it so that {' and '.join(sizes)}"


def _axes_in_order(shape: Sequence[int], expected: Sequence[int]) -> tuple[int, ...] | None:
    """Return the order of the axes in which a shape fits, if there is one such order.

    For example, the channels of a picture are last. Reshaping it would mix its pixels.
    """
    if len(shape) > _MOST_TRANSPOSED:
        return None
    # The batch axis stays first.
    kept = (0,) if list(expected[:1]) == [ANY_SIZE] else ()
    orders = (kept + order for order in permutations(range(len(kept), len(shape))))
    found = [order for order in orders if fits([shape[axis] for axis in order], expected)]
    distinct = {tuple(shape[axis] for axis in order) for order in found}
    # Of axes with the same size, the first order keeps them as they are.
    return found[0] if len(distinct) == 1 else None


def _wrong_axes(shape: Sequence[int], expected: Sequence[int]) -> list[int]:
    pairs = enumerate(zip(shape, expected, strict=True))
    return [axis for axis, (size, wanted) in pairs if wanted not in (ANY_SIZE, size)]
