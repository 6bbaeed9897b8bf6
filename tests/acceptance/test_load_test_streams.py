"""A load test of streams on the real server, with a model whose token times are
known; budget: 2 minutes.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from local_assembly import AssemblyBuilder, below
from local_processes import log_of
from test_local_endpoints import eventually
from triton_server import needs_server

from constructs_triton.cli import main
from constructs_triton_tools.local import LocalEndpoint

BUDGET_MINUTES = 2
pytestmark = needs_server

CONFIG = """
backend: "python"
max_batch_size: 0
model_transaction_policy { decoupled: true }
input [ { name: "text_input" data_type: TYPE_STRING dims: [ 1 ] },
        { name: "events" data_type: TYPE_INT32 dims: [ 1 ] } ]
output [ { name: "text_output" data_type: TYPE_STRING dims: [ 1 ] },
         { name: "num_output_tokens" data_type: TYPE_UINT32 dims: [ 1 ] } ]
"""
#: Answers each request in a thread: 0.4 s to the first event, 0.1 s to each other one, two tokens
#: in each.
MODEL = """
import threading
import time

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        for each in requests:
            text = pb_utils.get_input_tensor_by_name(each, "text_input").as_numpy()[0].decode()
            events = int(pb_utils.get_input_tensor_by_name(each, "events").as_numpy()[0])
            threading.Thread(
                target=self.answer, args=(each.get_response_sender(), text, events)
            ).start()

    def answer(self, sender, text, events):
        print("STARTED", flush=True)
        said = "FINISHED"
        for number in range(events):
            time.sleep(0.1 if number else 0.4)
            if sender.is_cancelled():
                said = "CANCELLED"
                break
            if text == "fail" and number == 2:
                sender.send(pb_utils.InferenceResponse(error=pb_utils.TritonError("broke at 2")))
                break
            tensors = [pb_utils.Tensor("text_output", np.array([b"word "], object))]
            if text != "uncounted":
                tensors.append(pb_utils.Tensor("num_output_tokens", np.array([2], np.uint32)))
            sender.send(pb_utils.InferenceResponse(tensors))
        sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
        print(said, flush=True)
"""
LOOSE = ("--goodput", "first_token=60s,between_tokens=60s")


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalEndpoint]:
    files = below("timed", {"config.pbtxt": CONFIG, "1/model.py": MODEL})
    environment = {
        "SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "timed",
        "SAGEMAKER_TRITON_INFERENCE_TYPE": "generate_stream",
    }
    builder = AssemblyBuilder(tmp_path_factory.mktemp("streams") / "cdk.out")
    builder.serve("Timed", files, "timed", environment)
    with LocalEndpoint.from_assembly(builder.write()) as local:
        yield local


def words_of(
    local: LocalEndpoint, text: str = "hi", events: int = 5, *, over_http: bool = False
) -> list[str]:
    """The words of a load test, over InvokeEndpointWithResponseStream or as
    a container is called.
    """
    url = local.endpoint_url
    target = [f"{url}/endpoints/timed"] if over_http else ["timed", "--endpoint-url", url]
    inputs = ("--input", f"text_input={text}:BYTES", "--input", f"events={events}:INT32")
    return ["load-test", *target, "--stream", *inputs, "--warm-up-seconds", "0"]


def measure(capsys: pytest.CaptureFixture[str], words: list[str], *options: str) -> tuple[int, Any]:
    """The exit code, and the only step."""
    code = main([*words, "--json", *options])
    (step,) = json.loads(capsys.readouterr().out)["steps"]
    return code, step


def said(local: LocalEndpoint, word: str) -> int:
    """How often the model has printed this word."""
    return log_of(local).read_text().count(word)


@pytest.mark.parametrize("over_http", [False, True])
def test_figures_are_those_of_the_model(
    local: LocalEndpoint, capsys: pytest.CaptureFixture[str], *, over_http: bool
) -> None:
    """Sleeping is never shorter than asked for, and no figure is mistaken for another one."""
    words = words_of(local, over_http=over_http)
    code, step = measure(capsys, words, "--concurrency", "2", "--step-requests", "6", *LOOSE)
    assert (code, step["good"], step["errors"], step["unit"]) == (0, 6, 0, "tokens")
    assert (step["concurrency"], step["closed"]) == (2, 0)
    # A busy machine may delay the event that a gap begins with, so a gap may be shorter than its
    # sleep.
    assert step["first_token_p50_ms"] >= 400
    assert 50 <= step["second_token_p50_ms"] < step["first_token_p50_ms"]
    assert step["between_tokens_p50_ms"] >= 25
    assert step["latency_ms"] >= 800
    assert step["goodput_per_second"] == pytest.approx(6 / step["seconds"], abs=0.01)
    assert 0 < step["tokens_per_second_per_user"] <= 1000 / 25
    assert 0 < step["tokens_per_second"] <= 6 * 10 / step["seconds"] + 0.01


def test_events_are_counted_where_tokens_are_not(
    local: LocalEndpoint, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without num_output_tokens the table and the last line say that events are counted."""
    assert (
        main([*words_of(local, "uncounted"), "--rates", "4", "--step-requests", "4", *LOOSE]) == 0
    )
    out = capsys.readouterr().out
    assert "  events  held" in out
    assert "each event counts as a token; one event may hold several" in out


