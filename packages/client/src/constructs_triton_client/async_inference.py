"""Asynchronous inference: the request and the result are objects in S3.

Source: botocore sagemaker-runtime service model, "InvokeEndpointAsync".
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any

from constructs_triton_client.errors import build_invocation_error, read_model_message
from constructs_triton_client.transports.sagemaker_transport import SageMakerTransport
from constructs_triton_client.transports.transport import Invocation, Transport
from constructs_triton_client.wire import decode_response
from constructs_triton_client.wire.content_type import BINARY_CONTENT_TYPE, format_content_type
from constructs_triton_client.wire.json_text import measure_json
from constructs_triton_client.wire.responses import InferenceResult
from constructs_triton_core.errors import InvalidValueError, InvocationError
from constructs_triton_core.model_index import split_s3_uri

# S3's error codes for a key without an object and for a missing permission. To a caller without
# s3:ListBucket on the bucket, S3 returns the second in both cases. Source: AWS documentation,
# GetObject.
_NO_OBJECT = "NoSuchKey"
_DENIED = "AccessDenied"


class PendingInference:
    """An asynchronous inference whose result may not be ready yet.

    A receiver of the endpoint's SNS notifications can create a ``PendingInference`` from the
    locations in the notification, and call ``poll`` once.

    Args:
        transport: Transport of the endpoint; its session also reads S3.
        output_location: S3 URI where SageMaker writes the result.
        failure_location: S3 URI where SageMaker writes the error. Without it, ``poll`` does not
            notice a failure.
        inference_id: Id that SageMaker gave to the request.
    """

    def __init__(
        self,
        transport: SageMakerTransport,
        *,
        output_location: str,
        failure_location: str | None = None,
        inference_id: str | None = None,
    ) -> None:
        self.output_location = output_location
        self.failure_location = failure_location
        self.inference_id = inference_id
        self._transport = transport
        self._denial: InvocationError | None = None

    def poll(self) -> InferenceResult | None:
        """Return the result, or ``None`` if it is not ready.

        Returns ``None`` also when S3 denies access to the location: without ``s3:ListBucket`` S3
        denies access to objects that do not exist yet. ``result(timeout_seconds=0)`` reports the
        denial.

        Raises:
            InvocationError: the inference failed, or S3 cannot be read.
            ResponseDecodingError: the result is malformed.
        """
        if (output := self._read(self.output_location)) is not None:
            return _decode(*output)
        if self.failure_location and (failure := self._read(self.failure_location)) is not None:
            raise build_invocation_error(
                self._transport.endpoint_name,
                f"the asynchronous inference failed (see {self.failure_location})",
                code="AsyncInferenceFailure",
                model_message=read_model_message(failure[0]),
            )
        return None

    def result(
        self, *, timeout_seconds: float = 3600.0, poll_interval_seconds: float = 2.0
    ) -> InferenceResult:
        """Wait for the result.

        Args:
            timeout_seconds: How long to wait, in seconds; 0 means one attempt.
            poll_interval_seconds: Pause between two requests to S3, in seconds.

        Raises:
            InvocationError: the inference failed, S3 cannot be read, or there is no result in time.
            ResponseDecodingError: the result is malformed.
        """
        deadline = time.monotonic() + timeout_seconds
        while (result := self.poll()) is None:
            if time.monotonic() >= deadline:
                raise self._timed_out(timeout_seconds)
            time.sleep(min(poll_interval_seconds, max(0.0, deadline - time.monotonic())))
        return result

    def _read(self, location: str) -> tuple[bytes, str] | None:
        """Return content and content type of an object; ``None`` if it does not exist yet."""
        bucket, key = split_s3_uri(location)
        try:
            found = self._transport.call("get_object", service="s3", Bucket=bucket, Key=key)
        except InvocationError as error:
            response = getattr(error.__cause__, "response", None) or {}  # of botocore's ClientError
            code = response.get("Error", {}).get("Code")
            if code not in {_NO_OBJECT, _DENIED}:
                raise
            # Only the output counts: without access to failures, results can still be read.
            if location == self.output_location:
                self._denial = error if code == _DENIED else None
            return None
        return self._transport.read_body(found), str(found.get("ContentType", ""))

    def _timed_out(self, seconds: float) -> InvocationError:
        """Return the error about a result that has not come in time."""
        what = f"endpoint {self._transport.endpoint_name}: no result after {seconds} s"
        if (denial := self._denial) is None:
            return InvocationError(
                f"{what}, {self.output_location} does not exist; "
                "call result again, or raise timeout_seconds"
            )
        denial.args = (
            (
                f"{what}, got status {denial.status} for {self.output_location} "
                f"({denial.model_message}); grant s3:GetObject on it, and s3:ListBucket on its "
                "bucket (without s3:ListBucket, S3 returns the same "
                "status for a result that does not exist yet)"
            ),
        )
        return denial


def start_inference(
    transport: Transport, invocation: Invocation, input_location: str
) -> PendingInference:
    """Put the request into ``input_location``, ``s3://bucket/prefix/``, and start its inference."""
    if not isinstance(transport, SageMakerTransport):
        raise InvalidValueError(
            f"transport: asynchronous inference needs SageMaker, got {type(transport).__name__}; "
            "create the client with TritonClient.for_endpoint"
        )
    bucket, prefix = split_s3_uri(input_location)
    key = f"{prefix.rstrip('/')}/{os.urandom(16).hex()}"
    transport.call(
        "put_object",
        service="s3",
        Bucket=bucket,
        Key=key,
        Body=invocation.body,
        ContentType=invocation.content_type,
    )
    options: Mapping[str, Any] = invocation.options
    response = transport.call(
        "invoke_endpoint_async",
        EndpointName=transport.endpoint_name,
        InputLocation=f"s3://{bucket}/{key}",
        ContentType=invocation.content_type,
        **options,
    )
    if "OutputLocation" not in response:
        raise build_invocation_error(
            transport.endpoint_name,
            "the response has no OutputLocation",
            status=response.get("ResponseMetadata", {}).get("HTTPStatusCode"),
        )
    return PendingInference(
        transport,
        output_location=response["OutputLocation"],
        failure_location=response.get("FailureLocation"),
        inference_id=response.get("InferenceId"),
    )


def _decode(body: bytes, content_type: str) -> InferenceResult:
    """Decode an object from S3.

    SageMaker may not have kept its content type; then the length of the JSON is found by reading
    it.
    """
    if not content_type.lower().startswith(BINARY_CONTENT_TYPE):
        header_size = measure_json(body)
        content_type = format_content_type(header_size if header_size < len(body) else None)
    return decode_response(body, content_type)
