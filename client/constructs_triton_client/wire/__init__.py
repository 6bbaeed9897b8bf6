"""Encodes and decodes KServe v2 requests and responses, as JSON and as SageMaker's ``binary+json``.

Nothing here does I/O. A client uses ``encode_request`` and ``decode_response``. A server, or a fake server in
a test, uses ``decode_request`` and ``encode_response``.
"""

from constructs_triton_client.wire.content_type import (
    BINARY_CONTENT_TYPE,
    JSON_CONTENT_TYPE,
    format_content_type,
    parse_header_size,
)
from constructs_triton_client.wire.requests import (
    EncodedRequest,
    Parameter,
    RequestedOutput,
    SequencePosition,
    encode_raw_request,
    encode_request,
)
from constructs_triton_client.wire.responses import Classification, InferenceResult, decode_response
from constructs_triton_client.wire.server_side import (
    EncodedResponse,
    InferenceRequest,
    decode_request,
    encode_response,
)

__all__ = [
    "BINARY_CONTENT_TYPE",
    "JSON_CONTENT_TYPE",
    "Classification",
    "EncodedRequest",
    "EncodedResponse",
    "InferenceRequest",
    "InferenceResult",
    "Parameter",
    "RequestedOutput",
    "SequencePosition",
    "decode_request",
    "decode_response",
    "encode_raw_request",
    "encode_request",
    "encode_response",
    "format_content_type",
    "parse_header_size",
]
