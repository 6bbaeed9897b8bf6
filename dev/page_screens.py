"""Draws six prepared states of the page of a run, to ask people who see only the picture what is
wrong.

``python dev/page_screens.py FOLDER`` writes ``1.png`` to ``6.png`` in a shuffled order, and
``key.txt``. The page is the real one; its events are prepared here in place of a run's. It needs
Chromium and playwright.
"""

from __future__ import annotations

import asyncio
import json
import random
import shutil
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aiohttp import web
from playwright.async_api import Browser, async_playwright

from constructs_triton_tools.local.page.page_files import HEADERS, PageFiles, event, secure

_ERROR = (
    "Failed to process the request(s) for model 'preprocess_0', message: UnidentifiedImageError: "
)
_STEP_ERROR = f"in ensemble 'digits', {_ERROR}cannot identify image file"
_MODEL_ERROR = (
    "Failed to process the request(s) for model 'forecast_0', message: KeyError: 'weekday'"
)
_STEPS = (
    ("preprocess", ["image"], ["pixels"]),
    ("classifier", ["pixels"], ["probabilities", "label"]),
)
_CATALOG = ("anomaly", "forecast", "sentiment")


def _target(name: str, model: str, **known: Any) -> dict[str, Any]:
    quiet = {"calls": 0, "errors": 0, "failures": 0, "recent_calls": 0, "recent_errors": 0}
    figures = {"recent_failures": 0, "calls_per_second": 0.0, "milliseconds": [None, None, None]}
    nothing = {"failed": "", "place": "", "failed_step": "", "diagnosis": None, "state": "ready"}
    return {"name": name, "model": model, **quiet, **figures, **nothing, **known}


def _busy(calls: int, seconds: float, *, failures: int = 0, **known: Any) -> dict[str, Any]:
    """Return the figures of a target with calls in the last minute; a latency is in seconds."""
    counts = {"calls": 3 * calls, "errors": failures, "failures": failures, "recent_calls": calls}
    latencies = [1000 * seconds * factor for factor in (1, 1.4, 1.9)]
    recent = {
        "recent_errors": failures,
        "recent_failures": failures,
        "calls_per_second": calls / 60,
    }
    return {**counts, **recent, "milliseconds": latencies, **known}


def _model(
    name: str, requests: int, queue: float, compute: float, failures: int = 0
) -> dict[str, Any]:
    """Return the counters of a model; ``queue`` and ``compute`` are milliseconds of a request."""
    times = {
        "queue_ms": requests * queue,
        "compute_ms": requests * compute,
        "batches": {"1": requests} if requests else {},
    }
    return {
        "name": name,
        "version": "1",
        "memory_bytes": None,
        "requests": requests,
        "failures": failures,
        **times,
    }


def _endpoint(
    name: str, targets: list[dict[str, Any]], models: list[Any], *, several: bool
) -> dict[str, Any]:
    names = ("calls", "errors", "failures", "recent_calls", "recent_errors", "recent_failures")
    server = {
        "name": "AllTraffic",
        "kind": "variant",
        "state": "ready",
        "weight": 1,
        "is_multi_model": several,
        "starts": 1,
        "memory_bytes": 431 << 20,
        "no_statistics": "",
        "targets": sorted(targets, key=lambda each: each["state"] != "failed"),
        "targets_left_out": 0,
        "stand_ins": {},
        "models": models,
        "diagnoses": [],
        "process_id": 4711 if several else 4710,
    }
    sums = {each: sum(target[each] for target in targets) for each in names}
    return {"name": name, "stack": "Shop", "is_asynchronous": False, **sums, "servers": [server]}


def _run(
    digits: Mapping[str, Any],
    *,
    catalog: Mapping[str, Mapping[str, Any]] | None = None,
    steps: tuple[tuple[int, float, float], ...] = ((1260, 0.6, 9.0), (1260, 1.2, 14.0)),
) -> list[dict[str, Any]]:
    """Return the endpoints of a run; ``steps`` has requests, queue and compute of each step."""
    models = [_model(name, *each) for (name, _, _), each in zip(_STEPS, steps, strict=True)]
    models.append(_model("digits", steps[-1][0], 0, sum(sum(each[1:]) for each in steps)))
    states = catalog or {}
    targets = [
        _target(f"{name}.tar.gz", name, **states.get(name, _busy(40, 0.021))) for name in _CATALOG
    ]
    loaded = [
        _model(f"{name}.tar.gz", 120, 0.2, 18.0)
        for name in _CATALOG
        if states.get(name, {}).get("calls", 1)
    ]
    endpoints = [
        _endpoint("digits", [_target("AllTraffic", "digits", **digits)], models, several=False),
        _endpoint("catalog", targets, loaded, several=True),
    ]
    return sorted(endpoints, key=lambda each: not each["failures"])  # as the observer sorts them


