"""A transport for tests: a function takes the place of the model, and every call is recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from constructs_triton_client.transports.transport import Invocation, Reply
from constructs_triton_client.wire import InferenceRequest, decode_request, encode_response
from constructs_triton_core.errors import InvocationError
from constructs_triton_core.spelling import quoted

Model = Callable[[Mapping[str, NDArray[Any]]], Mapping[str, NDArray[Any]]]


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """One call of the client.

    Args:
        invocation: The bytes that were sent, and the parameters of InvokeEndpoint.
        request: The request decoded from these bytes.
    """

    invocation: Invocation
    request: InferenceRequest

    @property
    def inputs(self) -> Mapping[str, NDArray[Any]]:
        """The input arrays as the model received them."""
        return self.request.inputs

    @property
    def options(self) -> Mapping[str, Any]:
        """The parameters of InvokeEndpoint, such as ``TargetModel``."""
        return self.invocation.options


@dataclass
class InMemoryTransport:
    """Answers calls with a function, encoding and decoding the same bytes as an endpoint.

    Args:
        model: Function that takes and returns a mapping of names to arrays. To simulate a failure,
            raise an ``InvocationError`` in it.
        parts: Bytes that ``stream`` yields, in order.
        calls: What was sent, in order. The transport appends to it.
        invocation: The request to answer.
    """

    model: Model
    parts: Iterable[bytes] = ()
    calls: list[RecordedCall] = field(default_factory=list)

    def invoke(self, invocation: Invocation) -> Reply:
        """Record the call and return the model's outputs.

        Raises:
            InvocationError: the request is raw, or asks for an output that the model did not
                return.
        """
        request = decode_request(invocation.body, invocation.content_type)
        self.calls.append(RecordedCall(invocation, request))
        if request.raw is not None:
            raise InvocationError(
                "in-memory model: a raw request has no input names; use infer instead of infer_raw",
                status=400,
            )
        outputs = self.model(request.inputs)
        wanted = [entry["name"] for entry in request.outputs] or list(outputs)
        if missing := [name for name in wanted if name not in outputs]:
            raise InvocationError(
                f'in-memory model: has no output "{missing[0]}"; ask for {quoted(sorted(outputs))}',
                status=400,
            )
        response = encode_response({name: outputs[name] for name in wanted}, request=request)
        return Reply(response.body, response.content_type)

    def stream(self, invocation: Invocation) -> Iterator[bytes]:
        """Record the call and yield ``parts``."""
        self.calls.append(RecordedCall(invocation, InferenceRequest({}, raw=invocation.body)))
        return iter(self.parts)
