"""The page's application beside the gateway: its headers, files, forms and events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from fake_container import connected, fake_server, in_loop, running_server

from constructs_triton_tools.local.gateway.gateway import gateway_application
from constructs_triton_tools.local.gateway.inference_components import LocalVariant
from constructs_triton_tools.local.gateway.running_endpoint import RunningEndpoint
from constructs_triton_tools.local.page.application import Page
from constructs_triton_tools.local.page.page_files import CONTENT_SECURITY_POLICY, event
from constructs_triton_tools.local.sources.specs import (
    AsyncInferenceSpec,
    ContainerSpec,
    EndpointSpec,
    VariantSpec,
)
from triton_model_check.facts.published import load

CONTAINER = ContainerSpec("m", "", "s3://bucket/m.tar.gz", archive=Path("m.tar.gz"))
CONFIG = 'backend: "identity"\ninput [ { name: "X" data_type: TYPE_FP32 dims: [ 2 ] } ]\n'
# A string: aiohttp before 3.11 has no generic class.
Client: TypeAlias = "TestClient[web.Request, web.Application]"


@asynccontextmanager
async def page_of_a_run(
    folder: Path, status: int = 200, *, is_asynchronous: bool = False
) -> AsyncIterator[Client]:
    """A gateway with its page, in front of a server that answers each call with this status."""

    async def answer(_: web.Request) -> web.Response:
        return web.Response(status=status, text='{"error": "<b>no</b>"}')

    server = fake_server(folder, container=CONTAINER)
    model = server.models_directory.parent / "model" / "m"
    model.mkdir(parents=True)
    (model / "config.pbtxt").write_text(CONFIG)
    spec = VariantSpec("v", CONTAINER)
    queue = AsyncInferenceSpec("s3://bucket/out/") if is_asynchronous else None
    endpoint = EndpointSpec("e", "s", (spec,), asynchronous=queue)
    endpoints = {"e": RunningEndpoint(endpoint, [LocalVariant(spec, server, None)])}
    application = gateway_application(endpoints, folder / "bucket", page=Page())
    async with (
        running_server(answer) as port,
        connected(server, port),
        TestClient(TestServer(application)) as client,
    ):
        yield client


@pytest.mark.parametrize(
    ("path", "kind", "status"),
    [
        ("/ui/", "text/html", 200),
        ("/ui/page.js", "text/javascript", 200),
        ("/ui/uPlot.LICENSE.txt", "text/plain", 200),
        ("/ui/form?endpoint=no", "application/json", 404),
        ("/ui/no.js", "text/plain", 404),
        ("/ui/..%2fapplication.py", "text/plain", 404),
    ],
)
@in_loop
async def test_each_response_has_the_policy(
    tmp_path: Path, path: str, kind: str, status: int
) -> None:
    """Files, forms and errors of the page forbid scripts, styles and connections of other hosts."""
    async with page_of_a_run(tmp_path) as client:
        response = await client.get(path)
        assert (response.status, response.content_type) == (status, kind)
        assert response.headers["Content-Security-Policy"] == CONTENT_SECURITY_POLICY
        assert response.headers["X-Content-Type-Options"] == "nosniff"


def test_the_policy_allows_only_this_host() -> None:
    """The policy names no host, and allows neither scripts inside the HTML
    nor evaluation of text.
    """
    sources = {word for part in CONTENT_SECURITY_POLICY.split(";") for word in part.split()[1:]}
    assert sources == {"'none'", "'self'", "blob:"}


def test_the_html_needs_no_exception_of_the_policy() -> None:
    """The page has no script or style inside the HTML, which the policy would block."""
    import constructs_triton_tools.local.page as package

    html = (Path(str(package.__file__)).parent / "static" / "index.html").read_text()
    assert "style=" not in html
    assert " on" not in html.replace(" one", "")
    assert html.count("<script") == html.count("<script src=")


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Origin": "https://evil.example"},
        {"Sec-Fetch-Site": "cross-site"},
    ],
    ids=["host", "origin", "site"],
)
@pytest.mark.parametrize(
    "path", ["/", "/ui/", "/ui/events", "/ui/form?endpoint=e&server=v", "/ui/page.js"]
)
@in_loop
async def test_foreign_pages_see_nothing(
    tmp_path: Path, path: str, headers: dict[str, str]
) -> None:
    """A web page of another host, also one whose name resolves to 127.0.0.1, gets 403."""
    async with page_of_a_run(tmp_path) as client:
        assert (await client.get(path, headers=headers, allow_redirects=False)).status == 403


@in_loop
async def test_short_addresses_lead_to_the_page(tmp_path: Path) -> None:
    """The address of the gateway and /ui lead to the page."""
    async with page_of_a_run(tmp_path) as client:
        for path in ("/", "/ui"):
            response = await client.get(path, allow_redirects=False)
            assert (response.status, response.headers["Location"]) == (302, "/ui/")


@in_loop
async def test_without_a_page_there_is_no_route(tmp_path: Path) -> None:
    """A run without --ui serves no page, and records no calls; "/" has POST for other services."""
    application = gateway_application({})
    assert len(application.middlewares) == 1
    async with TestClient(TestServer(application)) as client:
        statuses = [(await client.get(path)).status for path in ("/", "/ui/", "/ui/events")]
        assert statuses == [405, 404, 404]


@in_loop
async def test_form_has_the_inputs(tmp_path: Path) -> None:
    """The form of a variant has the tensors of its model's configuration."""
    async with page_of_a_run(tmp_path) as client:
        form = await (await client.get("/ui/form?endpoint=e&server=v&target=v")).json()
    assert form["model"] == "m"
    assert form["inputs"] == [
        {"name": "X", "datatype": "FP32", "dims": [2], "optional": False, "format": "FORMAT_NONE"}
    ]


