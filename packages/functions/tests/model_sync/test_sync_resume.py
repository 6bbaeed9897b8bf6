"""A sync that is interrupted and run again, or denied because a new policy
takes some seconds to apply.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError, IncompleteReadError
from botocore.response import StreamingBody
from sync_requests import (
    DESTINATION,
    PART,
    CloudFormation,
    Context,
    Faults,
    ShortRun,
    content,
    index,
    keys,
    make_event,
    put_archive,
)

from constructs_triton_functions import retries
from constructs_triton_functions.model_sync import handler, placement

WEIGHTS = bytes(range(256)) * (11 * PART // 5 // 256)
"""An archive of three parts."""
Invocations = list[dict[str, Any]]

RUN = """
import json, sys, types
from constructs_triton_functions import retries
from constructs_triton_functions.model_sync import handler, placement
placement.MULTIPART_THRESHOLD_BYTES = placement.MULTIPART_CHUNK_BYTES = 5 * 1024**2
placement.ABANDONED_SECONDS = 0
context = types.SimpleNamespace(log_stream_name="x", get_remaining_time_in_millis=lambda: 900_000)
print("ready", flush=True)
handler.handler(json.loads(sys.stdin.read()), context)
"""


@pytest.fixture
def invocations(monkeypatch: pytest.MonkeyPatch) -> Invocations:
    """The events with which the function invokes itself."""
    handed_over: Invocations = []

    class Lambda:
        def invoke(self, *, FunctionName: str, InvocationType: str, Payload: bytes) -> None:  # noqa: N803 - AWS's
            assert (FunctionName, InvocationType) == (Context.invoked_function_arn, "Event")
            handed_over.append(json.loads(Payload))

    make = boto3.client
    monkeypatch.setattr(
        boto3, "client", lambda name, **more: Lambda() if name == "lambda" else make(name, **more)
    )
    return handed_over


def serve(event: dict[str, Any], invocations: Invocations, context: Callable[[], Context]) -> int:
    """Run the function, and again for each event that it passes on; returns the number of runs."""
    runs = 1
    handler.handler(event, context())
    while invocations:
        handler.handler(invocations.pop(), context())
        runs += 1
    return runs


def test_function_continues_in_another_run_before_its_timeout(
    s3: Any,
    cloudformation: CloudFormation,
    invocations: Invocations,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each run continues where the last one stopped; there is one response at the end."""
    monkeypatch.setattr(handler, "CONCURRENT_TASKS", 2)
    archives = [put_archive(s3, f"{number:04d}x", bytes([number])) for number in range(20)]
    runs = serve(
        make_event(s3, cloudformation, "Create", archives), invocations, lambda: ShortRun(6)
    )
    assert len(keys(s3)) == 20
    assert 3 <= runs <= 20
    assert cloudformation.response["Status"] == "SUCCESS"
    assert len(index(s3)["target_models"]) == 20


