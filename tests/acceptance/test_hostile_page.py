"""The page of ``local up --ui`` in a real browser, when every name and every text is hostile.

Nothing of a model runs in the page, nothing is loaded from elsewhere, no mark changes the order of
what is shown, and no name is too long for the layout.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from browser_page import browsing, needs_browser, opened_page
from local_assembly import below, write_archive
from playwright.sync_api import Browser, Route, expect
from triton_server import needs_server

from constructs_triton_tools.local import LocalEndpoint

BUDGET_MINUTES = 1
pytestmark = [needs_server, needs_browser]
#: Runs as markup, ends attributes and strings, reverses text, moves a cursor, and is long.
HOSTILE = (
    '<img src="http://192.0.2.1/x" onerror="window.ran=1"><script>window.ran=1</script>'
    "\"'`${window.ran=1}javascript:window.ran=1&lt;</pre></textarea>"
    "\u202egnp.exe\u2066\u200f\x1b[31m\x07" + "W" * 3000
)
#: What a configuration and a line of a log can contain: no NUL, no line end.
NAME = HOSTILE.replace("\x07", "").replace("\x1b", "")
CONFIG = """
backend: "python"
input [ {{ name: {name} data_type: TYPE_STRING dims: [ 1 ] }} ]
output [ {{ name: {text} data_type: TYPE_STRING dims: [ 1 ] }},
         {{ name: {scores} data_type: TYPE_FP32 dims: [ 2 ] label_filename: "labels.txt" }} ]
"""
MODEL = """
import json
import sys
import numpy as np
import triton_python_backend_utils as pb_utils

NAME = json.loads({name!r})
HOSTILE = json.loads({hostile!r})


class TritonPythonModel:
    def execute(self, requests):
        sys.stdout.buffer.write(("Error: " + HOSTILE + chr(10)).encode())
        sys.stdout.buffer.flush()
        return [self.answer(each) for each in requests]

    def answer(self, request):
        given = pb_utils.get_input_tensor_by_name(request, NAME).as_numpy()
        if b"fail" in given[0]:
            raise ValueError(HOSTILE)
        text = np.array([HOSTILE.encode()], dtype=object)
        scores = np.array([0.75, 0.25], np.float32)
        outputs = [pb_utils.Tensor("t" + NAME, text), pb_utils.Tensor("s" + NAME, scores)]
        return pb_utils.InferenceResponse(outputs)
"""
#: Anything that a browser would have run, fetched or reordered.
TRACES = """() => ({
    ran: window.ran ?? null,
    scripts: [...document.scripts].filter((each) => !each.src.startsWith(location.origin)).length,
    markup: document.querySelectorAll(
        "img:not([src^='blob:']), iframe, object, a[href^='javascript']",
    ).length,
    marks: /[\\u0000-\\u0008\\u001b\\u200f\\u202a-\\u202e\\u2066-\\u2069]/.test(
        document.body.innerText,
    ),
    width: document.documentElement.scrollWidth - innerWidth,
})"""
CLEAN = {"ran": None, "scripts": 0, "markup": 0, "marks": False, "width": 0}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Headless Chromium of the system."""
    with browsing() as browser:
        yield browser


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalEndpoint]:
    """A model whose tensors, labels, outputs, errors and log lines are hostile."""
    escaped = [json.dumps(each + NAME, ensure_ascii=False) for each in ("", "t", "s")]
    name, text, scores = escaped
    files = {
        "config.pbtxt": CONFIG.format(name=name, text=text, scores=scores),
        "1/model.py": MODEL.format(name=json.dumps(NAME), hostile=json.dumps(HOSTILE)),
        "labels.txt": f"{NAME}\nother\n",
    }
    archive = tmp_path_factory.mktemp("hostile") / "hostile.tar.gz"
    write_archive(archive, below("m", files))
    with LocalEndpoint.from_repository(archive, ui=True) as local:
        yield local


@pytest.mark.parametrize("width", [1440, 390])
def test_texts_of_a_model_are_only_text(
    browser: Browser, hostile: LocalEndpoint, width: int
) -> None:
    """Tensor names, labels, string outputs, an error and the log of a real model."""
    problems: list[str] = []
    page = opened_page(browser, hostile.description["page"], problems, width=width, scheme="light")
    page.wait_for_selector("#send")
    page.get_by_label("Text, or a JSON list of strings").fill("answer")
    page.click("#send")
    expect(page.locator("#answer .answer")).to_contain_text("<img src=")
    expect(page.locator(".scores tbody th").first).to_contain_text("\\u202egnp.exe")
    expect(page.locator("#log")).to_contain_text("Error: <img src=")
    assert page.evaluate(TRACES) == CLEAN
    page.get_by_label("Text, or a JSON list of strings").fill("fail")
    page.click("#send")
    expect(page.locator("#answer .failure")).to_contain_text("<script>")
    expect(page.locator("#error-list")).to_contain_text("<script>")
    assert page.evaluate(TRACES) == CLEAN
    page.context.close()
    assert problems == []