_UNLOADED = {name: {"state": "not loaded"} for name in _CATALOG}
_WELL = _run(_busy(420, 0.026))
_FAILED = _busy(
    40,
    0.019,
    failures=40,
    state="failed",
    failed=_MODEL_ERROR,
    place="forecast/1/model.py, line 31",
)
#: The endpoints of each state, and what is shown of them: the selected target, and failures in the
#: charts.
SCREENS: Mapping[str, list[dict[str, Any]]] = {
    "all well": _WELL,
    "one model failing": _run(_busy(420, 0.026), catalog={"forecast": _FAILED}),
    "one step failing": _run(
        _busy(
            420,
            0.012,
            failures=420,
            state="failed",
            failed=_STEP_ERROR,
            failed_step="preprocess",
            place="digits/preprocess/1/model.py, line 17",
        ),
        steps=((1260, 0.6, 9.0), (840, 1.2, 14.0)),
    ),
    "not loaded yet": _run({}, catalog=_UNLOADED, steps=((0, 0, 0), (0, 0, 0))),
    "overloaded": _run(_busy(1180, 2.61), steps=((3540, 12.0, 9.0), (3540, 2540.0, 41.0))),
    "stopped": _WELL,
}


def _form(target: str) -> dict[str, Any]:
    """Return the form of a model: that of the digits takes a picture,
    and the others take numbers.
    """
    call = {
        "inference_type": "infer",
        "is_decoupled": False,
        "region": "eu-west-1",
        "component": None,
    }
    call |= {
        "variant": None,
        "is_shadow": False,
        "is_multi_model": target != "AllTraffic",
        "notes": [],
    }
    if target == "AllTraffic":
        tensors, name = (
            [{"name": "image", "datatype": "BYTES", "dims": [1], "optional": False}],
            "digits",
        )
        steps = [
            {"model": step, "layer": layer, "reads": reads, "writes": writes, "called_by": ""}
            for layer, (step, reads, writes) in enumerate(_STEPS)
        ]
    else:
        name = target.partition(".")[0]
        tensors = [{"name": "values", "datatype": "FP32", "dims": [-1], "optional": False}]
        steps = [{"model": name, "layer": 0, "reads": [], "writes": [], "called_by": ""}]
    return {
        **call,
        "model": name,
        "max_batch_size": 8,
        "inputs": tensors,
        "outputs": [],
        "steps": steps,
    }


def _rows(endpoint: Mapping[str, Any]) -> list[list[float]]:
    """Return the rows of the charts: five minutes of the rate and the latencies of the endpoint."""
    (server,) = endpoint["servers"]
    busiest = max(server["targets"], key=lambda each: each["recent_calls"])
    if not endpoint["recent_calls"]:
        return []
    rate, share = (
        endpoint["recent_calls"] / 60,
        endpoint["recent_failures"] / endpoint["recent_calls"],
    )
    generator, now = random.Random(1), int(time.time())
    rows = []
    for at in range(now - 240, now):
        calls = max(1, round(rate * generator.uniform(0.7, 1.3)))
        errors = round(calls * share) if at > now - 60 else 0
        rows.append(
            [
                at,
                calls,
                errors,
                *(each * generator.uniform(0.9, 1.1) for each in busiest["milliseconds"]),
            ]
        )
    return rows


def _errors(endpoints: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {"time": time.time() - 3 * number, "endpoint": endpoint["name"], "target": target["name"]}
        | {"status": 424, "fault": "model", "message": target["failed"]}
        for endpoint in endpoints
        for target in endpoint["servers"][0]["targets"]
        if target["failed"]
        for number in range(6)
    ]


def _earlier(endpoints: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the state half a minute before: with fewer requests in the counters of the models."""
    earlier: list[dict[str, Any]] = json.loads(json.dumps(endpoints))
    for model in (each for endpoint in earlier for each in endpoint["servers"][0]["models"]):
        for name in ("requests", "queue_ms", "compute_ms"):
            model[name] = model[name] // 2
    return earlier


def _application(endpoints: list[dict[str, Any]]) -> web.Application:
    async def events(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={**HEADERS, "Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(event("rows", {each["name"]: _rows(each) for each in endpoints}))
        for state in (_earlier(endpoints), endpoints):
            await response.write(event("state", {"endpoints": state}))
        await response.write(event("errors", _errors(endpoints)))
        lines = [
            [1, "digits  http://127.0.0.1:8080/endpoints/digits/invocations", False],
            [2, "ready", False],
        ]
        await response.write(event("log", {"local up": lines}))
        await asyncio.sleep(3600)
        return response

    async def form(request: web.Request) -> web.Response:
        return web.json_response(_form(request.query["target"]))

    page = web.Application(middlewares=[secure])
    page.router.add_get("/events", events)
    page.router.add_get("/form", form)
    PageFiles("index.html").add_to(page)
    application = web.Application()
    application.add_subapp("/ui/", page)
    return application


async def _draw(browser: Browser, name: str, path: Path) -> None:
    runner = web.AppRunner(_application(SCREENS[name]), shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    page = await browser.new_page(viewport={"width": 1440, "height": 900}, locale="en-US")
    host, port = runner.addresses[0][:2]
    await page.goto(f"http://{host}:{port}/ui/")
    await page.wait_for_selector("#send")
    await page.wait_for_timeout(500)
    if name == "stopped":
        await runner.cleanup()
        await page.wait_for_timeout(500)
    await page.screenshot(path=path)
    await page.close()
    await runner.cleanup()


async def _main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    names = random.SystemRandom().sample(list(SCREENS), len(SCREENS))
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        for number, name in enumerate(names, 1):
            await _draw(browser, name, folder / f"{number}.png")
        await browser.close()
    key = "".join(f"{number} {name}\n" for number, name in enumerate(names, 1))
    (folder / "key.txt").write_text(key, encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(_main(Path(sys.argv[1])))
