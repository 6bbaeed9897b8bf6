"""Inference components behind the gateway: chosen by header, and woken from zero."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from fake_container import connected, fake_server, in_loop, running_server
from test_local_gateway import CONTAINER, PREFIX, Run, failing, running, serving

from constructs_triton_tools.local.gateway.inference_components import Copies, LocalComponent
from constructs_triton_tools.local.gateway.running_endpoint import RunningEndpoint
from constructs_triton_tools.local.sources.specs import ComponentSpec, EndpointSpec

NO_CAPACITY = (
    "Inference Component has no capacity to process this request. ApplicationAutoScaling may be"
)


def answering(text: str) -> Any:
    async def answer(request: web.Request) -> web.StreamResponse:
        await request.read()
        return web.Response(text=text)

    return answer


@asynccontextmanager
async def two_components(
    folder: Path, *, wake_seconds: float = 0.0, **zero: bool
) -> AsyncIterator[Run]:
    """Endpoint "e" with the components "good", whose container answers, and "bad", whose fails."""
    messages: list[str] = []
    good, bad = (fake_server(folder, messages) for _ in range(2))
    specs = [
        ComponentSpec(name, CONTAINER, starts_at_zero=zero.get(name, False))
        for name in ("good", "bad")
    ]
    async with (
        running_server(answering("of good")) as good_port,
        running_server(failing(500, "broken")) as bad_port,
        connected(good, good_port),
        connected(bad, bad_port),
    ):
        running = [
            LocalComponent(specs[0], good, wake_seconds),
            LocalComponent(specs[1], bad, wake_seconds),
        ]
        spec = EndpointSpec("e", "s", (), components=tuple(specs), not_run=("chat",))
        endpoint = RunningEndpoint(spec, running)
        async with serving({"e": endpoint}, None) as client:
            yield Run(client, good, messages)


@in_loop
async def test_header_chooses_the_component(tmp_path: Path) -> None:
    """Its own container answers; the caller sees the variant,
    and errors name the component's log group.
    """
    async with two_components(tmp_path) as run:
        path, header = "/endpoints/e/invocations", f"{PREFIX}Inference-Component"
        response = await run.client.post(path, data=b"x", headers={header: "good"})
        assert (response.status, await response.text()) == (200, "of good")
        assert response.headers["x-Amzn-Invoked-Production-Variant"] == "AllTraffic"
        status, body = await run.invoke(Inference_Component="bad")
        assert (status, body["OriginalMessage"]) == (424, "broken")
        assert body["LogStreamArn"].endswith("log-group:/aws/sagemaker/InferenceComponents/bad")
        assert (await run.client.get("/ping")).status == 200
        run.server.is_ready = False
        assert (await run.client.get("/ping")).status == 503


@in_loop
async def test_wrong_headers_are_rejected(tmp_path: Path) -> None:
    """Without a component, with an unknown one, and with headers of other endpoints."""
    async with two_components(tmp_path) as run:
        status, body = await run.invoke()
        assert (status, body["ErrorCode"]) == (400, "INFERENCE_COMPONENT_NAME_MISSING")
        assert body["Message"].startswith(
            "Inference Component Name header is required for endpoints to"
        )
        for headers, words in (
            ({}, "Inference components of this endpoint: good, bad"),
            (
                {"Inference_Component": "chat"},
                "chat does not run on your machine, because its container is",
            ),
            ({"Inference_Component": "a_b"}, "at 'inferenceComponentName'"),
            ({"Inference_Component": "good", "Target_Variant": "v"}, "leave it out"),
            ({"Inference_Component": "good", "Target_Model": "v"}, "leave it out"),
        ):
            assert words in await run.message(**{"Inference_Component": "x", **headers})


@in_loop
async def test_name_of_a_component_is_refused_by_other_endpoints(tmp_path: Path) -> None:
    """In SageMaker's own words."""
    words = "Inference Component Name header is not allowed for endpoints to which you dont"
    async with running(tmp_path, answering("x")) as run:
        assert (await run.message(Inference_Component="good")).startswith(words)


@in_loop
async def test_component_at_zero_has_no_capacity_until_it_has_woken(tmp_path: Path) -> None:
    """The first call starts the wake-up, which is reported once."""
    async with two_components(tmp_path, wake_seconds=60.0, good=True) as run:
        for _ in range(2):
            assert (await run.message(Inference_Component="good")).startswith(NO_CAPACITY)
        assert run.messages == ["e/v: has zero copies; the first call wakes it in 60 s"]
    async with two_components(tmp_path, wake_seconds=0.0, good=True) as run:
        assert await run.invoke(Inference_Component="good") == (200, b"of good")


def test_waking_takes_the_given_time() -> None:
    """From the first call on, not from the start."""
    now = [100.0]
    copies = Copies(5.0, is_at_zero=True, clock=lambda: now[0])
    now[0] = 200.0
    assert copies.are_zero
    assert not copies.are_ready()
    now[0] = 204.9
    assert (copies.are_zero, copies.are_ready()) == (False, False)
    now[0] = 205.0
    assert copies.are_ready()


@pytest.mark.parametrize("has_previous", [True, False])
def test_an_update_keeps_the_copies(tmp_path: Path, has_previous: bool) -> None:
    """With --watch a component that is awake stays awake; a new one starts at zero."""
    spec = ComponentSpec("c", CONTAINER, starts_at_zero=True)
    endpoint = EndpointSpec("e", "s", (), components=(spec,))
    previous, updated = (
        RunningEndpoint(endpoint, [LocalComponent(spec, fake_server(tmp_path), 0.0)])
        for _ in range(2)
    )
    assert previous.components["c"].copies.are_ready()
    updated.keep_copies_of(
        previous if has_previous else RunningEndpoint(EndpointSpec("e", "s", ()), [])
    )
    assert updated.components["c"].copies.are_zero is not has_previous
