"""The client, which takes and returns NumPy arrays over any transport."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from constructs_triton_client.async_inference import PendingInference, start_inference
from constructs_triton_client.generated_events import GenerateStream
from constructs_triton_client.generation import encode_generation, stream_events
from constructs_triton_client.input_checks import (
    ModelConfigLike,
    check_call,
    check_config,
    check_inputs,
    check_raw,
)
from constructs_triton_client.observed_calls import ObservedCall, Observer, check_observe, observing
from constructs_triton_client.transports.http_transport import HttpTransport
from constructs_triton_client.transports.model_names import ModelNames
from constructs_triton_client.transports.sagemaker_transport import SageMakerTransport
from constructs_triton_client.transports.transport import (
    Invocation,
    Reply,
    Transport,
    checked_transport,
)
from constructs_triton_client.waking import check_wake_timeout, when_awake
from constructs_triton_client.wire import EncodedRequest, decode_response, encode_request
from constructs_triton_client.wire.requests import (
    Parameter,
    RequestedOutput,
    SequencePosition,
    encode_raw_request,
)
from constructs_triton_client.wire.responses import InferenceResult
from constructs_triton_core.concurrency import map_concurrently
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.model_index import ModelIndex

if TYPE_CHECKING:
    import boto3
    from botocore.config import Config

__all__ = ["TritonClient"]


class TritonClient:
    """Sends inference requests to one endpoint; safe to use from several threads.

    Args:
        transport: Carries the requests, for example an ``HttpTransport``.
        target_model: Default ``TargetModel`` of a multi-model endpoint: the name of a model, or of
            its archive. Default: none.
        index: Maps model names to archives. Default: the endpoint's own, which is read when a model
            is called by its name for the first time; see ``archive_of``.
        model_config: ``ModelConfig`` of ``triton_model_check.model_config``, Triton's protobuf
            message, or an object with the same attributes. Inputs are then checked before they are
            sent. Default: no check.
        inference_component: Component that answers, on an endpoint that has components. Default:
            none.
        wake_timeout: Seconds during which the client repeats a request to a component without
            copies. The first request starts a copy; with an instance and a container this takes 5
            to 10 minutes.
        observe: Receives an ``ObservedCall`` after each call, such as ``EmbeddedMetrics()``.
            Default: none.

    Raises:
        InvalidValueError: ``inference_component`` and ``target_model`` are combined, or
            ``wake_timeout`` is negative, or ``model_config``, ``transport`` or ``observe`` is of
            another type.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        target_model: str | None = None,
        index: ModelIndex | None = None,
        model_config: ModelConfigLike | None = None,
        inference_component: str | None = None,
        wake_timeout: float = 0,
        observe: Observer | None = None,
    ) -> None:
        check_wake_timeout(wake_timeout)
        check_config(model_config)
        check_observe(observe)
        if inference_component is not None and target_model is not None:
            raise InvalidValueError(
                f'target_model: a component contains one model, got "{target_model}" with '
                f'inference_component "{inference_component}"; remove one of them'
            )
        self.transport = checked_transport(transport)
        self.inference_component = inference_component
        self.wake_timeout = wake_timeout
        self.observe = observe
        self.target_model = target_model
        self._names = ModelNames(transport, index)
        self.model_config = model_config

    @property
    def index(self) -> ModelIndex | None:
        """Maps model names to archives; ``None`` while no index was given or needed."""
        return self._names.index

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
        inference_component: str | None = None,
        wake_timeout: float = 0,
        observe: Observer | None = None,
        config: Config | None = None,
    ) -> TritonClient:
        """Create a client of a SageMaker endpoint.

        No request is sent, except that an ``index`` given as a URI is read. The arguments that are
        not listed are those of ``TritonClient``.

        Args:
            name: Name of the endpoint.
            session: boto3 session with credentials. Default: a new one, which reads the
                environment.
            endpoint_url: Address of the runtime API, for example that of ``constructs-triton local
                up``. Default: AWS's.
            region_name: Region of the endpoint. Default: that of the session.
            index: Maps model names to archives, or the S3 URI of its ``index.json``. Default: that
                of the endpoint. The client then needs permission to describe the endpoint; see
                ``archive_of``.
            config: botocore's configuration. Default: ``default_config()``, with a read timeout of
                70 s and up to 4 attempts.

        Raises:
            InvalidValueError: ``endpoint_url`` or the index is malformed.
            InvocationError: the index cannot be read.
        """
        transport = SageMakerTransport(
            name, session=session, endpoint_url=endpoint_url, region_name=region_name, config=config
        )
        if isinstance(index, str):
            index = transport.read_index(index)
        return cls(
            transport,
            target_model=target_model,
            index=index,
            model_config=model_config,
            inference_component=inference_component,
            wake_timeout=wake_timeout,
            observe=observe,
        )

    def archive_of(self, name: str) -> str:
        """Return the archive of a model, which is the ``TargetModel`` of a request with boto3.

        Without an ``index``, the client reads that of the endpoint at the first name: it calls
        DescribeEndpoint, DescribeEndpointConfig and DescribeModel, and reads ``index.json`` from
        S3, or asks the local run. Transports other than SageMaker's have no index, so the name is
        returned unchanged.

        Args:
            name: Name of a model, or of an archive (``.tar.gz``), which is returned unchanged.

        Raises:
            InvalidValueError: the endpoint has no model of this name, or no index.
            InvocationError: the index cannot be read.
        """
        return self._names.archive_of(name)

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
        """Send one inference request; the arguments are those of ``wire.encode_request``.

        Args:
            inputs: Input arrays by name, with the batch axis first if the model has batching.
            outputs: Outputs to request, by name or as a ``RequestedOutput``. Default: all.
            binary: Whether inputs are sent in binary; otherwise they are in JSON.
            binary_output: The same for outputs. Default: the value of ``binary``.
            datatypes: ``{"X": "BF16"}`` declares a ``uint16`` input as bit patterns of bfloat16.
                Default: from the dtypes.
            id: Id that the response repeats. Default: none.
            sequence: Position in a sequence, for a stateful model. Default: no sequence.
            priority: Priority level in the dynamic batcher: 1 is the highest, 0 the model's default
                level.
            timeout_microseconds: Longest time in the dynamic batcher's queue. Default: the model's
                timeout.
            parameters: Further parameters of the request, which the model can read.
            **invoke_options: Parameters of InvokeEndpoint, such as ``TargetModel``,
                ``TargetVariant``, ``InferenceId``, ``SessionId`` and ``CustomAttributes``.

        Raises:
            RequestEncodingError: the inputs cannot be sent; no request was sent.
            InvalidValueError: an option or a model name is unknown; no request was sent.
            InvocationError: the endpoint or the model returned an error.
            ResponseDecodingError: the response is malformed.
        """
        check_call(invoke_options, self.infer)
        check_inputs(inputs, self._config_of_call(invoke_options), datatypes)
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
        """Send the bytes of a single input without JSON; errors as ``infer``.

        Args:
            data: The values of the model's only input, or their bytes in row-major, little-endian
                order. At most one dimension of the input may be variable.
            **invoke_options: Parameters of InvokeEndpoint, as in ``infer``.
        """
        check_call(invoke_options, self.infer_raw)
        check_raw(data, self._config_of_call(invoke_options))
        return self._invoke(encode_raw_request(data), invoke_options)

    def infer_many(
        self,
        requests: Iterable[Mapping[str, NDArray[Any]]],
        outputs: Sequence[str | RequestedOutput] | None = None,
        *,
        max_concurrency: int = 8,
        **options: Any,
    ) -> Iterator[InferenceResult]:
        """Send many requests concurrently and yield the results in order.

        After the first error, requests that are not yet sent are dropped.

        Args:
            requests: Inputs of each request. At most twice ``max_concurrency`` are read ahead of
                the results that the caller has taken, so a generator of any length is fine.
            outputs: Outputs to request, the same for all. Default: all.
            max_concurrency: Number of requests that run at a time, each on its own thread.
            **options: Other arguments of ``infer``, the same for all requests.

        Raises:
            InvalidValueError: ``max_concurrency`` is below 1.
        """
        check_call(options, self.infer_many, self.infer)
        return map_concurrently(
            lambda inputs: self.infer(inputs, outputs, **options),
            requests,
            max_concurrency=max_concurrency,
        )

    def infer_stream(self, fields: Mapping[str, Any], **invoke_options: Any) -> GenerateStream:
        """Send a generate request and return the events of its response as they arrive.

        Iterate with ``for`` or ``async for``; the request is sent for the first event. The endpoint
        must run with ``inference_type="generate_stream"``. One with ``"generate"`` gives one event.

        Args:
            fields: Flat JSON of Triton's generate extension: input names and parameters with
                scalars, lists or arrays. Nothing is added: Triton hands an ``id`` to the model as a
                parameter, which some models do not accept.
            **invoke_options: Parameters of InvokeEndpointWithResponseStream.

        Raises:
            InvalidValueError: a target model is given; InvokeEndpointWithResponseStream has no
                ``TargetModel``, so multi-model endpoints cannot stream.
            RequestEncodingError: a field has no JSON form.
            InvocationError: the endpoint or the model returned an error, also in the middle of a
                stream.
            ResponseDecodingError: an event is malformed.
        """
        check_call(invoke_options, self.infer_stream)
        if self.target_model or "TargetModel" in invoke_options:
            raise InvalidValueError(
                f"target_model: multi-model endpoints cannot stream, got "
                f'"{invoke_options.get("TargetModel", self.target_model)}"; use infer instead'
            )
        request = encode_generation(fields)
        invocation = Invocation(
            request.body, request.content_type, self._with_component(invoke_options)
        )
        call = self._call(invocation.options)
        return GenerateStream(
            stream_events(self.transport, invocation, self.wake_timeout, self.observe, call)
        )

    def infer_async(
        self,
        inputs: Mapping[str, NDArray[Any]],
        outputs: Sequence[str | RequestedOutput] | None = None,
        *,
        input_location: str,
        options: Mapping[str, Any] | None = None,
        **encoding: Any,
    ) -> PendingInference:
        """Start an inference on an asynchronous endpoint; ``result()`` of what it returns waits for
        it.

        Args:
            inputs: Input arrays by name, with the batch axis first if the model has batching.
            outputs: Outputs to request, by name or as a ``RequestedOutput``. Default: all.
            input_location: S3 prefix for the request, ``s3://bucket/prefix/``. Each request becomes
                a new object in it.
            options: Parameters of InvokeEndpointAsync, such as ``InferenceId``. Default: none.
            **encoding: Further arguments of ``wire.encode_request``.

        Raises:
            RequestEncodingError: the inputs cannot be sent; no request was sent.
            InvalidValueError: the transport is not SageMaker's, or ``input_location`` is malformed.
            InvocationError: S3 or the endpoint returned an error.
        """
        if self.inference_component is not None:
            raise InvalidValueError(
                "inference_component: InvokeEndpointAsync does not support components, got "
                f'"{self.inference_component}"; use infer, or an endpoint with async_inference'
            )
        check_inputs(inputs, self.model_config, encoding.get("datatypes"))
        request = encode_request(inputs, outputs=outputs, **encoding)
        invocation = Invocation(request.body, request.content_type, options or {})
        return start_inference(self.transport, invocation, input_location)

    def _config_of_call(self, options: Mapping[str, Any]) -> ModelConfigLike | None:
        """The configuration for a call; ``None`` if the call names another model."""
        is_other = options.get("TargetModel", self.target_model) != self.target_model
        return None if is_other else self.model_config

    def _invoke(self, request: EncodedRequest, options: Mapping[str, Any]) -> InferenceResult:
        """Send an encoded request, and decode its response."""
        invocation = Invocation(request.body, request.content_type, self._resolve(options))
        call = self._call(options)
        with observing(self.observe, call):
            reply, latency_seconds = when_awake(
                lambda: self._send(invocation), self.wake_timeout, call
            )
            call.retries += reply.metadata.get("RetryAttempts", 0)
            result = decode_response(reply.body, reply.content_type)
        return replace(result, latency_seconds=latency_seconds, metadata=reply.metadata)

    def _send(self, invocation: Invocation) -> tuple[Reply, float]:
        """Return the reply to one attempt, and how long it took,
        without the import of boto3 or urllib3.
        """
        if isinstance(self.transport, HttpTransport | SageMakerTransport):
            self.transport.prepare()
        started = time.perf_counter()
        reply = self.transport.invoke(invocation)
        return reply, time.perf_counter() - started

    def _call(self, options: Mapping[str, Any]) -> ObservedCall:
        component = options.get("InferenceComponentName", self.inference_component)
        model = component or options.get("TargetModel", self.target_model) or ""
        return ObservedCall(getattr(self.transport, "endpoint_name", ""), model)

    def _with_component(self, options: Mapping[str, Any]) -> dict[str, Any]:
        name = self.inference_component
        return dict(options) if name is None else {"InferenceComponentName": name, **options}

    def _resolve(self, given: Mapping[str, Any]) -> dict[str, Any]:
        options = self._with_component(given)
        target_model = options.get("TargetModel", self.target_model)
        if target_model is None:
            return options
        return {**options, "TargetModel": self.archive_of(target_model)}
