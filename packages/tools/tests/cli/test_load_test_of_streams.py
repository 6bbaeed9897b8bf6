"""``constructs-triton load-test --stream``: its arguments, its table and its file."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from chat_server import FIRST, GAP, run_chat_server
from chat_streams import ERROR, LMI, ROLE, WORDS, lines
from null_server import NullServer, run_null_server

from constructs_triton_client import HttpTransport, Invocation
from constructs_triton_core.errors import InvalidValueError, InvocationError
from constructs_triton_tools.cli import load_test, plan
from constructs_triton_tools.cli.load_test.streams import read_limits
from constructs_triton_tools.local.gateway.relay import payload_part
from constructs_triton_tools.measuring.load_test.prepared_requests import prepare
from constructs_triton_tools.measuring.load_test.step import Limits, StepSettings
from constructs_triton_tools.measuring.load_test.step_runner import StepRunner
from constructs_triton_tools.measuring.load_test.stream_figures import StreamLimits
from constructs_triton_tools.planning import read_measurements

INPUTS = ("--input", "text_input=hi:BYTES", "--input", "max_tokens=2:INT32")
SHORT = ("--stream", "--warm-up-seconds", "0", "--step-seconds", "1")
EVENT = b'data: {"text_output":"a","num_output_tokens":2,"model_name":"m"}\n\n'


@pytest.fixture
def server() -> Iterator[NullServer]:
    """A server that sends two events of two tokens each."""
    with run_null_server() as server:
        server.content_type = "text/event-stream"
        server.answer = EVENT * 2
        yield server


def parse(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    load_test.add_arguments(parser)
    return parser.parse_args(words)


def run(*words: str) -> int:
    return load_test.run(parse(*words))


def test_table_file_and_figure(
    server: NullServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A row for each number of open streams, a CSV file that plan reads, and a figure."""
    server.content_type = "application/vnd.amazon.eventstream"
    server.answer = payload_part(EVENT) * 2
    files = ("-o", str(tmp_path / "b.csv"), "--plot", str(tmp_path / "b.svg"))
    bounds = ("--concurrency", "1", "2", "--step-requests", "5")

    assert run("story", "--endpoint-url", server.url, *INPUTS, *SHORT, *bounds, *files) == 0

    out = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in out[2:4]] == [["1", "open"], ["2", "open"]]
    assert all(line.endswith("  tokens  held") for line in out[2:4])
    assert out[4].startswith("highest concurrency held: at least 2 open streams, ")
    assert out[4].endswith("no higher load was tried; add a higher number to --concurrency")
    assert out[5] == "tokens are those that the responses report, as num_output_tokens or usage"

    path, _, body = server.received[-1]
    assert path == "/endpoints/story/invocations-response-stream"
    assert json.loads(body) == {"text_input": ["hi"], "max_tokens": [2]}
    assert "story holds at least 2 open streams" in (tmp_path / "b.svg").read_text()
    first, second = read_measurements(tmp_path / "b.csv")
    assert first.concurrency == 1
    assert second.concurrency == 2
    assert second.token_unit == "tokens"
    assert second.first_token_ms is not None


