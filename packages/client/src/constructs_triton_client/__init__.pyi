# The public names. Python imports each on first use, type checkers read this file.

__all__: list[str]

from constructs_triton_client.async_inference import PendingInference as PendingInference
from constructs_triton_client.generated_events import GenerateStream as GenerateStream
from constructs_triton_client.recorded_requests import ExpectedOutput as ExpectedOutput
from constructs_triton_client.recorded_requests import RecordedRequest as RecordedRequest
from constructs_triton_client.recorded_requests import RecordedRequests as RecordedRequests
from constructs_triton_client.recorded_requests import RecordedTensor as RecordedTensor
from constructs_triton_client.transports.http_transport import HttpTransport as HttpTransport
from constructs_triton_client.transports.in_memory_transport import (
    InMemoryTransport as InMemoryTransport,
)
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