def test_large_copy_continues_with_its_parts(  # noqa: PLR0917 - fixtures
    s3: Any,
    cloudformation: CloudFormation,
    invocations: Invocations,
    faults: Faults,
    small_parts: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Several runs copy an archive that is too large for one run, and no part is copied twice."""
    monkeypatch.setattr(placement, "CONCURRENT_PARTS", 1)
    seen = faults("none", 0, 0)
    weights = WEIGHTS * 2 + bytes(PART)
    archive = put_archive(s3, "cccc1", weights)
    runs = serve(
        make_event(s3, cloudformation, "Create", [archive]), invocations, lambda: ShortRun(5)
    )
    assert runs > 1
    assert content(s3, "models/cccc.tar.gz") == weights
    assert (seen.count("CreateMultipartUpload"), seen.count("UploadPartCopy")) == (1, 6)


LAMBDA_SECONDS = 900
"""AWS Lambda quotas: the longest run of a function."""
CLOUDFORMATION_SECONDS = 3600
"""CloudFormation template reference, ``ServiceTimeout``: the longest wait for a response."""


class Time:
    """A clock that the test sets."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        monkeypatch.setattr(time, "time", lambda: self.now)


class LongRun(Context):
    """A run in which this much time passes before anything is copied."""

    def __init__(self, clock: Time, seconds: float) -> None:
        super().__init__()
        self._clock = clock
        self._end = clock.now + seconds

    def get_remaining_time_in_millis(self) -> int:
        self._clock.now = self._end
        return 20_000


@pytest.mark.parametrize(("seconds", "runs"), [(100, 27), (700, 4), (880, 4), (900, 3)])
def test_last_run_ends_before_cloudformation_stops_waiting(  # noqa: PLR0917 - fixtures
    s3: Any,
    cloudformation: CloudFormation,
    invocations: Invocations,
    monkeypatch: pytest.MonkeyPatch,
    seconds: float,
    runs: int,
) -> None:
    """Each run that starts has 15 minutes left, and the reason is sent in time,
    however long runs take.
    """
    clock = Time(monkeypatch)
    events = [make_event(s3, cloudformation, "Create", [put_archive(s3, "aaaa1", b"first")])]
    starts = []
    while events:
        starts.append(clock.now)
        handler.handler(events.pop(), LongRun(clock, seconds))
        events, invocations[:] = list(invocations), []
    assert len(starts) == runs
    assert max(starts) + LAMBDA_SECONDS < CLOUDFORMATION_SECONDS
    assert clock.now < CLOUDFORMATION_SECONDS
    assert "not everything was done within an hour" in cloudformation.response["Reason"]


@pytest.mark.parametrize(("elapsed", "is_continued"), [(2699, True), (2700, False)])
def test_function_is_not_invoked_again_in_the_last_quarter_of_an_hour(  # noqa: PLR0917 - fixtures
    s3: Any,
    cloudformation: CloudFormation,
    invocations: Invocations,
    monkeypatch: pytest.MonkeyPatch,
    elapsed: float,
    is_continued: bool,
) -> None:
    """With 15 minutes left or less the deployment fails with a reason instead."""
    event = make_event(s3, cloudformation, "Create", [put_archive(s3, "aaaa1", b"first")])
    handler.handler(event, LongRun(Time(monkeypatch), elapsed))
    assert (len(invocations), len(cloudformation.responses)) == ((1, 0) if is_continued else (0, 1))


OPERATIONS = [
    *("GetObject", "HeadObject", "CopyObject", "ListMultipartUploads", "CreateMultipartUpload"),
    *("ListParts", "UploadPartCopy", "CompleteMultipartUpload", "PutObject"),
]


@pytest.mark.parametrize("operation", OPERATIONS)
def test_sync_can_be_repeated_after_a_fault_of_any_call(
    s3: Any, cloudformation: CloudFormation, faults: Faults, small_parts: None, operation: str
) -> None:
    """If any call fails, the request fails and writes no index; the next run places everything."""
    archives = [put_archive(s3, "aaaa1", b"first"), put_archive(s3, "cccc1", WEIGHTS)]
    event = make_event(s3, cloudformation, "Create", archives)
    faults(operation, 405, 1)
    handler.handler(event, Context())
    assert cloudformation.responses[0]["Status"] == "FAILED"
    assert "models/index.json" not in all_keys(s3)
    handler.handler(event, Context())
    assert cloudformation.responses[1]["Status"] == "SUCCESS"
    assert content(s3, "models/cccc.tar.gz") == WEIGHTS
    assert index(s3)["target_models"] == {"aaaa": "aaaa.tar.gz", "cccc": "cccc.tar.gz"}


def all_keys(s3: Any) -> list[str]:
    return [item["Key"] for item in s3.list_objects_v2(Bucket=DESTINATION).get("Contents", ())]


def test_killed_sync_is_resumed(s3: Any, cloudformation: CloudFormation, aws_url: str) -> None:
    """After SIGKILL at random moments, a complete run places everything and leaves no upload."""
    chance = random.Random(11)
    contents = {f"{number:04d}": chance.randbytes(50) for number in range(12)}
    contents["9999"] = chance.randbytes(15 * 1024**2)
    archives = [put_archive(s3, f"{name}x", body) for name, body in contents.items()]
    event = json.dumps(make_event(s3, cloudformation, "Create", archives))
    for delay in (0.05, 0.25, 0.45, None):
        with subprocess.Popen(
            [sys.executable, "-c", RUN],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "AWS_ENDPOINT_URL_S3": aws_url},
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdout.readline()
            process.stdin.write(event)
            process.stdin.close()
            if delay is not None:
                time.sleep(delay)
                process.send_signal(signal.SIGKILL)
    assert cloudformation.responses[-1]["Status"] == "SUCCESS"
    placed = {name: content(s3, f"models/{name}.tar.gz") for name in contents}
    assert placed == contents
    assert s3.list_multipart_uploads(Bucket=DESTINATION).get("Uploads", []) == []


class Clock:
    """A clock that only sleeping moves."""

    now = 0.0

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch, small_parts: None) -> Clock:
    clock = Clock()
    monkeypatch.setattr(time, "sleep", clock.sleep)
    monkeypatch.setattr(retries, "time", SimpleNamespace(monotonic=lambda: clock.now))
    return clock


