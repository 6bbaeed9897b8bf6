"""Faults at every call that the model sync sends to S3, one after the other.

A scenario is a sequence of CloudFormation's requests. Its last one runs once for each of its calls
and each kind of fault, and what S3 holds afterwards is compared with a run without a fault.
"""

from __future__ import annotations

import io
import json
import logging
import time
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit

import boto3
import pytest
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders
from botocore.exceptions import ConnectionClosedError
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.s3.models import s3_backends
from sync_requests import DESTINATION, CloudFormation, Context

from constructs_triton_functions import continuation
from constructs_triton_functions import response as responses
from constructs_triton_functions.model_sync import handler, placement

Event = dict[str, Any]
Effect = Callable[["Calls", Any, Any], AWSResponse | None]
"""What happens at the chosen call: gets the calls, the client and the request."""


_OF_UPLOADS = ("ListParts", "UploadPartCopy", "CompleteMultipartUpload")


class KilledError(BaseException):
    """The process of the function has ended: nothing that it would do happens."""


@dataclass
class Calls:
    """Counts the calls to S3, and lets ``effect`` happen at number ``at``, the first being 0."""

    at: int = -1
    effect: Effect | None = None
    count: int = 0
    operations: list[str] = field(default_factory=list)
    is_killed: bool = False
    is_time_up: bool = False
    is_counting: bool = True

    def intercept(self, client: Any, request: Any, operation: str) -> AWSResponse | None:
        if self.is_killed:
            raise KilledError
        if operation in _OF_UPLOADS and not _has_upload(request):
            return _answer(request, 404, "NoSuchUpload")
        if not self.is_counting:
            return None
        self.operations.append(operation)
        number, self.count = self.count, self.count + 1
        if number != self.at or self.effect is None:
            return None
        return self.effect(self, client, request)


def _has_upload(request: Any) -> bool:
    """Whether the upload of a request exists; otherwise moto's answer is 500, unlike S3's."""
    return parse_qs(urlsplit(request.url).query)["uploadId"][0] in _bucket().multiparts


def _bucket() -> Any:
    """The repository's bucket in moto, whose server runs in this process."""
    backends = s3_backends[DEFAULT_ACCOUNT_ID].values()
    found = [each.buckets for each in backends if DESTINATION in each.buckets]
    return found[0][DESTINATION]


# Effects.


def _answer(request: Any, status: int, code: str) -> AWSResponse:
    body = f"<Error><Code>{code}</Code><Message>injected</Message></Error>".encode()
    sent = b"" if request.method == "HEAD" else body
    raw = SimpleNamespace(stream=lambda: iter([sent]))
    return AWSResponse(request.url, status, HTTPHeaders(), raw)


def refused(_: Calls, __: Any, request: Any) -> AWSResponse:
    """S3 refuses the call for a reason that a repetition does not change."""
    return _answer(request, 405, "MethodNotAllowed")


def throttled(_: Calls, __: Any, request: Any) -> AWSResponse:
    """S3 asks for fewer requests."""
    return _answer(request, 503, "SlowDown")


def lost(_: Calls, client: Any, request: Any) -> AWSResponse:
    """S3 executes the call, and the connection breaks before the response."""
    _execute(client, request)
    raise ConnectionClosedError(endpoint_url=request.url)


def _execute(client: Any, request: Any) -> None:
    """Let S3 execute a call, whose response nothing reads."""
    raw = client._endpoint.http_session.send(request).raw
    if raw is not None:
        raw.close()


