"""The client: NumPy arrays in, NumPy arrays out, over any transport."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from constructs_triton.client.async_inference import PendingInference, start_inference
from constructs_triton.client.concurrency import map_concurrently
from constructs_triton.client.generation import encode_generation, read_generation
from constructs_triton.client.input_checks import ModelConfigLike, check_inputs
from constructs_triton.client.model_index import ModelIndex
from constructs_triton.client.sagemaker_transport import SageMakerTransport
from constructs_triton.client.transport import Invocation, Transport
from constructs_triton.errors import InvalidValueError
from constructs_triton.wire import (
    EncodedRequest,
    InferenceResult,
    Parameter,
    RequestedOutput,
    SequencePosition,
    decode_response,
    encode_raw_request,
    encode_request,
)

if TYPE_CHECKING:
    import boto3
    from botocore.config import Config

__all__ = ["TritonClient"]


class TritonClient:
    """Speaks to one endpoint; safe to use from several threads.

    ``target_model`` is the default ``TargetModel`` of a multi-model endpoint: an archive's name or, with an
    ``index``, a model's. With a ``model_config``, Triton's own or anything shaped like it, inputs are
    checked before they are sent.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        target_model: str | None = None,
        index: ModelIndex | None = None,
        model_config: ModelConfigLike | None = None,
    ) -> None:
        self.transport = transport
        self.target_model = target_model
        self.index = index
        self.model_config = model_config

    @classmethod
    def for_endpoint(
        cls,
        name: str,
        *,
        session: boto3.Session | None = None,
        endpoint_url: str | None = None,
        region_name: str | None = None,
        target_model: str | None = None,
        index: ModelIndex | str | None = None,
        model_config: ModelConfigLike | None = None,
        config: Config | None = None,
    ) -> TritonClient:
        """A client of the SageMaker endpoint ``name``; nothing is sent yet.

        ``endpoint_url`` is the runtime API's address where it is not AWS's own. ``index`` may be the S3 URI
        of an ``index.json``, which is read now. ``config`` is botocore's; by default reads wait 70 s, and
        throttled or not yet ready models are tried 4 times in all.
        """
        transport = SageMakerTransport(
            name, session=session, endpoint_url=endpoint_url, region_name=region_name, config=config
        )
        if isinstance(index, str):
            index = transport.read_index(index)
        return cls(transport, target_model=target_model, index=index, model_config=model_config)

    def infer(
        self,
        inputs: Mapping[str, NDArray[Any]],
        outputs: Sequence[str | RequestedOutput] | None = None,
        *,
        binary: bool = True,
        binary_output: bool | None = None,
        datatypes: Mapping[str, str] | None = None,
        id: str = "",
        sequence: SequencePosition | None = None,
        priority: int = 0,
        timeout_microseconds: int | None = None,
        parameters: Mapping[str, Parameter] | None = None,
        **invoke_options: Any,
    ) -> InferenceResult:
        """One inference; the arguments are those of ``wire.encode_request``.

        ``invoke_options`` are InvokeEndpoint's own, by its names: ``TargetModel``, ``TargetVariant``,
        ``InferenceId``, ``SessionId``, ``CustomAttributes`` and so on.

        Raises ``RequestEncodingError`` before anything is sent, ``InvocationError`` for what the endpoint
        or the model refuses, ``ResponseDecodingError`` for an answer that is none.
        """
        if self.model_config is not None:
            check_inputs(inputs, self.model_config, datatypes)
        request = encode_request(
            inputs,
            outputs=outputs,
            binary=binary,
            binary_output=binary_output,
            datatypes=datatypes,
            id=id,
            sequence=sequence,
            priority=priority,
            timeout_microseconds=timeout_microseconds,
            parameters=parameters,
        )
        return self._invoke(request, invoke_options)

    def infer_raw(self, data: NDArray[Any] | bytes, **invoke_options: Any) -> InferenceResult:
        """One inference of a model of one input, sent as its bytes alone: see ``wire.encode_raw_request``."""
        return self._invoke(encode_raw_request(data), invoke_options)

    def infer_many(
        self,
        requests: Iterable[Mapping[str, NDArray[Any]]],
        outputs: Sequence[str | RequestedOutput] | None = None,
        *,
        max_concurrency: int = 8,
        **options: Any,
    ) -> Iterator[InferenceResult]:
        """An inference for each of ``requests``, results in their order.

        At most ``max_concurrency`` are under way, and at most twice as many are read ahead of the results
        that were taken, so a generator of any length will do. ``options`` are those of ``infer``. The first
        error is raised in its place; what was not yet sent then never is.
        """
        return map_concurrently(
            lambda inputs: self.infer(inputs, outputs, **options), requests, max_concurrency=max_concurrency
        )

    def infer_stream(self, fields: Mapping[str, Any], **invoke_options: Any) -> Iterator[dict[str, Any]]:
        """The answers of a generating model, each when it arrives.

        ``fields`` is the flat JSON of Triton's generate extension: input names and parameters with scalars,
        lists or arrays. The endpoint must run with ``SAGEMAKER_TRITON_INFERENCE_TYPE=generate_stream``.
        Multi-model endpoints cannot stream: InvokeEndpointWithResponseStream has no ``TargetModel``.
        """
        if self.target_model or "TargetModel" in invoke_options:
            raise InvalidValueError(
                f"target_model: multi-model endpoints cannot stream, got "
                f'"{invoke_options.get("TargetModel", self.target_model)}"; use infer'
            )
        request = encode_generation(fields)
        invocation = Invocation(request.body, request.content_type, invoke_options)
        return read_generation(self.transport.stream(invocation))

    def infer_async(
        self,
        inputs: Mapping[str, NDArray[Any]],
        outputs: Sequence[str | RequestedOutput] | None = None,
        *,
        input_location: str,
        options: Mapping[str, Any] | None = None,
        **encoding: Any,
    ) -> PendingInference:
        """Start an inference on an asynchronous endpoint; ``.result()`` waits for it.

        The request is put below ``input_location``, ``s3://bucket/prefix/``. ``options`` are
        InvokeEndpointAsync's own, ``encoding`` the arguments of ``wire.encode_request``.
        """
        if not isinstance(self.transport, SageMakerTransport):
            raise InvalidValueError(
                f"transport: asynchronous inference needs SageMaker, got {type(self.transport).__name__}; "
                "make the client with TritonClient.for_endpoint"
            )
        if self.model_config is not None:
            check_inputs(inputs, self.model_config, encoding.get("datatypes"))
        request = encode_request(inputs, outputs=outputs, **encoding)
        invocation = Invocation(request.body, request.content_type, options or {})
        return start_inference(self.transport, invocation, input_location)

    def _invoke(self, request: EncodedRequest, options: Mapping[str, Any]) -> InferenceResult:
        invocation = Invocation(request.body, request.content_type, self._resolve(options))
        started = time.perf_counter()
        reply = self.transport.invoke(invocation)
        latency_seconds = time.perf_counter() - started
        result = decode_response(reply.body, reply.content_type)
        return replace(result, latency_seconds=latency_seconds, metadata=reply.metadata)

    def _resolve(self, options: Mapping[str, Any]) -> dict[str, Any]:
        target_model = options.get("TargetModel", self.target_model)
        if target_model is None:
            return dict(options)
        if not isinstance(target_model, str) or not target_model:
            raise InvalidValueError(
                f"target_model: must be the name of a model or archive, got {target_model!r}; name it"
            )
        if self.index is not None:
            target_model = self.index.target_model(target_model)
        return {**options, "TargetModel": target_model}
