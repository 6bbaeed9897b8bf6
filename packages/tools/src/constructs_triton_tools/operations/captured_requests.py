"""Reads the files of SageMaker's data capture: requests and responses of an endpoint, as arrays.

A file has one JSON object per line. ``captureData.endpointInput`` and ``endpointOutput`` contain
the content type and the body, whose ``encoding`` is CSV, JSON or BASE64. SageMaker writes Triton's
binary requests in BASE64. Source: SageMaker developer guide, "Capture data from real-time
endpoint".

Finds the files of SageMaker's data capture, in S3 or in a folder, and reads their lines.

The keys end in ``<endpoint>/<variant>/yyyy/mm/dd/hh/<name>.jsonl``.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from constructs_triton_client.wire.content_type import BINARY_CONTENT_TYPE, format_content_type
from constructs_triton_client.wire.responses import InferenceResult, decode_response
from constructs_triton_client.wire.server_side import InferenceRequest, decode_request
from constructs_triton_core.aws_reader import AwsReader
from constructs_triton_core.bounded_json import parse_bounded_json
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.untrusted.regular_files import open_regular

if TYPE_CHECKING:
    import boto3

_SUFFIX = ".jsonl"
_CHUNK_BYTES = 1 << 20
#: A line has a request and a response of at most 25 MiB each, in BASE64.
_MOST_BYTES = 80 << 20
#: Folders of a key between the variant and the file: year, month, day and hour.
_TIME_FOLDERS = 4
Read = Callable[[int], bytes]


@dataclass(frozen=True, slots=True)
class CapturedBody:
    """The body of a request or a response.

    Args:
        content: The bytes.
        content_type: ``Content-Type``, for Triton's binary requests with the size of the JSON.
    """

    content: bytes
    content_type: str


@dataclass(frozen=True, slots=True)
class CapturedRequest:
    """One request of an endpoint, with its response.

    Args:
        place: File and line, for messages.
        event_id: SageMaker's id of the request.
        time: Time of the inference; ``None`` if the file has none.
        inference_id: ``InferenceId`` of the caller; ``None`` if none was sent.
        request: The request; ``None`` if only responses are captured.
        response: The response; ``None`` if only requests are captured.
    """

    place: str
    event_id: str
    time: datetime | None
    inference_id: str | None
    request: CapturedBody | None
    response: CapturedBody | None

    def decode_request(self) -> InferenceRequest:
        """Return the inputs as arrays.

        Raises:
            InvalidValueError: the request was not captured.
            ResponseDecodingError: it is not an inference request.
        """
        body = _expect(self.request, self.place, "request")
        return decode_request(body.content, body.content_type)

    def decode_response(self) -> InferenceResult:
        """Return the outputs as arrays.

        Raises:
            InvalidValueError: the response was not captured.
            ResponseDecodingError: it is not an inference response, or it is an error of the model.
        """
        body = _expect(self.response, self.place, "response")
        return decode_response(body.content, body.content_type)


def read_capture(
    lines: Iterable[bytes | str],
    name: str = "capture",
    *,
    left_out: Callable[[str], None] | None = None,
) -> Iterator[CapturedRequest]:
    """Read the lines of a capture file, such as an open file.

    Args:
        lines: JSON, one object per line. Empty lines are ignored, and so is a last line that
            SageMaker has not written to its end.
        name: Name of the file in messages.
        left_out: Receives the place of a last line that is not complete. Default: it is ignored.

    Raises:
        InvalidValueError: a line is not one of a capture file; the message names file and line.
    """
    fault: InvalidValueError | None = None
    for number, line in enumerate(lines, 1):
        if fault is not None:
            raise fault
        if not line.strip():
            continue
        place = f"{name}:{number}"
        try:
            yield _read(place, parse_bounded_json(line))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            fault = InvalidValueError(
                f"{place}: must be a line of SageMaker's data capture ({error!r:.200}); give a "
                "file that an endpoint with data_capture has written"
            )
            if line.rstrip()[-1:] in ("}", b"}"):
                raise fault from None
    if fault is not None and left_out is not None:
        left_out(place)


def _read(place: str, document: Mapping[str, Any]) -> CapturedRequest:
    data = document["captureData"]
    event = document.get("eventMetadata", {})
    time = event.get("inferenceTime")
    return CapturedRequest(
        place=place,
        event_id=str(event.get("eventId", "")),
        time=None if time is None else datetime.fromisoformat(time),
        inference_id=event.get("inferenceId"),
        request=_body(data.get("endpointInput")),
        response=_body(data.get("endpointOutput")),
    )


def _body(found: Mapping[str, Any] | None) -> CapturedBody | None:
    if found is None:
        return None
    content_type = str(found.get("observedContentType", ""))
    if found["encoding"] != "BASE64":
        return CapturedBody(found["data"].encode(), content_type)
    try:
        content = base64.b64decode(found["data"], validate=True)
    except binascii.Error as error:
        raise ValueError(f"data is not BASE64: {error}") from None
    return CapturedBody(content, _with_header_size(content, content_type))


def _with_header_size(content: bytes, content_type: str) -> str:
    """Complete a content type without its parameter:
    the JSON at the start of the body ends by itself.
    """
    if content_type.strip().lower() != BINARY_CONTENT_TYPE:
        return content_type
    # In Latin-1 a character is a byte, so the end of the JSON is that of its bytes.
    _, size = json.JSONDecoder().raw_decode(content.decode("latin-1"))
    return format_content_type(size)


def _expect(body: CapturedBody | None, place: str, what: str) -> CapturedBody:
    if body is None:
        raise InvalidValueError(
            f'{place}: has no {what}; capture both, with capture_modes=("Input", '
            '"Output") of DataCapture'
        )
    return body


def read_capture_files(
    source: str,
    open_session: Callable[[], boto3.Session],
    *,
    variant: str | None = None,
    since: datetime | None = None,
    left_out: Callable[[str], None] | None = None,
) -> Iterator[CapturedRequest]:
    """Read all captured requests, in the order of the files' names."""
    if source.startswith("s3://"):
        files = _objects(AwsReader(open_session()), source, since)
    else:
        files = _local_files(Path(source))
    found = False
    for name, read in files:
        if variant is None or _variant(name) == variant:
            found = True
            for request in read_capture(_lines(read, name), name, left_out=left_out):
                if since is None or request.time is None or request.time >= since:
                    yield request
    if not found:
        of_variant = f" of variant {variant}" if variant else ""
        raise InvalidValueError(
            f"{source}: has no {_SUFFIX} file{of_variant}; give the prefix of data_capture, "
            "s3://bucket/prefix, or a folder with a copy of it"
        )