def cut(calls: Calls, client: Any, request: Any) -> AWSResponse:
    """The connection breaks while the body is read; the SDK notices it only of a whole response."""
    if calls.operations[-1] != "GetObject":
        return lost(calls, client, request)
    answer: AWSResponse = client._endpoint.http_session.send(request)
    if answer.status_code not in (200, 206):
        return answer
    body = answer.raw.read()
    half = io.BytesIO(body[: len(body) // 2])
    headers = cast("Any", answer.headers)  # what the class keeps is not what it takes, for mypy
    return AWSResponse(request.url, answer.status_code, headers, _Body(half))


class _Body:
    """A body that ends early, with the part of urllib3's response that botocore uses."""

    def __init__(self, content: io.BytesIO) -> None:
        self._content = content

    def read(self, amount: int | None = None) -> bytes:
        return self._content.read(-1 if amount is None else amount)

    def stream(self) -> Iterator[bytes]:
        yield self._content.read()

    def close(self) -> None:
        self._content.close()


def killed_before(calls: Calls, _: Any, __: Any) -> AWSResponse:
    """Lambda ends the function at its timeout, before the call is sent."""
    calls.is_killed = True
    raise KilledError


def killed_after(calls: Calls, client: Any, request: Any) -> AWSResponse:
    """Lambda ends the function at its timeout, after S3 has executed the call."""
    _execute(client, request)
    return killed_before(calls, client, request)


def time_up(calls: Calls, _: Any, __: Any) -> None:
    """The time of the run ends, so that another run continues."""
    calls.is_time_up = True


# Runs.


class _Clocked(Context):
    """A context whose time ends when the calls say so."""

    def __init__(self, calls: Calls) -> None:
        super().__init__()
        self._calls = calls

    def get_remaining_time_in_millis(self) -> int:
        return 60_000 if self._calls.is_time_up else 900_000


@dataclass
class Function:
    """The deployed function, its bucket and CloudFormation, on loopback."""

    s3: Any
    cloudformation: CloudFormation
    calls: Calls = field(default_factory=Calls)
    handed_over: list[Event] = field(default_factory=list)
    now: float = 0.0

    @classmethod
    def installed(
        cls, s3: Any, cloudformation: CloudFormation, monkeypatch: pytest.MonkeyPatch
    ) -> Function:
        """A function with one task and one part at a time, so that calls have an order."""
        function = cls(s3, cloudformation)
        make_client, put, make = handler._client, responses._put, boto3.client

        # One client for all runs: to make one takes longer than a run.
        client = make_client()
        client.meta.events.register_first(
            "before-send.s3",
            lambda request, event_name, **_: function.calls.intercept(
                client, request, event_name.rsplit(".", 1)[1]
            ),
        )

        def respond(url: str, body: bytes) -> None:
            if function.calls.is_killed:
                raise KilledError
            put(url, body)

        def invoke(**arguments: Any) -> None:
            function.handed_over.append(json.loads(arguments["Payload"]))

        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        clock = SimpleNamespace(time=lambda: function.now)
        monkeypatch.setattr(handler, "time", clock)
        monkeypatch.setattr(continuation, "time", clock)
        monkeypatch.setattr(time, "sleep", lambda _: None)
        monkeypatch.setattr(handler, "CONCURRENT_TASKS", 1)
        monkeypatch.setattr(placement, "CONCURRENT_PARTS", 1)
        monkeypatch.setattr(placement, "CONCURRENT_CHECKS", 1)
        monkeypatch.setattr(handler, "_client", lambda: client)
        monkeypatch.setattr(responses, "_put", respond)
        monkeypatch.setattr(
            boto3,
            "client",
            lambda name, **more: (
                SimpleNamespace(invoke=invoke) if name == "lambda" else make(name, **more)
            ),
        )
        return function

    def run(self, event: Event, calls: Calls | None = None) -> list[dict[str, Any]]:
        """Run the function for one event, and return the responses that CloudFormation got."""
        before, self.calls = self.calls, calls or Calls()
        received = len(self.cloudformation.responses)
        try:
            handler.handler(event, _Clocked(self.calls))
        except KilledError:
            pass
        finally:
            self.calls = before
        return self.cloudformation.responses[received:]

    def deploy(self, event: Event) -> None:
        """Run the function for one event, which must succeed."""
        for response in self.run(event):
            assert response["Status"] == "SUCCESS", response["Reason"]

    def saved(self) -> Any:
        """What the repository's bucket holds, for :meth:`restore`."""
        return deepcopy(_bucket().keys)

    def restore(self, saved: Any) -> None:
        """Bring the bucket to a state that was saved, without unfinished uploads."""
        bucket = _bucket()
        bucket.keys = deepcopy(saved)
        bucket.multiparts.clear()

    def run_to_the_end(self, event: Event, calls: Calls | None = None) -> list[str]:
        """Run the function, and twice for each event that it passes on, as Lambda may deliver it
        twice; returns the status of each response.
        """
        found = self.run(event, calls)
        while self.handed_over:
            passed_on = self.handed_over.pop()
            found += [*self.run(passed_on), *self.run(passed_on)]
        return [f"{each['Status']} {each['Reason']}".strip() for each in found]

    def state(self) -> dict[str, Any]:
        """The content, metadata and KMS key of each object; of an index, its names."""
        state: dict[str, Any] = {}
        for key, found in _bucket().keys.items():
            body = found.value
            if key.endswith("index.json"):
                index = json.loads(body)
                body = {**index, "retired": sorted(index["retired"])}
            state[key] = (body, dict(found.metadata), found.kms_key_id)
        return state

    def expect_named_objects(self) -> None:
        """Check that each index names only what is in place."""
        state = self.state()
        for key, (index, *_) in state.items():
            if key.endswith("index.json"):
                prefix = key.removesuffix("index.json")
                for target in index["target_models"].values():
                    assert any(found.startswith(prefix + target) for found in state), target
