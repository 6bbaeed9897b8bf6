"""Client of a Triton endpoint: takes and returns NumPy arrays, over SageMaker, plain HTTP or in memory.

Importing the package loads nothing else: each public name is imported when it is first used (PEP 562), so
NumPy, boto3 and urllib3 are loaded by the first name that needs them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from constructs_triton_client.async_inference import PendingInference as PendingInference
    from constructs_triton_client.recorded_requests import ExpectedOutput as ExpectedOutput
    from constructs_triton_client.recorded_requests import RecordedRequest as RecordedRequest
    from constructs_triton_client.recorded_requests import RecordedRequests as RecordedRequests
    from constructs_triton_client.recorded_requests import RecordedTensor as RecordedTensor
    from constructs_triton_client.transports.http_transport import HttpTransport as HttpTransport
    from constructs_triton_client.transports.in_memory_transport import InMemoryTransport as InMemoryTransport
    from constructs_triton_client.transports.in_memory_transport import RecordedCall as RecordedCall
    from constructs_triton_client.transports.sagemaker_transport import (
        SageMakerTransport as SageMakerTransport,
    )
    from constructs_triton_client.transports.sagemaker_transport import default_config as default_config
    from constructs_triton_client.transports.transport import Invocation as Invocation
    from constructs_triton_client.transports.transport import Reply as Reply
    from constructs_triton_client.transports.transport import Transport as Transport
    from constructs_triton_client.triton_client import TritonClient as TritonClient
    from constructs_triton_client.wire.requests import RequestedOutput as RequestedOutput
    from constructs_triton_client.wire.requests import SequencePosition as SequencePosition
    from constructs_triton_client.wire.responses import Classification as Classification
    from constructs_triton_client.wire.responses import InferenceResult as InferenceResult
    from constructs_triton_core.model_index import ModelIndex as ModelIndex

_MODULES = {
    "Classification": "wire.responses",
    "ExpectedOutput": "recorded_requests",
    "HttpTransport": "transports.http_transport",
    "InMemoryTransport": "transports.in_memory_transport",
    "InferenceResult": "wire.responses",
    "Invocation": "transports.transport",
    "ModelIndex": "model_index",
    "PendingInference": "async_inference",
    "RecordedCall": "transports.in_memory_transport",
    "RecordedRequest": "recorded_requests",
    "RecordedRequests": "recorded_requests",
    "RecordedTensor": "recorded_requests",
    "Reply": "transports.transport",
    "RequestedOutput": "wire.requests",
    "SageMakerTransport": "transports.sagemaker_transport",
    "SequencePosition": "wire.requests",
    "Transport": "transports.transport",
    "TritonClient": "triton_client",
    "default_config": "transports.sagemaker_transport",
}
__all__ = sorted(_MODULES)  # noqa: PLE0605 - a list of strings


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    check_keywords = import_module(f"{__name__}.keywords").check_keywords
    value = check_keywords(getattr(import_module(f"{__name__}.{_MODULES[name]}"), name))
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