def _variant(name: str) -> str:
    folders = PurePosixPath(name).parts[: -_TIME_FOLDERS - 1]
    return folders[-1] if folders else ""


def _objects(reader: AwsReader, source: str, since: datetime | None) -> Iterator[tuple[str, Read]]:
    bucket, _, prefix = source.removeprefix("s3://").partition("/")
    for listed in reader.members("s3", "list_objects_v2", "Contents", Bucket=bucket, Prefix=prefix):
        # An object is written after its requests, so an older one has none of those that are asked
        # for.
        if listed["Key"].endswith(_SUFFIX) and (since is None or listed["LastModified"] >= since):
            body = reader.require("s3", "get_object", Bucket=bucket, Key=listed["Key"])["Body"]
            yield f"s3://{bucket}/{listed['Key']}", body.read


def _local_files(path: Path) -> Iterator[tuple[str, Read]]:
    files = sorted(path.rglob(f"*{_SUFFIX}")) if path.is_dir() else [path]
    for file in files:
        try:
            with open_regular(file) as stream:
                yield file.as_posix(), stream.read
        except OSError as error:
            raise InvalidValueError(
                f"{file}: cannot be read ({error.strerror}); give a path, or the "
                "s3://bucket/prefix that `constructs-triton status` prints"
            ) from None


def _lines(read: Read, name: str) -> Iterator[bytes]:
    rest = b""
    while chunk := read(_CHUNK_BYTES):
        *lines, rest = (rest + chunk).split(b"\n")
        yield from lines
        if len(rest) > _MOST_BYTES:
            raise InvalidValueError(
                f"{name}: a line must have at most {_MOST_BYTES >> 20} MiB; give a file of "
                "SageMaker's data capture"
            )
    if rest:
        yield rest
