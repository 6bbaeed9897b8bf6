"""``constructs-triton load-test`` measures a server on this machine."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from null_server import NullServer, run_null_server

from constructs_triton_client import InMemoryTransport
from constructs_triton_core.errors import InvalidValueError, InvocationError
from constructs_triton_tools.cli import load_test
from constructs_triton_tools.cli.load_test import requests as load_requests
from constructs_triton_tools.cli.load_test import tested_endpoint
from constructs_triton_tools.cli.load_test.requests import BodyForm
from constructs_triton_tools.measuring.load_test.target import Target
from constructs_triton_tools.planning import read_measurements

INPUT = ("--input", "x=1.0,2.0:FP32")
SHORT = ("--step-seconds", "1", "--warm-up-seconds", "0", "--latency-ms", "60000")


@pytest.fixture
def server() -> Iterator[NullServer]:
    with run_null_server() as server:
        yield server


def run(*words: str) -> int:
    parser = argparse.ArgumentParser()
    load_test.add_arguments(parser)
    return load_test.run(parser.parse_args(words))


def test_fixed_rates_are_measured_and_written(
    server: NullServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A row for each rate, a CSV file that plan reads, and a figure."""
    files = ("-o", str(tmp_path / "b.csv"), "--plot", str(tmp_path / "b.svg"))
    words = ("digits", "--endpoint-url", server.url, *INPUT, *SHORT, "--rates", "80", "100", *files)
    assert run(*words) == 0
    printed = capsys.readouterr()
    assert f"constructs-triton plan {tmp_path / 'b.csv'}" in printed.err
    out = printed.out.splitlines()
    assert out[0].split() == ["rate/s", "good/s", "p50", "ms", "p95", "ms", "p99", "ms", "result"]
    assert [line.split()[0] for line in out[1:3]] == ["80.0", "100.0"]
    assert out[3].startswith("highest rate held: at least ")
    assert out[3].endswith("because no higher load was tried; add a higher rate to --rates")
    assert "digits holds at least" in (tmp_path / "b.svg").read_text()
    measured = read_measurements(tmp_path / "b.csv")
    assert {(each.configuration, each.instance_type) for each in measured} == {("digits", "local")}
    assert [each.is_lower_bound for each in measured] == [False, True]
    assert {path for path, _, _ in server.received} == {"/endpoints/digits/invocations"}


def test_search_prints_one_json_object(
    server: NullServer, capsys: pytest.CaptureFixture[str]
) -> None:
    """The best step is the confirmed one, three times as long; the maximum ended the search."""
    words = (server.url, *INPUT, *SHORT, "--from", "40", "--to", "80", "--json")
    assert run(*words) == 0
    answer = json.loads(capsys.readouterr().out)
    assert [step["rate"] for step in answer["steps"]] == [40, 80, 80]
    assert (answer["best"]["seconds"], answer["best"]["is_lower_bound"]) == (3, True)


def test_each_target_model_is_loaded_before_the_test(server: NullServer, tmp_path: Path) -> None:
    """One request goes to each target model first, however many lines it has."""
    lines = [{"body": {"id": str(n)}, "target_model": f"{n % 2}.tar.gz"} for n in range(6)]
    (tmp_path / "mix.jsonl").write_text("\n".join(map(json.dumps, lines)))
    run(server.url, "--requests", str(tmp_path / "mix.jsonl"), *SHORT, "--rates", "80")
    first = [path for path, _, _ in server.received[:2]]
    assert sorted(first) == ["/models/0.tar.gz/invoke", "/models/1.tar.gz/invoke"]
    assert 55 <= len(server.received) <= 110


def test_slow_endpoint_gets_longer_steps(
    server: NullServer, capsys: pytest.CaptureFixture[str]
) -> None:
    """A step has enough requests that twice as many over the limit as allowed are noticed."""
    run(server.url, *INPUT, *SHORT, "--rates", "40", "--json")
    assert json.loads(capsys.readouterr().out)["steps"][0]["seconds"] == 1.9


def test_few_requests_are_a_doubt(server: NullServer, capsys: pytest.CaptureFixture[str]) -> None:
    """20 requests without one over the limit do not show that 95 percent are within it."""
    assert run(server.url, *INPUT, *SHORT, "--rates", "60", "--step-requests", "20") == 0
    assert capsys.readouterr().out.splitlines()[-1] == (
        "0 of 20 requests were over the limit, so the rate is held with a confidence of 64% only; "
        "raise --step-seconds or --step-requests"
    )


