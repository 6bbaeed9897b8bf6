"""A transport for tests: a function plays the model, and every call is recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from constructs_triton.client.transport import Invocation, Reply
from constructs_triton.errors import InvocationError
from constructs_triton.wire import InferenceRequest, decode_request, encode_response

__all__ = ["InMemoryTransport", "RecordedCall"]

Model = Callable[[Mapping[str, NDArray[Any]]], Mapping[str, NDArray[Any]]]


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """What the client sent: the bytes, and what they say."""

    invocation: Invocation
    request: InferenceRequest

    @property
    def inputs(self) -> Mapping[str, NDArray[Any]]:
        """The arrays as the model received them."""
        return self.request.inputs

    @property
    def options(self) -> Mapping[str, Any]:
        """InvokeEndpoint's options, such as ``TargetModel``."""
        return self.invocation.options


@dataclass
class InMemoryTransport:
    """Answers every call by ``model``, over the same bytes that an endpoint would see.

    ``model`` maps arrays to arrays; to play a failure, let it raise an ``InvocationError``. ``parts`` are
    the bytes that a stream hands out. ``calls`` lists what was sent, in order.
    """

    model: Model
    parts: Iterable[bytes] = ()
    calls: list[RecordedCall] = field(default_factory=list)

    def invoke(self, invocation: Invocation) -> Reply:
        request = decode_request(invocation.body, invocation.content_type)
        self.calls.append(RecordedCall(invocation, request))
        if request.raw is not None:
            raise InvocationError(
                "in-memory model: cannot read a raw request, got no JSON; use infer", status=400
            )
        response = encode_response(self._select(request), request=request)
        return Reply(response.body, response.content_type)

    def stream(self, invocation: Invocation) -> Iterator[bytes]:
        self.calls.append(RecordedCall(invocation, InferenceRequest({}, raw=invocation.body)))
        return iter(self.parts)

    def _select(self, request: InferenceRequest) -> Mapping[str, NDArray[Any]]:
        outputs = self.model(request.inputs)
        wanted = [entry["name"] for entry in request.outputs] or list(outputs)
        if missing := [name for name in wanted if name not in outputs]:
            raise InvocationError(
                f'in-memory model: has no output "{missing[0]}", got {sorted(outputs)}; ask for one of them',
                status=400,
            )
        return {name: outputs[name] for name in wanted}
