"""The client of an endpoint: arrays in, arrays out, over SageMaker, plain HTTP or no network at all.

Nothing here imports boto3 before the first call, and nothing ever imports the AWS CDK.
"""

from constructs_triton.client.async_inference import PendingInference
from constructs_triton.client.http_transport import HttpTransport
from constructs_triton.client.in_memory_transport import InMemoryTransport, RecordedCall
from constructs_triton.client.invocation_errors import (
    EndpointThrottledError,
    ModelNotReadyError,
    ModelOutOfMemoryError,
)
from constructs_triton.client.model_index import ModelIndex
from constructs_triton.client.sagemaker_transport import SageMakerTransport, default_config
from constructs_triton.client.transport import Invocation, Reply, Transport
from constructs_triton.client.triton_client import TritonClient
from constructs_triton.wire import Classification, InferenceResult, RequestedOutput, SequencePosition

__all__ = [
    "Classification",
    "EndpointThrottledError",
    "HttpTransport",
    "InMemoryTransport",
    "InferenceResult",
    "Invocation",
    "ModelIndex",
    "ModelNotReadyError",
    "ModelOutOfMemoryError",
    "PendingInference",
    "RecordedCall",
    "Reply",
    "RequestedOutput",
    "SageMakerTransport",
    "SequencePosition",
    "Transport",
    "TritonClient",
    "default_config",
]