def test_a_disturbed_rate_is_said(server: NullServer, capsys: pytest.CaptureFixture[str]) -> None:
    """A rate that is not held once, and is held with a higher one afterwards,
    is named and does not count.
    """
    server.status = lambda number: 503 if number == 20 else 200
    assert run(server.url, *INPUT, *SHORT, "--rates", "80", "80", "100", "100") == 0
    out = capsys.readouterr().out.splitlines()
    assert "not held: 1 errors" in out[1]
    assert out[-1] == (
        "not held at first, but held later or at higher rates: 80.0 per second; something "
        "disturbed the endpoint or this machine"
    )


def test_a_variant_is_called_and_named(server: NullServer, tmp_path: Path) -> None:
    """Each request names the variant, and so do the rows."""
    words = (
        "--target-variant",
        "Blue",
        *INPUT,
        *SHORT,
        "--rates",
        "80",
        "-o",
        str(tmp_path / "b.csv"),
    )
    assert run("digits", "--endpoint-url", server.url, *words) == 0
    assert {headers["X-Amzn-SageMaker-Target-Variant"] for _, headers, _ in server.received} == {
        "Blue"
    }
    assert read_measurements(tmp_path / "b.csv")[0].configuration == "digits/Blue"


def test_errors_are_shown_and_nothing_is_held(
    server: NullServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first request of the trial is answered, and those of the test are not: exit code 1, and
    no plan is proposed.
    """
    server.status = lambda number: 200 if number == 1 else 503
    table = ("-o", str(tmp_path / "b.csv"))
    assert run(server.url, *INPUT, *SHORT, "--rates", "80", *table) == 1
    out, notes = capsys.readouterr()
    assert "wrote" in notes
    assert "constructs-triton plan" not in notes
    assert "not held:" in out
    assert "x 503: 503" in out
    assert "no rate was held" in out


def test_endpoint_that_answers_no_request_is_an_error_at_once(server: NullServer) -> None:
    """A trial request shows what is wrong before any load is sent."""
    server.status = lambda _: 400
    with pytest.raises(InvocationError, match=r"no"):
        run(server.url, *INPUT, *SHORT, "--rates", "10")
    assert len(server.received) == 1


def test_interrupted_test_writes_what_it_has(
    server: NullServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """After Ctrl-C the finished steps are written, and the exit code is 130."""
    from constructs_triton_tools.measuring.load_test.step_runner import StepRunner

    measure = StepRunner.measure

    def interrupted(self: StepRunner, rate: float, settings: Any) -> Any:
        if rate > 80:
            raise KeyboardInterrupt
        return measure(self, rate, settings)

    monkeypatch.setattr(StepRunner, "measure", interrupted)
    words = (server.url, *INPUT, *SHORT, "--rates", "80", "90", "-o", str(tmp_path / "b.csv"))
    assert run(*words) == 130
    assert len(read_measurements(tmp_path / "b.csv")) == 1
    assert "interrupted: the steps above were measured" in capsys.readouterr().out


@pytest.fixture
def described(monkeypatch: pytest.MonkeyPatch) -> list[Target]:
    """What AWS says about the endpoint; tests put it in."""
    targets: list[Target] = []
    monkeypatch.setattr(tested_endpoint, "describe_target", lambda *_, **__: targets[0])
    return targets


def label(*words: str) -> Any:
    parser = argparse.ArgumentParser()
    load_test.add_arguments(parser)
    arguments = parser.parse_args(["pets", *INPUT, *words])
    return tested_endpoint.describe_test(arguments, None)


def test_endpoint_in_aws_needs_yes_and_no_scaling(
    described: list[Target], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Load costs money and reaches other callers, and scaling changes what is measured."""
    described.append(Target("ml.g5.xlarge", 2, True))
    with pytest.raises(
        InvalidValueError, match=r"may change the instance count .* --allow-scaling"
    ):
        label("--yes")
    monkeypatch.setattr(
        tested_endpoint, "cost_per_hour", lambda _session, instances: f"2 USD for {instances}"
    )
    with pytest.raises(InvalidValueError, match=r"no terminal can answer; add --yes"):
        label("--allow-scaling")
    shown = "Send load to pets, whose instances cost 2 USD for {'ml.g5.xlarge': 2}? It may disturb"
    assert shown in capsys.readouterr().err
    found = label("--yes", "--allow-scaling")
    assert (found.instance_type, found.instance_type_source, found.instance_count) == (
        "ml.g5.xlarge",
        "endpoint",
        2,
    )


def test_unknown_instances_have_to_be_given(
    described: list[Target], capsys: pytest.CaptureFixture[str]
) -> None:
    """Where AWS does not describe the endpoint, the CSV file needs the options."""
    described.append(Target(notes=("The instances of pets are unknown.",)))
    with pytest.raises(
        InvalidValueError, match=r"pets: its instances are unknown; set --instance-type"
    ):
        label("--yes", "-o", "b.csv")
    assert "warning: The instances of pets are unknown." in capsys.readouterr().err
    found = label("--yes", "-o", "b.csv", "--instance-type", "ml.g5.xlarge", "--instances", "3")
    assert (found.instance_type_source, found.instance_count) == ("given", 3)


def test_local_run_is_labelled_local() -> None:
    """A laptop is not an instance type, unless a person says so."""
    url = ("--endpoint-url", "http://127.0.0.1:8080")
    assert (label(*url).instance_type, label(*url).instance_type_source) == ("local", "local")
    given = label(*url, "--instance-type", "ml.g4dn.xlarge", "--configuration", "pt-base")
    assert (given.instance_type, given.instance_type_source) == ("ml.g4dn.xlarge", "given")
    assert given.configuration == "pt-base"
    with pytest.raises(InvalidValueError, match=r'did you mean "ml\.g5\.xlarge"'):
        label(*url, "--instance-type", "g5.xlarge")


def test_locustfile_is_written_instead(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is sent, so it needs neither a server nor --yes."""
    path = tmp_path / "locustfile.py"
    assert run("pets", *INPUT, "--export-locust", str(path)) == 0
    compile(path.read_text(), str(path), "exec")
    with pytest.raises(InvalidValueError, match=r"--export-locust: calls InvokeEndpoint"):
        run("http://127.0.0.1:8080", *INPUT, "--export-locust", str(path))


def test_template_of_aiperf_is_written_instead(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The tensors are JSON, and the command that sends them is printed; in AWS with a proxy."""
    path = tmp_path / "request.j2"
    words = ("pets", *INPUT, "--export-aiperf", str(path))
    assert run(*words, "--endpoint-url", "http://127.0.0.1:1234") == 0
    (tensor,) = json.loads(path.read_text())["inputs"]
    assert tensor["data"] == [1.0, 2.0]
    assert "--url http://127.0.0.1:1234 " in capsys.readouterr().out
    assert run(*words) == 0
    assert "AIPerf does not sign requests" in capsys.readouterr().out


def test_template_of_aiperf_is_one_request(tmp_path: Path) -> None:
    """A mix of requests, and a container, which has no InvokeEndpoint, are refused."""
    path = tmp_path / "request.j2"
    (tmp_path / "mix.jsonl").write_text('{"body": {"inputs": []}}\n' * 2)
    mix = ("--requests", str(tmp_path / "mix.jsonl"))
    with pytest.raises(InvalidValueError, match=r"a template is one request, .* has 2"):
        run("pets", *mix, "--export-aiperf", str(path))
    with pytest.raises(InvalidValueError, match=r"--export-aiperf: calls InvokeEndpoint"):
        run("http://127.0.0.1:8080", *INPUT, "--export-aiperf", str(path))
    assert not path.exists()


# --- requests -------------------------------------------------------------------------------------


def test_lines_are_requests_with_weights(tmp_path: Path) -> None:
    """Inputs, target models, inference components, weights and whole bodies."""
    (tmp_path / "cat.png").write_bytes(b"meow")
    (tmp_path / "mix.jsonl").write_text(
        '{"input": {"image": "@cat.png"}, "target_model": "cats.tar.gz", "weight": 3}\n\n'
        '{"body": {"inputs": []}, "inference_component": "dogs"}\n'
    )
    first, second = load_requests.read_lines(
        tmp_path / "mix.jsonl",
        {"TargetModel": "all.tar.gz"},
        with_batch=False,
        form=BodyForm.BINARY,
    )
    assert (first[0], first[1].options) == (3, {"TargetModel": "cats.tar.gz"})
    assert first[1].body.endswith(b"meow")
    assert (second[0], second[1].body) == (1, b'{"inputs":[]}')
    assert second[1].options == {"TargetModel": "all.tar.gz", "InferenceComponentName": "dogs"}


@pytest.mark.parametrize(
    "text",
    [
        '{"input": {"x": "@large.npy"}}\n{"input": {"x": "@large.npy"}}',
        '\n{"input": {"x": "@large.npy", "y": "@large.npy"}}',
        '\n{"input": {"x": "@large", "y": "@large"}}',
    ],
)
def test_requests_are_bounded_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    """A line of a few bytes names a large file, so the sum of all requests is bounded too."""
    monkeypatch.setattr(load_requests, "_MOST_BYTES", 1500)
    np.save(tmp_path / "large.npy", np.zeros(1000, np.uint8))
    (tmp_path / "large").write_bytes(bytes(1000))
    (tmp_path / "mix.jsonl").write_text(text)
    with pytest.raises(
        InvalidValueError, match=r"mix\.jsonl: line 2: the requests up to this line must have"
    ):
        load_requests.read_lines(tmp_path / "mix.jsonl", {}, with_batch=False, form=BodyForm.BINARY)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", r"line 1: must be JSON"),
        ("[]", r'line 1: must be an object with "input", "body" or'),
        ('{"input": {}, "model": "a"}', r"line 1: must be an object .* correct its keys"),
        ('{"body": {}, "weight": 0}', r"line 1: weight must be a number above 0, got 0"),
        ('{"input": ["x=1:FP32"]}', r'line 1: "input" must map names to strings'),
        ("", r"has no lines"),
    ],
)
def test_invalid_line_is_refused(tmp_path: Path, line: str, message: str) -> None:
    """The message has the file and the line."""
    path = tmp_path / "mix.jsonl"
    path.write_text(line)
    with pytest.raises(InvalidValueError, match=message):
        load_requests.read_lines(path, {}, with_batch=False, form=BodyForm.BINARY)
    with pytest.raises(InvalidValueError, match=r"--requests: .*absent.jsonl cannot be read"):
        load_requests.read_lines(
            tmp_path / "absent.jsonl", {}, with_batch=False, form=BodyForm.BINARY
        )


