"""Client of a Triton endpoint: takes and returns NumPy arrays, over SageMaker, plain HTTP or in memory.

Importing it loads neither boto3 nor the AWS CDK.
"""

from constructs_triton.client.async_inference import PendingInference
from constructs_triton.client.http_transport import HttpTransport
from constructs_triton.client.in_memory_transport import InMemoryTransport, RecordedCall
from constructs_triton.client.invocation_errors import (
    EndpointThrottledError,
    ModelNotReadyError,
    ModelOutOfMemoryError,
    NoCapacityError,
)
from constructs_triton.client.model_index import ModelIndex
from constructs_triton.client.recorded_requests import (
    ExpectedOutput,
    RecordedRequest,
    RecordedRequests,
    RecordedTensor,
)
from constructs_triton.client.sagemaker_transport import SageMakerTransport, default_config
from constructs_triton.client.transport import Invocation, Reply, Transport
from constructs_triton.client.triton_client import TritonClient
from constructs_triton.wire import Classification, InferenceResult, RequestedOutput, SequencePosition

__all__ = [
    "Classification",
    "EndpointThrottledError",
    "ExpectedOutput",
    "HttpTransport",
    "InMemoryTransport",
    "InferenceResult",
    "Invocation",
    "ModelIndex",
    "ModelNotReadyError",
    "ModelOutOfMemoryError",
    "NoCapacityError",
    "PendingInference",
    "RecordedCall",
    "RecordedRequest",
    "RecordedRequests",
    "RecordedTensor",
    "Reply",
    "RequestedOutput",
    "SageMakerTransport",
    "SequencePosition",
    "Transport",
    "TritonClient",
    "default_config",
]
