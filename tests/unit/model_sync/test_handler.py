"""The deploy-time function against a real S3 API on loopback, answering a real HTTP server."""

from __future__ import annotations

import ast
import json
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import boto3
import pytest
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders
from moto.server import ThreadedMotoServer

from constructs_triton.model_sync import HANDLER, HANDLER_DIRECTORY, handler

SOURCE, DESTINATION = "cdk-assets", "models-bucket"


class Context:
    """What Lambda hands over beside the event."""

    log_stream_name = "2026/11/21/[$LATEST]0123"

    def __init__(self, seconds: float = 60) -> None:
        self._seconds = seconds

    def get_remaining_time_in_millis(self) -> int:
        return int(self._seconds * 1000)


class CloudFormation:
    """Takes the answers that the function puts to its ``ResponseURL``."""

    def __init__(self) -> None:
        self.answers: list[dict[str, Any]] = []
        self.refusals = 0
        outer = self

        class Receiver(BaseHTTPRequestHandler):
            def do_PUT(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if outer.refusals > 0:
                    outer.refusals -= 1
                    self.send_error(503)
                    return
                outer.answers.append(json.loads(body))
                outer.sizes.append(len(body))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *args: object) -> None:
                pass

        self.sizes: list[int] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/answer"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def answer(self) -> dict[str, Any]:
        """The only answer: one request is answered once."""
        assert len(self.answers) == 1
        return self.answers[0]


@pytest.fixture
def cloudformation() -> Iterator[CloudFormation]:
    receiver = CloudFormation()
    yield receiver
    receiver.close()


@pytest.fixture(scope="module")
def s3_url() -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def s3(s3_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Both buckets, empty; the function finds S3 by the same variable."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", s3_url)
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
def faults(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, int, int], list[str]]:
    """``faults(operation, status, times)`` lets S3 answer that many calls with that status."""
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
        return AWSResponse(request.url, status, HTTPHeaders(), SimpleNamespace(stream=lambda: iter([sent])))

    def make() -> Any:
        client = make_client()
        client.meta.events.register("before-send.s3", intercept)
        return client

    def inject(operation: str, status: int, times: int) -> list[str]:
        plan[operation] = [status] * times
        return seen

    monkeypatch.setattr(handler, "_client", make)
    return inject


def put_archive(s3: Any, digest: str, content: bytes) -> dict[str, str]:
    key = f"{digest}.tar.gz"
    s3.put_object(Bucket=SOURCE, Key=key, Body=content)
    return {"SourceKey": key, "TargetModel": f"{digest[:4]}.tar.gz", "SizeBytes": str(len(content))}


def make_event(cloudformation: CloudFormation, kind: str, **properties: Any) -> dict[str, Any]:
    return {
        "RequestType": kind,
        "ResponseURL": cloudformation.url,
        "StackId": "arn:aws:cloudformation:us-east-1:123456789012:stack/s/1",
        "RequestId": uuid4().hex,
        "LogicalResourceId": "ModelsSync",
        "ResourceProperties": {
            "SourceBucket": SOURCE,
            "DestinationBucket": DESTINATION,
            "DestinationPrefix": "models/",
            "Archives": [],
            **properties,
        },
    }


def keys(s3: Any) -> list[str]:
    return [item["Key"] for item in s3.list_objects_v2(Bucket=DESTINATION).get("Contents", ())]


def content(s3: Any, key: str) -> bytes:
    body: bytes = s3.get_object(Bucket=DESTINATION, Key=key)["Body"].read()
    return body


def test_create_places_every_archive(s3: Any, cloudformation: CloudFormation) -> None:
    """A create copies each archive to its target name below the prefix, and answers with the prefix."""
    archives = [put_archive(s3, "aaaa1", b"first"), put_archive(s3, "bbbb2", b"second")]
    handler.handler(make_event(cloudformation, "Create", Archives=archives), Context())
    assert {key: content(s3, key) for key in keys(s3)} == {
        "models/aaaa.tar.gz": b"first",
        "models/bbbb.tar.gz": b"second",
    }
    assert cloudformation.answer["Status"] == "SUCCESS"
    assert cloudformation.answer["PhysicalResourceId"] == f"s3://{DESTINATION}/models/"


