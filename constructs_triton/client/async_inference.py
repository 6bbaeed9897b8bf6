"""Asynchronous inference: the request lies in S3, and so will the answer.

Source: botocore sagemaker-runtime service model, "InvokeEndpointAsync".
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any

from constructs_triton.client.invocation_errors import build_invocation_error, read_model_message
from constructs_triton.client.model_index import split_s3_uri
from constructs_triton.client.sagemaker_transport import SageMakerTransport
from constructs_triton.client.transport import Invocation
from constructs_triton.errors import InvocationError
from constructs_triton.wire import BINARY_CONTENT_TYPE, InferenceResult, decode_response, format_content_type
from constructs_triton.wire.json_text import measure_json

__all__ = ["PendingInference", "start_inference"]

#: S3's names for "there is nothing at this key" and for "you may not read it". Without s3:ListBucket on the
#: bucket it says the second in both cases. Source: AWS documentation, GetObject.
_ABSENT, _DENIED = "NoSuchKey", "AccessDenied"


class PendingInference:
    """An inference under way; ``output_location`` and ``failure_location`` are S3 URIs.

    Whoever is told of the end by the endpoint's SNS topic can make one from the notification's locations
    and call ``poll`` once.
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
        self._refusal: InvocationError | None = None

    def poll(self) -> InferenceResult | None:
        """The result, or ``None`` while there is none; a failure raises ``InvocationError``.

        ``None`` also where S3 refuses to read the location, since it refuses so too while nothing is there
        and the credentials lack ``s3:ListBucket``: ``result(timeout_seconds=0)`` tells what S3 said.
        """
        if (answer := self._read(self.output_location)) is not None:
            return _decode(*answer)
        if self.failure_location and (failure := self._read(self.failure_location)) is not None:
            raise build_invocation_error(
                self._transport.endpoint_name,
                f"the asynchronous inference failed, see {self.failure_location}",
                code="AsyncInferenceFailure",
                model_message=read_model_message(failure[0]),
            )
        return None

    def result(
        self, *, timeout_seconds: float = 3600.0, poll_interval_seconds: float = 2.0
    ) -> InferenceResult:
        """Wait for the result; ``InvocationError`` when it failed, cannot be read or is not there in time."""
        deadline = time.monotonic() + timeout_seconds
        while (result := self.poll()) is None:
            if time.monotonic() >= deadline:
                raise self._timed_out(timeout_seconds)
            time.sleep(min(poll_interval_seconds, max(0.0, deadline - time.monotonic())))
        return result

    def _read(self, location: str) -> tuple[bytes, str] | None:
        bucket, key = split_s3_uri(location)
        try:
            found = self._transport.call("get_object", service="s3", Bucket=bucket, Key=key)
        except InvocationError as error:
            code = _service_code(error)
            if code not in {_ABSENT, _DENIED}:
                raise
            # Only the output counts: an answer may be there though the place of failures is closed.
            if location == self.output_location:
                self._refusal = error if code == _DENIED else None
            return None
        return self._transport.read_body(found["Body"]), str(found.get("ContentType", ""))

    def _timed_out(self, seconds: float) -> InvocationError:
        what = f"endpoint {self._transport.endpoint_name}: no answer after {seconds} s, got"
        if (refusal := self._refusal) is None:
            return InvocationError(
                f"{what} nothing at {self.output_location}; call result again, or raise timeout_seconds"
            )
        return InvocationError(
            f"{what} status {refusal.status} at {self.output_location} ({refusal.model_message}); either "
            "there is nothing yet, so call result again, or it may not be read, so grant s3:GetObject there; "
            "with s3:ListBucket on the bucket S3 tells the two apart",
            status=refusal.status,
            model_message=refusal.model_message,
            request_id=refusal.request_id,
        )


def start_inference(
    transport: SageMakerTransport, invocation: Invocation, input_location: str
) -> PendingInference:
    """Put the request below ``input_location``, ``s3://bucket/prefix/``, and ask for its inference."""
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
    answer = transport.call(
        "invoke_endpoint_async",
        EndpointName=transport.endpoint_name,
        InputLocation=f"s3://{bucket}/{key}",
        ContentType=invocation.content_type,
        **options,
    )
    return PendingInference(
        transport,
        output_location=answer["OutputLocation"],
        failure_location=answer.get("FailureLocation"),
        inference_id=answer.get("InferenceId"),
    )


def _service_code(error: InvocationError) -> str:
    """S3's own name of the error, which botocore's exception below ours carries."""
    response: Mapping[str, Any] = getattr(error.__cause__, "response", {})
    return str(response.get("Error", {}).get("Code", ""))


def _decode(body: bytes, content_type: str) -> InferenceResult:
    """Decode an object whose content type SageMaker may not have kept: then the JSON in front is measured."""
    if not content_type.lower().startswith(BINARY_CONTENT_TYPE):
        header_size = measure_json(body)
        content_type = format_content_type(header_size if header_size < len(body) else None)
    return decode_response(body, content_type)
