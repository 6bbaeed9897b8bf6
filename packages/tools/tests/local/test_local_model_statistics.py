"""The server's statistics of models: reading them, and the difference of two readings."""

from __future__ import annotations

import asyncio
import json

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from constructs_triton_core.errors import LocalEndpointError
from constructs_triton_tools.local.http_session import read_statistics
from constructs_triton_tools.local.model_statistics import (
    Durations,
    ModelStatistics,
    decode_statistics,
    parse_statistics,
    statistics_paths,
    statistics_since,
)

# What the bundled server answers for a model that got batches of 1 and 4.
ANSWER = (
    b'{"model_stats":[{"name":"m","version":"1","last_inference":1795413415562,"inference_count":9,'
    b'"execution_count":3,"inference_stats":{"success":{"count":9,"ns":90000000},"fail":{"count":2,"ns":10},'
    b'"queue":{"count":9,"ns":45000000},"compute_input":{"count":9,"ns":9000000},'
    b'"compute_infer":{"count":9,"ns":27000000},"compute_output":{"count":9,"ns":9000000},'
    b'"cache_hit":{"count":0,"ns":0},"cache_miss":{"count":0,"ns":0}},"response_stats":{},"batch_stats":['
    b'{"batch_size":1,"compute_input":{"count":1,"ns":1},"compute_infer":{"count":1,"ns":1},"compute_output":'
    b'{"count":1,"ns":1}},{"batch_size":4,"compute_input":{"count":2,"ns":1},"compute_infer":{"count":2,'
    b'"ns":1},"compute_output":{"count":2,"ns":1}}],"memory_usage":[]}]}'
)
(FOUND,) = decode_statistics([ANSWER])


def test_an_answer_has_times_of_requests_and_batches() -> None:
    """Means are those of a request in milliseconds, and the batch size is that of an execution."""
    assert (FOUND.name, FOUND.version, FOUND.failure) == ("m", "1", Durations(2, 10))
    assert (FOUND.queue.mean_ms, FOUND.mean_compute_ms, FOUND.success.mean_ms) == (5.0, 5.0, 10.0)
    assert (FOUND.mean_batch_size, FOUND.batches) == (3.0, {1: 1, 4: 2})


def test_figures_can_be_written_and_read_again() -> None:
    """The gateway's JSON has the form of the server's."""
    assert parse_statistics(json.loads(json.dumps([FOUND.to_dict()]))) == (FOUND,)


def test_a_model_without_requests_has_means_of_zero() -> None:
    """Nothing is divided by zero before the first request."""
    empty = ModelStatistics(name="m", version="1")
    assert (empty.queue.mean_ms, empty.mean_compute_ms, empty.mean_batch_size) == (0, 0, 0)


def test_the_difference_of_two_readings_has_only_what_was_added() -> None:
    """Batch sizes without a new execution are left out."""
    earlier = ModelStatistics(
        name="m",
        version="1",
        inferences=5,
        executions=2,
        queue=Durations(5, 10),
        batches={1: 1, 4: 1},
    )
    (found,) = statistics_since([FOUND], [earlier])
    assert (found.inferences, found.executions, found.batches) == (4, 1, {4: 1})
    assert (found.queue, found.success) == (Durations(4, 44_999_990), Durations(9, 90_000_000))


@pytest.mark.parametrize(
    "earlier",
    [[], [ModelStatistics(name="m", version="1", success=Durations(10, 5))], [FOUND.since(FOUND)]],
    ids=["loaded since", "loaded again", "nothing before"],
)
def test_a_model_that_was_loaded_since_has_its_own_counters(earlier: list[ModelStatistics]) -> None:
    """A reload restarts the server's counters; no difference is negative."""
    assert statistics_since([FOUND], earlier) == (FOUND,)


def test_the_index_has_each_model_that_is_ready_once() -> None:
    """Names are escaped, versions and equal names of several archives are one entry."""
    index = [{"name": "a b", "version": each, "state": "READY"} for each in "12"] + [{"name": "c"}]
    assert statistics_paths(json.dumps(index).encode()) == ("models/a%20b/stats",)


def test_a_model_that_was_unloaded_meanwhile_is_left_out() -> None:
    """The server answers with an error for a name that is unknown, or that two archives have."""
    assert decode_statistics([b'{"error":"requested model \'m\' is not available"}', ANSWER]) == (
        FOUND,
    )


@pytest.mark.parametrize("answer", [b"", b"[]", b"{}", b'{"model_stats":[{}]}', b"3", b"\xff"])
def test_another_answer_is_an_error(answer: bytes) -> None:
    """A server that is not Triton is named as the reason, without a traceback."""
    with pytest.raises(LocalEndpointError, match="statistics: the server's answer cannot be read"):
        decode_statistics([answer])


@pytest.mark.parametrize("sizes", [[9_000_000], [3_500_000] * 30], ids=["one", "all"])
def test_statistics_are_bounded_for_a_model_and_for_all(sizes: list[int]) -> None:
    """Of a server that answers without an end, 4 MiB for a model and 64 MiB in all are read."""
    sent: list[int] = []

    async def index(_: web.Request) -> web.Response:
        return web.json_response(
            [{"name": str(number), "state": "READY"} for number in range(len(sizes))]
        )

    async def statistics(request: web.Request) -> web.Response:
        sent.append(sizes[int(request.match_info["name"])])
        return web.Response(body=b'{"error": "' + b"x" * sent[-1] + b'"}')

    async def read() -> None:
        application = web.Application()
        application.router.add_post("/v2/repository/index", index)
        application.router.add_get("/v2/models/{name}/stats", statistics)
        async with TestServer(application) as server, aiohttp.ClientSession() as session:
            await read_statistics(session, str(server.make_url("/v2")))

    with pytest.raises(
        LocalEndpointError, match=r"statistics: the server's answers? (cannot be read|have 64)"
    ):
        asyncio.run(read())
    assert len(sent) == min(len(sizes), 20)