def test_repeated_run_copies_nothing_again(
    s3: Any, cloudformation: CloudFormation, faults: Callable[[str, int, int], list[str]]
) -> None:
    """What is already in place, by content and size, is left alone, so that a broken run can be resumed."""
    seen = faults("none", 0, 0)
    first, second = put_archive(s3, "aaaa1", b"first"), put_archive(s3, "bbbb2", b"second")
    handler.handler(make_event(cloudformation, "Create", Archives=[first]), Context())
    handler.handler(make_event(cloudformation, "Update", Archives=[first, second]), Context())
    assert seen.count("CopyObject") == 2


def test_changed_content_replaces_the_object(s3: Any, cloudformation: CloudFormation) -> None:
    """The same name with other content of the same length is copied anew."""
    old, new = put_archive(s3, "aaaa1", b"11111"), put_archive(s3, "aaaa2", b"22222")
    handler.handler(make_event(cloudformation, "Create", Archives=[old]), Context())
    handler.handler(make_event(cloudformation, "Update", Archives=[new]), Context())
    assert content(s3, "models/aaaa.tar.gz") == b"22222"


def test_update_keeps_what_is_no_longer_listed(s3: Any, cloudformation: CloudFormation) -> None:
    """A running endpoint may still load an archive that the new template has dropped."""
    first, second = put_archive(s3, "aaaa1", b"first"), put_archive(s3, "bbbb2", b"second")
    handler.handler(make_event(cloudformation, "Create", Archives=[first]), Context())
    handler.handler(make_event(cloudformation, "Update", Archives=[second]), Context())
    assert keys(s3) == ["models/aaaa.tar.gz", "models/bbbb.tar.gz"]


def test_large_archive_is_copied_in_parts(
    s3: Any, cloudformation: CloudFormation, faults: Callable[[str, int, int], list[str]], monkeypatch: Any
) -> None:
    """Above CopyObject's limit the parts are copied inside S3, and the result is whole."""
    seen = faults("none", 0, 0)
    monkeypatch.setattr(handler, "MULTIPART_THRESHOLD_BYTES", 6 * 1024**2)
    monkeypatch.setattr(handler, "MULTIPART_CHUNK_BYTES", 5 * 1024**2)
    weights = bytes(range(256)) * 4 * 1024 * 11
    archive = put_archive(s3, "cccc1", weights)
    for _ in range(2):
        handler.handler(make_event(cloudformation, "Create", Archives=[archive]), Context())
    assert content(s3, "models/cccc.tar.gz") == weights
    assert (seen.count("UploadPartCopy"), seen.count("CopyObject"), seen.count("GetObject")) == (3, 0, 0)


@pytest.mark.parametrize("operation", ["HeadObject", "CopyObject"])
def test_passing_fault_is_ridden_out(
    s3: Any, cloudformation: CloudFormation, faults: Callable[[str, int, int], list[str]], operation: str
) -> None:
    """Two times 503 from S3 do not fail the deployment."""
    archive = put_archive(s3, "aaaa1", b"first")
    faults(operation, 503, 2)
    handler.handler(make_event(cloudformation, "Create", Archives=[archive]), Context())
    assert cloudformation.answer["Status"] == "SUCCESS"
    assert content(s3, "models/aaaa.tar.gz") == b"first"


def test_denied_copy_fails_with_the_archive_named(
    s3: Any, cloudformation: CloudFormation, faults: Callable[[str, int, int], list[str]]
) -> None:
    """A refusal of S3 becomes a failed deployment that names the archive and the log."""
    archive = put_archive(s3, "aaaa1", b"first")
    faults("CopyObject", 403, 1)
    handler.handler(make_event(cloudformation, "Create", Archives=[archive]), Context())
    assert cloudformation.answer["Status"] == "FAILED"
    assert "1 of 1 archives were not placed: aaaa.tar.gz" in cloudformation.answer["Reason"]
    assert Context.log_stream_name in cloudformation.answer["Reason"]


def test_hidden_absence_is_absence(
    s3: Any, cloudformation: CloudFormation, faults: Callable[[str, int, int], list[str]]
) -> None:
    """Where S3 says 403 for a key that is not there, the archive is placed all the same."""
    archive = put_archive(s3, "aaaa1", b"first")
    faults("HeadObject", 403, 1)
    handler.handler(make_event(cloudformation, "Create", Archives=[archive]), Context())
    assert keys(s3) == ["models/aaaa.tar.gz"]


