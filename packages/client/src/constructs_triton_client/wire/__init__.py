"""Encodes and decodes KServe v2 requests and responses, as JSON and as SageMaker's ``binary+json``.

Nothing here does I/O. A client uses ``encode_request`` and ``decode_response``. A server, or a fake
server in a test, uses ``decode_request`` and ``encode_response``.
"""

from constructs_triton_client.wire.requests import EncodedRequest, encode_request
from constructs_triton_client.wire.responses import decode_response
from constructs_triton_client.wire.server_side import (
    EncodedResponse,
    InferenceRequest,
    decode_request,
    encode_response,
)
from constructs_triton_core.keywords import check_names

__all__ = [
    "EncodedRequest",
    "EncodedResponse",
    "InferenceRequest",
    "decode_request",
    "decode_response",
    "encode_request",
    "encode_response",
]

check_names(globals(), __all__)
