"""The queue of an asynchronous endpoint, with a function in place of the container."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from constructs_triton_tools.local.gateway.async_inference import AsyncInvocations
from constructs_triton_tools.local.gateway.bucket_folder import BucketFolder
from constructs_triton_tools.local.gateway.runtime_errors import RuntimeApiError
from constructs_triton_tools.local.sources.role_permissions import RolePermissions
from constructs_triton_tools.local.sources.specs import AsyncInferenceSpec

PREFIX = "X-Amzn-SageMaker-"
ROLE = RolePermissions(
    "Role",
    [
        {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::in/*"},
        {"Effect": "Allow", "Action": "s3:Put*", "Resource": "*"},
    ],
)


class Container:
    """Returns the body that it received when the test allows it, and records the calls."""

    def __init__(self) -> None:
        self.may_answer = asyncio.Event()
        self.seen: list[tuple[Mapping[str, str], bytes, float]] = []
        self.running = self.most_running = 0
        self.reports: list[str] = []

    async def send(self, headers: Mapping[str, str], body: bytes, timeout: float) -> bytes:
        self.seen.append((headers, body, timeout))
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        await self.may_answer.wait()
        self.running -= 1
        return b"answer to " + body


async def _post(
    folder: Path,
    container: Container,
    *requests: Mapping[str, str],
    body: bytes = b"",
    running: int = 0,
) -> Sequence[tuple[int, str, Mapping[str, str]]]:
    """Post requests to a queue of two at once, let the container answer, and wait for the end.

    The container keeps its answers back until ``running`` calls have reached it.
    """
    output = AsyncInferenceSpec("s3://out/good", "s3://out/bad/", 2, ROLE)
    queue = AsyncInvocations(output, BucketFolder(folder), container.send, container.reports.append)

    async def handle(request: web.Request) -> web.Response:
        try:
            return await queue.accept(request)
        except RuntimeApiError as error:
            return error.response()

    application = web.Application()
    application.router.add_post("/", handle)
    async with TestClient(TestServer(application)) as client:
        answers = [await client.post("/", data=body, headers=request) for request in requests]
        found = [(answer.status, await answer.text(), answer.headers) for answer in answers]
        expected = sum(status == 202 for status, *_ in found)
        async with asyncio.timeout(20):
            while container.running < running:
                await asyncio.sleep(0.01)
            container.may_answer.set()
            while sum(path.is_file() for path in folder.glob("out/*/**/[!.]*")) < expected:
                await asyncio.sleep(0.01)
    return found


def test_requests_wait_for_a_slot_and_have_their_headers(tmp_path: Path) -> None:
    """Two run at once; the container gets the content type and timeout of each request."""
    (tmp_path / "in").mkdir()
    for number in range(4):
        (tmp_path / "in" / str(number)).write_text(str(number))
    container = Container()
    requests = [
        {
            f"{PREFIX}InputLocation": f"s3://in/{number}",
            f"{PREFIX}Content-Type": "text/csv",
            f"{PREFIX}InvocationTimeoutSeconds": "5",
        }
        for number in range(4)
    ]
    answers = asyncio.run(_post(tmp_path, container, *requests, running=2))
    assert container.most_running == 2
    assert {(headers["Content-Type"], timeout) for headers, _, timeout in container.seen} == {
        ("text/csv", 5)
    }
    written = [
        tmp_path / headers[f"{PREFIX}OutputLocation"].removeprefix("s3://")
        for *_, headers in answers
    ]
    assert [path.read_text() for path in written] == [f"answer to {number}" for number in range(4)]


def test_a_body_replaces_an_object(tmp_path: Path) -> None:
    """InvokeEndpointAsync accepts a small request in its body."""
    (answer,) = asyncio.run(_post(tmp_path, Container(), {f"{PREFIX}Inference-Id": "i"}, body=b"x"))
    assert answer[:2] == (202, '{"InferenceId": "i"}')


def test_a_caller_names_the_file_of_the_response(tmp_path: Path) -> None:
    """``S3OutputPathExtension`` extends the endpoint's path;
    ``Filename`` replaces the generated name.
    """
    request = {f"{PREFIX}S3OutputPathExtension": "/2026/may/", f"{PREFIX}Filename": "answer.json"}
    ((_, _, headers),) = asyncio.run(_post(tmp_path, Container(), request, body=b"x"))
    assert headers[f"{PREFIX}OutputLocation"] == "s3://out/good/2026/may/answer.json"
    assert (tmp_path / "out/good/2026/may/answer.json").read_text() == "answer to x"


@pytest.mark.parametrize(
    ("location", "error", "reports"),
    [
        (
            "s3://elsewhere/1",
            "AccessDenied: role Role is not authorized to perform: s3:GetObject on "
            'resource: "arn:aws:s3:::elsewhere/1"',
            1,
        ),
        ("s3://in/absent", "NoSuchKey: The specified key does not exist: s3://in/absent", 0),
    ],
)
def test_what_s3_refuses_is_in_the_failure_location(
    tmp_path: Path, location: str, error: str, reports: int
) -> None:
    """The role decides, not the folder; the user of the local run gets the locations that work."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "1").write_text("1")
    container = Container()
    ((status, _, headers),) = asyncio.run(
        _post(tmp_path, container, {f"{PREFIX}InputLocation": location})
    )
    failure = tmp_path / headers[f"{PREFIX}FailureLocation"].removeprefix("s3://")
    assert (status, container.seen, failure.read_text()) == (202, [], error)
    assert (
        container.reports
        == [f"{error}; use a location below one of s3://in/, or grant the role s3:GetObject"][
            :reports
        ]
    )


INPUT = f"{PREFIX}InputLocation"
CONSTRAINT = "failed to satisfy constraint: Member must have"


@pytest.mark.parametrize(
    ("headers", "words"),
    [
        ({}, "needs either InputLocation or a body"),
        ({"body": "x", INPUT: "s3://in/k"}, "needs either InputLocation or a body"),
        ({"body": "x" * 128_001}, f"at 'body' {CONSTRAINT} length less than"),
        ({INPUT: "s3://bucket"}, "must be s3://bucket/key"),
        ({INPUT: "s3://b/../../secret"}, "must be s3://bucket/key"),
        (
            {"body": "x", f"{PREFIX}S3OutputPathExtension": "../../secret"},
            "must be s3://bucket/key",
        ),
        ({f"{PREFIX}InvocationTimeoutSeconds": "3601"}, f"TimeoutSeconds' {CONSTRAINT} value less"),
        (
            {f"{PREFIX}RequestTTLSeconds": "59"},
            f"at 'requestTTLSeconds' {CONSTRAINT} value greater",
        ),
        ({f"{PREFIX}Filename": "a.b.c"}, "at 'filename' failed"),
    ],
)
def test_wrong_requests_are_refused_before_they_wait(
    tmp_path: Path, headers: dict[str, str], words: str
) -> None:
    """The response is 400 with the reason, and nothing is sent or written."""
    container = Container()
    body = headers.pop("body", "").encode()
    ((status, text, _),) = asyncio.run(_post(tmp_path, container, headers, body=body))
    assert (status, container.seen) == (400, [])
    assert words in text
