"""The example of a model that generates, from its synthesized template, with the real server."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing

import pytest
from local_processes import log_of
from programs import PROJECT, synthesize_app
from test_local_endpoints import eventually
from triton_server import needs_server

from constructs_triton_client import TritonClient
from constructs_triton_tools.local import LocalEndpoint

pytestmark = [pytest.mark.e2e, needs_server, pytest.mark.xdist_group("local_endpoints")]

BEGIN = "Once upon a time"
#: What the text of the example goes on with.
CONTINUED = " there was a small lighthouse at the end of the world."


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalEndpoint]:
    """A run of the example's two endpoints."""
    folder = tmp_path_factory.mktemp("generate")
    synthesize_app(PROJECT / "examples" / "generate" / "app.py", folder)
    with LocalEndpoint.from_assembly(folder) as local:
        yield local


def client(local: LocalEndpoint, name: str) -> TritonClient:
    return TritonClient.for_endpoint(name, endpoint_url=local.endpoint_url)


@pytest.mark.parametrize("name", ["decoder", "story"])
def test_text_is_continued(local: LocalEndpoint, name: str) -> None:
    """The decoder alone and behind the tokenizer of the ensemble send the
    same tokens, one by one.
    """
    events = list(client(local, name).infer_stream({"text_input": BEGIN, "max_tokens": 12}))
    assert len(events) == sum(event.array("num_output_tokens", "i4")[0] for event in events) == 12
    assert CONTINUED.startswith("".join(event.text() for event in events))


def test_requests_share_a_batch(local: LocalEndpoint) -> None:
    """Requests that arrive while others are answered join their steps, and have the same tokens."""

    async def answer(begin: str) -> tuple[str, int]:
        stream = client(local, "story").infer_stream({"text_input": begin, "max_tokens": 20})
        events = [event async for event in stream]
        most = max(event.array("batched_sequences")[0] for event in events)
        return "".join(event.text() for event in events), most

    async def answers() -> list[tuple[str, int]]:
        return await asyncio.gather(*(answer(begin) for begin in (BEGIN, "The ships", BEGIN)))

    (first, most), (other, _), (again, _) = asyncio.run(answers())
    assert (most, first) == (3, again)
    assert first != other


def test_a_caller_that_leaves_ends_its_sequence(local: LocalEndpoint) -> None:
    """The decoder sees the end of the connection; a running step of an ensemble does not."""
    with closing(
        client(local, "decoder").infer_stream({"text_input": BEGIN, "max_tokens": 1000})
    ) as stream:
        next(stream)
    assert eventually(lambda: "cancelled with " in log_of(local, "decoder").read_text())