def test_goodput_and_verdict_follow_the_limits(
    local: LocalEndpoint, capsys: pytest.CaptureFixture[str]
) -> None:
    """A limit below what the model sleeps is never met."""
    limits = ("--goodput", "first_token=0.3s,between_tokens=60s")
    code, step = measure(
        capsys, words_of(local), "--concurrency", "2", "--step-requests", "4", *limits
    )
    assert (code, step["verdict"], step["goodput_per_second"], step["good"]) == (
        1,
        "not held",
        0,
        4,
    )
    assert step["reason"].startswith("p95 first token ")


@pytest.mark.parametrize("over_http", [False, True])
def test_errors_within_a_stream_fail_it(
    local: LocalEndpoint, capsys: pytest.CaptureFixture[str], *, over_http: bool
) -> None:
    """They have status 200, and are counted with the model's message."""
    words = words_of(local, "fail", over_http=over_http)
    code, step = measure(capsys, words, "--concurrency", "2", "--step-requests", "4", *LOOSE)
    assert (code, step["good"], step["statuses"]) == (1, 0, {"200": 4})
    assert "event 2: the model failed, got broke at 2" in step["first_error"]


def assert_all_are_cancelled(local: LocalEndpoint, since: tuple[int, int]) -> None:
    """The model has ended every request, and saw that the callers of all since then left."""
    assert eventually(
        lambda: said(local, "STARTED") == said(local, "FINISHED") + said(local, "CANCELLED")
    )
    started, cancelled = since
    assert said(local, "CANCELLED") - cancelled == said(local, "STARTED") - started > 0


@pytest.mark.parametrize("over_http", [False, True])
def test_time_ends_every_stream(
    local: LocalEndpoint, capsys: pytest.CaptureFixture[str], *, over_http: bool
) -> None:
    """Streams of 100 s are closed when a step of a second and its grace are over,
    and are no errors.
    """
    since = said(local, "STARTED"), said(local, "CANCELLED")
    bounds = ("--concurrency", "3", "--step-seconds", "1", "--grace-seconds", "1")
    words = words_of(local, events=1000, over_http=over_http)
    _, step = measure(capsys, words, *bounds, *LOOSE)
    assert (step["closed"], step["errors"], step["good"]) == (3, 0, 0)
    assert step["first_token_p50_ms"] >= 400
    assert_all_are_cancelled(local, since)


@pytest.mark.parametrize("processes", ["1", "2"])
def test_interrupt_ends_every_stream(local: LocalEndpoint, processes: str) -> None:
    """After an interrupt of the command alone, no process and no stream is left,
    and the exit code is 130.
    """
    since = said(local, "STARTED"), said(local, "CANCELLED")
    options = ("--concurrency", "4", "--step-seconds", "60", "--processes", processes)
    words = [sys.executable, "-m", "constructs_triton.cli", *words_of(local, events=1000), *options]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=os.environ) as command:
        # The first stream is the trial of the request.
        assert eventually(lambda: said(local, "STARTED") >= since[0] + 5)
        command.send_signal(signal.SIGINT)
        out, _ = command.communicate(timeout=60)
    assert command.returncode == 130
    assert out.endswith("interrupted: the steps above were measured\n")
    assert_all_are_cancelled(local, since)