def test_plan_of_a_measured_file(
    server: NullServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """From the load test to the instances for a number of streams; the target is a concurrency."""
    path = str(tmp_path / "b.csv")
    run(server.url, *INPUTS, *SHORT, "--concurrency", "4", "--step-requests", "8", "-o", path)
    parser = argparse.ArgumentParser()
    plan.add_arguments(parser)
    words = (path, "--concurrent-streams", "30", "--first-token-ms", "60000", "--price", "local=1")
    capsys.readouterr()
    assert plan.run(parser.parse_args(words)) == 0
    out = capsys.readouterr().out
    assert ", at most 8 instances at 8" in out
    assert "from 1 to 15 instances at 2 concurrent requests per instance" in out
    assert "million tokens" in out


def test_rates_are_measured_and_searched(
    server: NullServer, capsys: pytest.CaptureFixture[str]
) -> None:
    """With rates the row has streams per second; a search of concurrency uses whole numbers."""
    assert run(server.url, *INPUTS, *SHORT, "--rates", "80", "--json") == 0
    (step,) = json.loads(capsys.readouterr().out)["steps"]
    assert (step["rate"], step["unit"], step["errors"]) == (80, "tokens", 0)
    assert "concurrency" in step

    searched = ("--concurrency", "--to", "2.5", "--step-requests", "4", "--json")
    run(server.url, *INPUTS, *SHORT, *searched)
    steps = json.loads(capsys.readouterr().out)["steps"]
    assert [step["concurrency"] for step in steps] == [1, 2, 2]

    assert run(server.url, *INPUTS, *SHORT, "--rates", "80") == 0
    assert "highest rate held: at least " in capsys.readouterr().out


def test_first_request_shows_what_is_wrong(server: NullServer) -> None:
    """An endpoint whose first event is an error, or that sends none, gets no load."""
    for answer, message in (
        (b'data: {"error":"no"}\n\n', "the model failed, got no"),
        (b"", "no events"),
    ):
        server.answer = answer
        with pytest.raises(InvocationError, match=message):
            run(server.url, *INPUTS, *SHORT, "--rates", "10")
    assert len(server.received) == 2


def test_errors_and_no_result(server: NullServer, capsys: pytest.CaptureFixture[str]) -> None:
    """A failed stream is in the table with its status and message; goodput names the option."""
    server.answer = EVENT + b'data: {"error":"broke"}\n\n'
    assert run(server.url, *INPUTS, *SHORT, "--concurrency", "1", "--step-requests", "2") == 1
    out = capsys.readouterr().out
    assert "[2 x 200: event 1: the model failed, got broke" in out
    assert out.endswith(
        "no load was held; raise --goodput, use longer steps, or look at the errors\n"
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("--goodput", "first_token=1s"),
            "--goodput: is about streams; add --stream, or remove it",
        ),
        (("--concurrency", "2"), "--concurrency: is about streams"),
        (("--grace-seconds", "2"), "--grace-seconds: is about streams"),
        (("--stream", "--batch"), "--batch: cannot be used with --stream"),
        (("--stream", "--as-json"), "--as-json: cannot be used with --stream"),
        (
            ("--stream", "--target-model", "a.tar.gz"),
            "--target-model: cannot .*multi-model endpoints",
        ),
        (("--stream", "--export-locust", "f.py"), "--export-locust: cannot be used with --stream"),
        (
            ("--stream", "--rates", "2", "--concurrency", "2"),
            "--rates: cannot .*remove it, or --concurrency",
        ),
        (("--stream", "--concurrency", "0"), "--concurrency: must be from 1 to 10000, got 0"),
        (
            ("--stream", "--concurrency", "--from", "0.5"),
            "start: must be from 1 to the maximum rate",
        ),
    ],
)
def test_options_that_do_not_fit(server: NullServer, words: tuple[str, ...], message: str) -> None:
    """The message has the option, the reason and the fix."""
    with pytest.raises(InvalidValueError, match=message):
        run(server.url, *INPUTS, *words)


def test_goodput_has_units() -> None:
    """Milliseconds or seconds; --latency-ms adds a limit of the whole stream."""
    limits = read_limits(
        parse("a", *INPUTS, "--stream", "--goodput", "first_token=1.5s, between_tokens=40ms")
    )
    assert limits.stream == StreamLimits(first_token_ms=1500, between_tokens_ms=40)
    limits = read_limits(parse("a", *INPUTS, "--stream", "--latency-ms", "900"))
    assert limits.stream == StreamLimits(first_token_ms=500, between_tokens_ms=100, latency_ms=900)
    assert limits.latency_ms == 900
    assert read_limits(parse("a", *INPUTS)) == Limits(latency_ms=500)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "200ms",
        "first_token=200",
        "first_token=0ms",
        "ttft=1s",
        "first_token=1.2.3s",
        "first_token=1s," * 2,
    ],
)
def test_invalid_goodput(text: str) -> None:
    """The message has an example."""
    with pytest.raises(
        InvalidValueError, match=r"--goodput: must name each limit once, .* write first_token="
    ):
        read_limits(parse("a", *INPUTS, "--stream", "--goodput", text))


@pytest.mark.parametrize(
    ("load", "settings", "requests"),
    [(5, {"by_concurrency": True}, 7), (1, {"by_concurrency": True}, 3), (100, {}, 7)],
)
def test_processes_share_streams_and_requests(
    server: NullServer, load: float, settings: dict[str, Any], requests: int
) -> None:
    """No more processes than streams or requests;
    together they send exactly as many as one process.
    """
    transport = HttpTransport(server.url)
    request = prepare(transport, Invocation(b"{}", "application/json"), is_stream=True)
    runner = StepRunner([request], Limits(latency_ms=60_000, stream=StreamLimits()), processes=2)
    chosen = StepSettings(
        seconds=2, warm_up_seconds=0, constant=True, most_requests=requests, **settings
    )
    result = runner.measure(load, chosen)
    assert (result.good, len(server.received)) == (requests, requests)


CHAT = {
    "messages": [{"role": "user", "content": "grüß mich"}],
    "stream": True,
    "stream_options": {"include_usage": True},
}