def test_random_values_are_in_their_range() -> None:
    """The same seed gives the same sixteen requests."""
    texts = ["ids=INT64[1,128]:5..7", "x=FP32[2]", "flag=BOOL[3]", "text=BYTES[1]", "half=BF16[2]"]
    requests, again = (
        load_requests.random_invocations(texts, {}, seed=1, form=BodyForm.BINARY) for _ in range(2)
    )
    assert requests == again
    assert len({invocation.body for _, invocation in requests}) == 16


def test_random_tensors_have_their_shape() -> None:
    """The body of a JSON request shows shape, datatype and values."""
    ((_, invocation), *_) = load_requests.random_invocations(
        ["ids=INT64[1,128]:5..7"], {}, seed=1, form=BodyForm.JSON
    )
    (tensor,) = json.loads(invocation.body)["inputs"]
    assert (tensor["name"], tensor["datatype"], tensor["shape"]) == ("ids", "INT64", [1, 128])
    assert set(np.ravel(tensor["data"])) == {5, 6, 7}


def test_random_inputs_of_a_repository() -> None:
    """Without a name, every input of the model has random values of its shape,
    the same for the same seed.
    """
    parser = argparse.ArgumentParser()
    load_test.add_arguments(parser)
    models = Path(__file__).parents[4] / "assets" / "model_repositories" / "digits"
    words = [
        "pixels",
        "--random",
        "--repository",
        str(models),
        "--model",
        "classifier",
        "--as-json",
    ]
    requests, again = (
        load_test._invocations(parser.parse_args(words), InMemoryTransport(dict)) for _ in range(2)
    )
    assert requests == again
    assert len({invocation.body for _, invocation in requests}) == 16
    assert json.loads(requests[0][1].body)["inputs"]


@pytest.mark.parametrize(
    "text", ["ids", "ids=INT64", "ids=INT65[1]", "ids=INT64[a]", "ids=INT64[1]:5"]
)
def test_invalid_random_tensor_is_refused(text: str) -> None:
    """The message has an example."""
    with pytest.raises(
        InvalidValueError, match=r"--random: must have the form NAME=DATATYPE\[SHAPE\], got"
    ):
        load_requests.random_invocations([text], {}, seed=0, form=BodyForm.BINARY)