def test_server_that_sends_anything(browser: Browser, hostile: LocalEndpoint) -> None:
    """Names of endpoints, variants, models, stacks, steps and diagnoses, in the events of a run."""
    problems: list[str] = []
    states: list[Any] = []
    page = opened_page(browser, "about:blank", problems, width=390, scheme="light")
    problems.clear()  # about:blank
    page.on("dialog", lambda dialog: problems.append(dialog.message))
    form = {"model": HOSTILE, "max_batch_size": 0, "inference_type": "infer", "notes": [HOSTILE]}
    tensor = {"name": HOSTILE, "datatype": "BYTES", "dims": [1], "format": HOSTILE}
    form |= {"inputs": [tensor], "outputs": [tensor | {"labels": [HOSTILE]}]}
    step = {"model": HOSTILE, "layer": 0, "reads": [HOSTILE], "writes": [HOSTILE]}
    form |= {"steps": [step | {"called_by": HOSTILE}], "region": HOSTILE, "component": HOSTILE}
    page.route("**/ui/form?*", lambda route: route.fulfill(json=form))
    page.route("**/ui/events", lambda route: _send_hostile(route, states))
    page.goto(hostile.description["page"] + "#%E0%A4%A<script>")
    expect(page.locator("#try-title")).to_contain_text("Try <img src=")
    expect(page.locator("#diagnoses")).to_contain_text("<script>")
    expect(page.locator("#graph")).to_contain_text("called by <img")
    assert page.evaluate(TRACES) == CLEAN
    page.locator("#call-curl").or_(page.locator("#send")).first.scroll_into_view_if_needed()
    assert states
    page.context.close()
    assert problems == []


def _send_hostile(route: Route, states: list[Any]) -> None:
    """Answer with one event of each kind; the page connects again and gets them once more."""
    events = {"state": _state(), "errors": [_error()], "log": {HOSTILE: [[1, HOSTILE, True]]}}
    states.append(events["state"])
    body = "".join(f"event: {name}\ndata: {json.dumps(data)}\n\n" for name, data in events.items())
    route.fulfill(content_type="text/event-stream", body=body)


def _error() -> dict[str, Any]:
    names = ("endpoint", "target", "status", "fault", "message")
    return {"time": 1, **dict.fromkeys(names, HOSTILE)}


def _state() -> dict[str, Any]:
    """A state of the run whose texts are all hostile."""
    diagnosis = {"line": HOSTILE, "cause": HOSTILE, "fix": HOSTILE, "other_causes": [HOSTILE]}
    counts = {"calls": 1, "errors": 1, "failures": 1, "calls_per_second": 0.5}
    recent = {"recent_calls": 1, "recent_failures": 1, "recent_errors": 1}
    target = {
        "name": HOSTILE,
        "model": HOSTILE,
        "state": "failed",
        "failed": HOSTILE,
        "diagnosis": diagnosis,
        "place": HOSTILE,
        "failed_step": HOSTILE,
        "milliseconds": [1, 2],
        **counts,
        **recent,
    }
    model = {
        "name": HOSTILE,
        "version": HOSTILE,
        "requests": 1,
        "failures": 0,
        "queue_ms": 1,
        "compute_ms": 1,
        "batches": {HOSTILE: 1},
        "memory_bytes": 1,
    }
    memory = {
        "places": [{"place": HOSTILE, "at_least_bytes": 1, "measured_bytes": None}],
        "not_counted": [HOSTILE],
        "instance_types": [HOSTILE],
    }
    server = {
        "name": HOSTILE,
        "kind": "component",
        "state": "ready",
        "weight": 1,
        "starts": 1,
        "is_multi_model": False,
        "memory_bytes": 1,
        "memory": memory,
        "no_statistics": "",
        "targets": [target],
        "targets_left_out": 0,
        "stand_ins": {HOSTILE: HOSTILE},
        "models": [model],
        "diagnoses": [diagnosis],
        "process_id": 1,
    }
    endpoint = {
        "name": HOSTILE,
        "stack": HOSTILE,
        "is_asynchronous": False,
        "servers": [server],
        **counts,
        **recent,
    }
    return {"endpoints": [endpoint]}