@pytest.mark.parametrize("target", ["sagemaker", "container", "openai"])
def test_chat_completions_are_measured(target: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The event of the role is no token; the usage has their number,
    over each of the three paths.
    """
    with run_chat_server() as server:
        component = ("--endpoint-url", server.url, "--inference-component", "chat")
        words = {
            "sagemaker": ("shared", *component),
            "container": (server.url,),
            "openai": (f"{server.url}/v1/chat/completions",),
        }[target]
        step = (
            "--concurrency",
            "2",
            "--step-requests",
            "4",
            "--goodput",
            "first_token=9s,between_tokens=9s",
        )
        assert run(*words, "--body", json.dumps(CHAT), *SHORT, *step, "--json") == 0
    (found,) = json.loads(capsys.readouterr().out)["steps"]
    assert (found["unit"], found["good"], found["errors"]) == ("tokens", 4, 0)
    assert found["first_token_p50_ms"] >= FIRST * 1000
    # 3 pauses between 4 events for 5 of the 6 tokens; a busy machine may only make them longer.
    assert found["between_tokens_p50_ms"] >= 3 * GAP * 1000 / 5 * 0.8
    assert 0 < found["tokens_per_second"] <= 4 * 6 / found["seconds"] + 0.01
    path, headers, body = server.received[-1]
    assert (path, body) == (PATHS[target], CHAT)
    assert headers.get("X-Amzn-SageMaker-Inference-Component") == (
        "chat" if target == "sagemaker" else None
    )


PATHS = {
    "sagemaker": "/endpoints/shared/invocations-response-stream",
    "container": "/invocations",
    "openai": "/v1/chat/completions",
}


@pytest.mark.parametrize(
    ("answer", "expected"), [(lines(LMI), 0), (lines([ROLE, *WORDS, ERROR]), 1)]
)
def test_json_lines_of_lmi_are_measured(
    server: NullServer,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    answer: bytes,
    expected: int,
) -> None:
    """Each event of LMI's own form is a token; an error in the middle has status 200."""
    server.content_type = "application/jsonlines"
    server.answer = answer
    (tmp_path / "chats.jsonl").write_text(json.dumps({"body": CHAT}))
    words = (
        "--requests",
        str(tmp_path / "chats.jsonl"),
        "--concurrency",
        "1",
        "--step-requests",
        "2",
    )
    assert run(server.url, *words, *SHORT, "--json") == expected
    (found,) = json.loads(capsys.readouterr().out)["steps"]
    assert (found["unit"], found["errors"]) == (("tokens", 0), ("events", 2))[expected]
    assert ("event 4: the model failed, got out of memory" in found["first_error"]) == bool(
        expected
    )


def test_chat_without_stream(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Without --stream, the latency is measured; with it,
    the error says what to add to the request.
    """
    (tmp_path / "chat.json").write_text(json.dumps({**CHAT, "stream": False}))
    with run_chat_server() as server:
        words = (server.url, "--body", f"@{tmp_path / 'chat.json'}")
        assert (
            run(*words, "--rates", "20", "--step-seconds", "1", "--warm-up-seconds", "0", "--json")
            == 0
        )
        (step,) = json.loads(capsys.readouterr().out)["steps"]
        assert (step["errors"], step["good"] > 0) == (0, True)
        with pytest.raises(
            InvocationError, match='is a whole response; add "stream": true to the request'
        ):
            run(*words, *SHORT, "--rates", "20")


def test_chat_without_usage_says_what_to_add(
    server: NullServer, capsys: pytest.CaptureFixture[str]
) -> None:
    """The last line has the option of the request that makes the container report tokens."""
    server.answer = lines([ROLE, *WORDS]) + b"data: [DONE]\n\n"
    step = ("--concurrency", "1", "--step-requests", "2")
    assert run(server.url, "--body", json.dumps(CHAT), *SHORT, *step) == 0
    assert capsys.readouterr().out.endswith(
        'add "stream_options": {"include_usage": true} to the request\n'
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("--body", "{}", "--batch"),
            "--batch: cannot be used with --body: the body is sent as it is; remove it",
        ),
        (("--body", "{}", "--as-json"), "--as-json: cannot be used with --body"),
        (
            ("--body", "{"),
            r"--body: must be a JSON object, got '\{' .*; write it in quotes, or @ and the path of",
        ),
        (
            ("--body", '{"a":' + "[" * 200 + "]" * 200 + "}"),
            "--body: must be a JSON object, got .*nested",
        ),
        (("--body", "[1]"), "--body: must be a JSON object, got .*it is not an object"),
        (
            ("--body", "@/nowhere.json"),
            "--body: must be a JSON object, got '@/nowhere.json' .*No such file",
        ),
    ],
)
def test_bodies_that_cannot_be_sent(
    server: NullServer, words: tuple[str, ...], message: str
) -> None:
    """Nothing is sent, and the message has the fix."""
    with pytest.raises(InvalidValueError, match=message):
        run(server.url, *words)
    assert not server.received