def test_all_failures_are_reported_and_the_rest_is_placed(s3: Any, cloudformation: CloudFormation) -> None:
    """Two missing archives are both named, and the one that is there is placed."""
    missing = [
        {"SourceKey": f"{name}.tar.gz", "TargetModel": f"{name}.tar.gz", "SizeBytes": "1"} for name in "xy"
    ]
    good = put_archive(s3, "aaaa1", b"first")
    handler.handler(make_event(cloudformation, "Create", Archives=[missing[0], good, missing[1]]), Context())
    assert cloudformation.answer["Reason"].startswith("2 of 3 archives were not placed: x.tar.gz: ")
    assert "; y.tar.gz: " in cloudformation.answer["Reason"]
    assert keys(s3) == ["models/aaaa.tar.gz"]


def test_wrong_size_is_refused_before_copying(s3: Any, cloudformation: CloudFormation) -> None:
    """An archive that is not as long as the template says is not placed."""
    archive = put_archive(s3, "aaaa1", b"first") | {"SizeBytes": "6"}
    handler.handler(make_event(cloudformation, "Create", Archives=[archive]), Context())
    assert f"s3://{SOURCE}/aaaa1.tar.gz holds 5 bytes, expected 6" in cloudformation.answer["Reason"]
    assert keys(s3) == []


def test_running_out_of_time_is_answered(
    s3: Any, cloudformation: CloudFormation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A copy that outlasts the function does not leave CloudFormation waiting for its own time-out."""
    release = threading.Event()
    monkeypatch.setattr(handler, "_place_one", lambda *_: release.wait(10))
    archive = put_archive(s3, "aaaa1", b"first")
    handler.handler(make_event(cloudformation, "Create", Archives=[archive]), Context(seconds=0.1))
    release.set()
    assert "not placed within the function's time; deploy again to resume" in cloudformation.answer["Reason"]


@pytest.mark.parametrize(("wish", "left"), [({}, 1), ({"RemoveOnDelete": "true"}, 0)])
def test_delete_removes_only_when_asked(
    s3: Any, cloudformation: CloudFormation, wish: dict[str, str], left: int
) -> None:
    """A deleted resource leaves its archives, unless it was told to take them along."""
    archive = put_archive(s3, "aaaa1", b"first")
    handler.handler(make_event(cloudformation, "Create", Archives=[archive]), Context())
    event = make_event(cloudformation, "Delete", Archives=[archive], **wish)
    handler.handler(event | {"PhysicalResourceId": f"s3://{DESTINATION}/models/"}, Context())
    assert len(keys(s3)) == left
    assert [answer["Status"] for answer in cloudformation.answers] == ["SUCCESS", "SUCCESS"]


def test_failed_create_can_be_deleted(s3: Any, cloudformation: CloudFormation) -> None:
    """Properties that cannot be read fail the create and do not keep the stack from being deleted."""
    event = make_event(cloudformation, "Create", Archives=[{"SourceKey": "a.tar.gz"}])
    handler.handler(event, Context())
    failed_id = cloudformation.answers[0]["PhysicalResourceId"]
    handler.handler(event | {"RequestType": "Delete", "PhysicalResourceId": failed_id}, Context())
    assert [answer["Status"] for answer in cloudformation.answers] == ["FAILED", "SUCCESS"]
    assert "KeyError: 'TargetModel'" in cloudformation.answers[0]["Reason"]


def test_answer_is_repeated_until_it_arrives(
    s3: Any, cloudformation: CloudFormation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two refused answers are followed by a third."""
    monkeypatch.setattr("constructs_triton.model_sync.handler.time.sleep", lambda _: None)
    cloudformation.refusals = 2
    handler.handler(make_event(cloudformation, "Create"), Context())
    assert cloudformation.answer["Status"] == "SUCCESS"


def test_answer_stays_below_cloudformations_limit(s3: Any, cloudformation: CloudFormation) -> None:
    """However many archives fail, with whatever names, the answer has at most 4,096 bytes."""
    names = [f"{index}-äöü-{'n' * 200}.tar.gz" for index in range(40)]
    archives = [{"SourceKey": "gone", "TargetModel": name, "SizeBytes": "1"} for name in names]
    handler.handler(make_event(cloudformation, "Create", Archives=archives), Context())
    assert cloudformation.answer["Status"] == "FAILED"
    assert cloudformation.sizes[0] <= 4096


def test_handler_stands_alone() -> None:
    """The shipped file imports nothing but boto3, botocore and the standard library."""
    file, function = HANDLER.split(".")
    tree = ast.parse((Path(HANDLER_DIRECTORY) / f"{file}.py").read_text())
    imported = {
        name.split(".")[0]
        for node in ast.walk(tree)
        for name in (
            [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else []
        )
    }
    assert imported <= {"boto3", "botocore"} | sys.stdlib_module_names
    assert callable(getattr(handler, function))