@pytest.mark.parametrize("operation", OPERATIONS)
def test_function_waits_for_a_new_policy(
    s3: Any, cloudformation: CloudFormation, faults: Faults, clock: Clock, operation: str
) -> None:
    """S3 may deny any of the first calls; the function repeats it."""
    archives = [put_archive(s3, "aaaa1", b"first"), put_archive(s3, "cccc1", bytes(2 * PART))]
    event = make_event(s3, cloudformation, "Create", archives)
    faults(operation, 403, 3)
    handler.handler(event, Context())
    assert cloudformation.response["Status"] == "SUCCESS"
    assert clock.now >= 2


def test_denied_deletion_is_repeated(
    s3: Any, cloudformation: CloudFormation, faults: Faults, clock: Clock
) -> None:
    """The calls that empty a prefix wait for a new policy too."""
    event = make_event(s3, cloudformation, "Delete", [put_archive(s3, "aaaa1", b"first")])
    event["ResourceProperties"]["RemoveOnDelete"] = "true"
    event["PhysicalResourceId"] = f"s3://{DESTINATION}/models/"
    s3.put_object(Bucket=DESTINATION, Key="models/aaaa.tar.gz", Body=b"first")
    for operation in ("ListObjectVersions", "DeleteObjects"):
        faults(operation, 403, 2)
    handler.handler(event, Context())
    assert cloudformation.response["Status"] == "SUCCESS"
    assert not keys(s3)
    assert clock.now == 8


def test_missing_permission_delays_a_deployment_once(
    s3: Any, cloudformation: CloudFormation, faults: Faults, clock: Clock
) -> None:
    """All calls share the 40 seconds, so twelve denied archives do not take
    twelve times as long.
    """
    archives = [put_archive(s3, f"{number:04d}x", b"first") for number in range(12)]
    event = make_event(s3, cloudformation, "Create", archives)
    faults("CopyObject", 403, 1000)
    handler.handler(event, Context())
    assert "12 of 12 archives were not placed" in cloudformation.response["Reason"]
    assert 40 < clock.now <= 40 + 2 * 12


@pytest.mark.parametrize("is_completed", [True, False])
def test_upload_that_another_run_has_ended(
    s3: Any,
    cloudformation: CloudFormation,
    small_parts: None,
    monkeypatch: pytest.MonkeyPatch,
    is_completed: bool,
) -> None:
    """An upload that disappears during the copy, completed or aborted, fails no deployment."""
    archive = put_archive(s3, "cccc1", WEIGHTS)
    event = make_event(s3, cloudformation, "Create", [archive])
    copy_part = placement.Placement._copy_part
    others = [event]

    def copy(self: placement.Placement, *arguments: Any) -> str:
        if not others:
            return copy_part(self, *arguments)
        other = others.pop()
        if is_completed:
            handler.handler(other, Context())
        s3.abort_multipart_upload(
            Bucket=DESTINATION, Key="models/cccc.tar.gz", UploadId=arguments[2]
        )
        # S3's answer; moto's is 500.
        raise ClientError({"Error": {"Code": "NoSuchUpload"}}, "UploadPartCopy")

    monkeypatch.setattr(placement, "CONCURRENT_PARTS", 1)
    monkeypatch.setattr(placement.Placement, "_copy_part", copy)
    handler.handler(event, Context())
    assert {each["Status"] for each in cloudformation.responses} == {"SUCCESS"}
    assert len(cloudformation.responses) == 1 + is_completed
    assert content(s3, "models/cccc.tar.gz") == WEIGHTS


def test_body_that_breaks_off_is_read_again(
    s3: Any, cloudformation: CloudFormation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The SDK does not repeat a request whose body ends early, so the function does."""
    read, broken = StreamingBody.read, [True, True]

    def break_off(body: StreamingBody, amt: int | None = None) -> bytes:
        content = bytes(read(body, amt))
        if broken:
            broken.pop()
            raise IncompleteReadError(actual_bytes=1, expected_bytes=len(content))
        return content

    archive = put_archive(s3, "aaaa1", b"first")
    event = make_event(s3, cloudformation, "Create", [archive])
    monkeypatch.setattr(retries, "_PAUSE_SECONDS", 0)
    monkeypatch.setattr(StreamingBody, "read", break_off)
    handler.handler(event, Context())
    assert not broken
    assert cloudformation.response["Status"] == "SUCCESS"
