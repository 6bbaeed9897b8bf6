"""Requests of CloudFormation, a server for the responses, and a real S3 API on loopback."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import boto3
import moto.s3.models
import pytest
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders

from constructs_triton_functions.model_sync import handler, placement

SOURCE, DESTINATION = "cdk-assets", "models-bucket"
Faults = Callable[[str, int, int], list[str]]
PART = 5 * 2**14
"""The size of the parts in most tests, above the limit of :func:`small_parts`."""


class Context:
    """The context that Lambda passes with the event."""

    log_stream_name = "2026/11/21/[$LATEST]0123"
    invoked_function_arn = "arn:aws:lambda:us-east-1:123456789012:function:sync"

    def __init__(self, seconds: float = 900) -> None:
        self._seconds = seconds

    def get_remaining_time_in_millis(self) -> int:
        return int(self._seconds * 1000)


class ShortRun(Context):
    """A context that reports little remaining time after a number of calls."""

    def __init__(self, calls: int) -> None:
        super().__init__()
        self._calls = calls

    def get_remaining_time_in_millis(self) -> int:
        self._calls -= 1
        return 900_000 if self._calls > 0 else 60_000


class CloudFormation:
    """Receives the responses that the function sends to its ``ResponseURL``."""

    def __init__(self) -> None:
        self.responses: list[dict[str, Any]] = []
        self.refusals = 0
        outer = self

        class Receiver(BaseHTTPRequestHandler):
            def do_PUT(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if outer.refusals > 0:
                    outer.refusals -= 1
                    self.send_error(503)
                    return
                outer.responses.append(json.loads(body))
                outer.sizes.append(len(body))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *args: object) -> None:
                pass

        self.sizes: list[int] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/response"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def response(self) -> dict[str, Any]:
        """The only response: a request gets exactly one."""
        assert len(self.responses) == 1
        return self.responses[0]


@pytest.fixture
def cloudformation() -> Iterator[CloudFormation]:
    receiver = CloudFormation()
    yield receiver
    receiver.close()


@pytest.fixture
def s3(aws_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """S3 with two empty buckets; the function finds it by the same variable."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", aws_url)
    client = boto3.client("s3")
    for bucket in (SOURCE, DESTINATION):
        client.create_bucket(Bucket=bucket)
    yield client
    for bucket in (SOURCE, DESTINATION):
        for item in client.list_objects_v2(Bucket=bucket).get("Contents", ()):
            client.delete_object(Bucket=bucket, Key=item["Key"])
        client.delete_bucket(Bucket=bucket)
    client.close()


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Archives and parts count as large from a size at which the tests are fast;
    S3 itself accepts 5 MiB.
    """
    monkeypatch.setattr(moto.s3.models, "S3_UPLOAD_PART_MIN_SIZE", PART)
    monkeypatch.setattr(placement, "MULTIPART_THRESHOLD_BYTES", PART)
    monkeypatch.setattr(placement, "MULTIPART_CHUNK_BYTES", PART)


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> Faults:
    """``faults(operation, status, times)`` makes S3 return that status for that many calls."""
    make_client = handler._client
    plan: dict[str, list[int]] = {}
    seen: list[str] = []

    def intercept(request: Any, event_name: str, **_: object) -> AWSResponse | None:
        operation = event_name.rsplit(".", 1)[1]
        seen.append(operation)
        remaining = plan.get(operation)
        if not remaining:
            return None
        status = remaining.pop()
        body = f"<Error><Code>{status}</Code><Message>injected</Message></Error>".encode()
        sent = b"" if request.method == "HEAD" else body
        return AWSResponse(
            request.url, status, HTTPHeaders(), SimpleNamespace(stream=lambda: iter([sent]))
        )

    def make() -> Any:
        client = make_client()
        client.meta.events.register("before-send.s3", intercept)
        return client

    def inject(operation: str, status: int, times: int) -> list[str]:
        plan[operation] = [status] * times
        return seen

    monkeypatch.setattr(handler, "_client", make)
    return inject


def put_archive(s3: Any, digest: str, content: bytes) -> dict[str, Any]:
    key = f"{digest}.tar.gz"
    s3.put_object(Bucket=SOURCE, Key=key, Body=content)
    name = digest[:4]
    return {
        "Name": name,
        "SourceKey": key,
        "TargetModel": f"{name}.tar.gz",
        "SizeBytes": len(content),
    }


def make_event(
    s3: Any,
    cloudformation: CloudFormation,
    request_type: str,
    archives: Sequence[Mapping[str, Any]] = (),
    **properties: Any,
) -> dict[str, Any]:
    """A request of CloudFormation; the list of archives is in the asset bucket."""
    manifest = json.dumps({"version": 1, "archives": list(archives)}).encode()
    digest = hashlib.sha256(manifest).hexdigest()
    s3.put_object(Bucket=SOURCE, Key=f"{digest}.json", Body=manifest)
    return {
        "RequestType": request_type,
        "ResponseURL": cloudformation.url,
        "StackId": "arn:aws:cloudformation:us-east-1:123456789012:stack/s/1",
        "RequestId": uuid4().hex,
        "LogicalResourceId": "ModelsSync",
        "ResourceProperties": {
            "SourceBucket": SOURCE,
            "ManifestKey": f"{digest}.json",
            "ManifestDigest": digest,
            "DestinationBucket": DESTINATION,
            "DestinationPrefix": "models/",
            **properties,
        },
    }


def index(s3: Any) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(content(s3, "models/index.json"))
    return value


def keys(s3: Any) -> list[str]:
    """The keys of the archives in the bucket of the models."""
    found = [item["Key"] for item in s3.list_objects_v2(Bucket=DESTINATION).get("Contents", ())]
    return [key for key in found if not key.endswith("/index.json")]


def content(s3: Any, key: str) -> bytes:
    body: bytes = s3.get_object(Bucket=DESTINATION, Key=key)["Body"].read()
    return body