def test_event_is_one_line_of_data() -> None:
    """Line breaks of foreign text cannot begin another field of an event."""
    sent = event("log", ["a\ndata: b\r\n\nevent: x\u2028"])
    assert sent.count(b"\n") == 3
    assert b"\r" not in sent
    assert sent.startswith(b"event: log\ndata: ")
    assert sent.endswith(b"\n\n")


async def first_events(client: Client, count: int) -> dict[str, Any]:
    """The data of the first events of a stream, by their names."""
    found: dict[str, Any] = {}
    async with client.get("/ui/events") as response:
        assert response.content_type == "text/event-stream"
        while len(found) < count:
            name = (await response.content.readline()).decode().removeprefix("event: ").strip()
            found[name] = json.loads((await response.content.readline()).removeprefix(b"data: "))
            await response.content.readline()
    return found


@in_loop
async def test_memory_has_the_estimate_beside_the_measured(tmp_path: Path) -> None:
    """The state has what the unpacked models take at least, beside what the processes use."""
    async with page_of_a_run(tmp_path) as client:
        model = next(tmp_path.rglob("model/m"))
        (model / "1").mkdir()
        (model / "config.pbtxt").write_text('backend: "tensorrt"')
        with (model / "1" / "model.plan").open("wb") as plan:
            plan.truncate(3 * 2**20)
        state = (await first_events(client, 2))["state"]
    memory = state["endpoints"][0]["servers"][0]["memory"]
    (host,) = (place for place in memory["places"] if place["place"] == "the host")
    server = load("memory")["host"]["server_bytes"]
    assert host["at_least_bytes"] == pytest.approx(server + 3 * 2**20, rel=0.2)
    assert host["measured_bytes"] is not None
    assert memory["not_counted"] == []


@in_loop
async def test_memory_has_the_regions_of_python_models(tmp_path: Path) -> None:
    """Shared memory is a place of its own, with what the server's regions take."""
    async with page_of_a_run(tmp_path) as client:
        model = next(tmp_path.rglob("model/m"))
        (model / "1").mkdir()
        (model / "config.pbtxt").write_text('backend: "python"')
        (model / "1" / "model.py").write_text("class TritonPythonModel: ...")
        state = (await first_events(client, 2))["state"]
    places = state["endpoints"][0]["servers"][0]["memory"]["places"]
    (shared,) = (place for place in places if place["place"] == "/dev/shm")
    assert shared["at_least_bytes"] == 16 * 2**20
    assert shared["measured_bytes"] == 0


@in_loop
async def test_failed_call_is_in_the_events(tmp_path: Path) -> None:
    """A call that the container failed marks its model, with the container's own words."""
    async with page_of_a_run(tmp_path, status=500) as client:
        assert (await client.post("/endpoints/e/invocations", data=b"x")).status == 424
        events = await first_events(client, 4)
    (server,) = events["state"]["endpoints"][0]["servers"]
    (target,) = server["targets"]
    found = [target[each] for each in ("name", "model", "state", "failed")]
    assert found == ["v", "m", "failed", "<b>no</b>"]
    assert [(each["status"], each["message"]) for each in events["errors"]] == [(424, "<b>no</b>")]
    (row,) = events["rows"]["e"]
    assert row[1:3] == [1, 1]
    assert "statistics" in server["no_statistics"]


@pytest.mark.parametrize(("status", "answered", "errors"), [(200, 200, 0), (400, 424, 1)])
@in_loop
async def test_refused_request_is_no_failure_of_the_model(
    tmp_path: Path, status: int, answered: int, errors: int
) -> None:
    """A model that answers, or refuses a request with 400 in a single-model container, is ready."""
    async with page_of_a_run(tmp_path, status) as client:
        assert (await client.post("/endpoints/e/invocations", data=b"x")).status == answered
        (server,) = (await first_events(client, 2))["state"]["endpoints"][0]["servers"]
        (target,) = server["targets"]
        assert (target["state"], target["calls"], target["errors"]) == ("ready", 1, errors)


@in_loop
async def test_asynchronous_call_counts_when_it_has_ended(tmp_path: Path) -> None:
    """A queued call that the container fails is one failed call,
    although the gateway answered 202.
    """
    async with page_of_a_run(tmp_path, status=500, is_asynchronous=True) as client:
        assert (await client.post("/endpoints/e/async-invocations", data=b"x")).status == 202
        while not (events := await first_events(client, 4))["errors"]:
            await asyncio.sleep(0.05)
    (endpoint,) = events["state"]["endpoints"]
    assert (endpoint["calls"], endpoint["failures"]) == (1, 1)
    assert endpoint["servers"][0]["targets"][0]["state"] == "failed"
