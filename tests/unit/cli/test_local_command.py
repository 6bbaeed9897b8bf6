"""``constructs-triton local up``: what each option does, and its errors."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from constructs_triton.cli import main
from constructs_triton_tools.local import run
from constructs_triton_tools.local.gateway.inference_components import LocalComponent, LocalVariant
from constructs_triton_tools.local.gateway.model_names import read_index
from constructs_triton_tools.local.gateway.multi_model import MultiModelContainer
from constructs_triton_tools.local.gateway.running_endpoint import RunningEndpoint
from constructs_triton_tools.local.run import RunOptions
from constructs_triton_tools.local.server.server import TritonServer
from constructs_triton_tools.local.sources.specs import (
    AsyncInferenceSpec,
    ComponentSpec,
    ContainerSpec,
    EndpointSpec,
    VariantSpec,
)

URL = "http://127.0.0.1:8080"


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What each call of the command would run; nothing is started."""
    found: list[dict[str, Any]] = []

    class Run:
        def __init__(self, options: RunOptions, report: Callable[..., None], on_ready: Any) -> None:
            found.append({"options": options, "report": report, "on_ready": on_ready})

        def run(self) -> None:
            pass

    monkeypatch.setattr(run, "LocalRun", Run)
    return found


@pytest.fixture
def printed(runs: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Returns what the command prints with these options when these endpoints are ready."""

    def run_until_ready(endpoints: Sequence[RunningEndpoint], *options: str) -> str:
        main(["local", "up", *options])
        runs[-1]["on_ready"](URL, endpoints)
        return capsys.readouterr().out

    return run_until_ready


@pytest.mark.parametrize(
    ("words", "changed"),
    [
        ([], {}),
        (["models"], {"source": Path("models")}),
        (["--aws-endpoint-url=http://x"], {"aws_endpoint_url": "http://x"}),
        (["--stack=S"], {"stack": "S"}),
        (
            ["--aws-endpoint-url=http://x", "--stack=S"],
            {"aws_endpoint_url": "http://x", "stack": "S"},
        ),
        (["--endpoint=E"], {"endpoint": "E"}),
        (["--model=M"], {"model": "M"}),
        (["--multi-model"], {"is_multi_model": True}),
        (["--port=0"], {"port": 0}),
        (["--port=65535"], {"port": 65535}),
        (["--python=p"], {"python": Path("p")}),
        (["--tritonserver=t"], {"tritonserver": Path("t")}),
        (["--memory-limit=2"], {"memory_limit_mib": 2}),
        (["--startup-timeout=1.5"], {"startup_timeout_seconds": 1.5}),
        (["--invocation-timeout=0.1"], {"invocation_timeout_seconds": 0.1}),
        (["--wake-delay=0"], {"wake_delay_seconds": 0.0}),
        (["--bucket-folder=b"], {"bucket_folder": Path("b")}),
        (["--no-private-mounts"], {"uses_private_mounts": False}),
        (["--allow-open-ports"], {"allow_open_ports": True}),
        (["--exact"], {"is_exact": True}),
        (["--ui"], {"ui": True}),
        (["--until-stdin-closes"], {"until_stdin_closes": True}),
        (["--engine=podman", "--image=e=a/b:1"], {"engine": "podman", "images": {"e": "a/b:1"}}),
    ],
)
def test_each_option_changes_one_setting(
    runs: list[dict[str, Any]], words: list[str], changed: dict[str, Any]
) -> None:
    """The option sets its own setting and no other; without options cdk.out is run on port 8080."""
    assert main(["local", "up", *words]) == 0
    assert runs[0]["options"] == RunOptions(**{"source": Path("cdk.out"), **changed})


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("--port=65536", "--port: must be from 0 to 65535, got 65536; lower it to 65535"),
        ("--port=-1", "--port: must be from 0"),
        ("--memory-limit=0", "--memory-limit: must be at least 1 MiB, got 0; raise it to 1"),
        ("--memory-limit=-3", "--memory-limit: must be"),
        ("--startup-timeout=-1", "--startup-timeout: must be at least 0.001 seconds, got -1"),
        (
            "--startup-timeout=soon",
            "--startup-timeout: must be a number, at least 0.001 seconds, got 'soon'",
        ),
        (
            "--stand-in=resnet",
            "--stand-in: must have the form NAME=PATH, got 'resnet'; write for example",
        ),
        ("--stand-in==a.onnx", "--stand-in: must have the form NAME=PATH"),
        (
            "--image=e=",
            "--image: must have the form NAME=IMAGE, got 'e='; write for example digits=",
        ),
        ("--invocation-timeout=0", "--invocation-timeout: must be at least"),
        ("--invocation-timeout=nan", "--invocation-timeout: must be a number, at least"),
        ("--invocation-timeout=inf", "--invocation-timeout: must be a number, at least"),
    ],
)
def test_numbers_out_of_range_are_rejected_before_anything_is_read(
    option: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Wrong arguments, exit code 2, with the range and the value."""
    with pytest.raises(SystemExit) as ended:
        main(["local", "up", option])
    assert ended.value.code == 2
    assert re.search(words, capsys.readouterr().err)


@pytest.mark.parametrize(
    ("words", "name", "value"),
    [
        (["app"], "PATH", "'app'"),
        (["--model=M"], "--model", "'M'"),
        (["--multi-model"], "--multi-model", "'True'"),
    ],
)
def test_options_of_an_app_cannot_be_combined_with_deployed_endpoints(
    runs: list[dict[str, Any]],
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    name: str,
    value: str,
) -> None:
    """The error names the option; nothing is run."""
    assert main(["local", "up", "--aws-endpoint-url=http://x", *words]) == 2
    message = (
        f"error: {name}: cannot be combined with --aws-endpoint-url, "
        f"got {value}; remove one of them\n"
    )
    assert capsys.readouterr().err == message
    assert runs == []


class _Prefix:
    folder = Path("/tmp/prefix")

    def __init__(self, container: ContainerSpec) -> None:
        self.index = partial(read_index, container)
        self.archive_names = partial(sorted, container.archives)
        self.archive = Path

    def unpacked(self, target_model: str) -> Path:
        return self.folder / target_model


def _endpoints() -> list[RunningEndpoint]:
    default = {"SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "digits"}
    archives = {"b.tar.gz": Path("b"), "a.tar.gz": Path("a")}
    containers = {
        "single": ContainerSpec("m", "", "s3://b/k", default, Path("m.tar.gz")),
        "only": ContainerSpec("m", "", "s3://b/k", archive=Path("m.tar.gz")),
        "many": ContainerSpec("m", "", "s3://b/p/", archives=archives),
        "empty": ContainerSpec("m", "", "s3://b/p/"),
        "deployed": ContainerSpec("m", "", "s3://b/p/", fetch_archive=lambda _: None),
    }
    return [_endpoint(name, container) for name, container in containers.items()]


def _endpoint(name: str, container: ContainerSpec) -> RunningEndpoint:
    variant = VariantSpec("A", container)
    server = _server(f"{name}/A", container)
    multi_model = (
        cast("MultiModelContainer", _Prefix(container)) if container.is_multi_model else None
    )
    return RunningEndpoint(
        EndpointSpec(name, "Stack", (variant,)), [LocalVariant(variant, server, multi_model)]
    )


def _server(label: str, container: ContainerSpec) -> TritonServer:
    server = TritonServer(
        label, container, cast("Any", SimpleNamespace(invocation_timeout_seconds=60.0))
    )
    server.process_id, server.directory = 7, Path("/tmp/server")
    return server


def test_json_describes_every_endpoint(printed: Callable[..., str]) -> None:
    """One line, with the archives, the folder for more of them, the process and the log."""
    (line,) = printed(_endpoints(), "--json").splitlines()
    document = json.loads(line)
    assert document["url"] == URL
    described = {each["name"]: each for each in document["endpoints"]}
    assert list(described) == ["single", "only", "many", "empty", "deployed"]
    assert described["many"] == {
        "name": "many",
        "stack": "Stack",
        "inference_components": {},
        "variants": {
            "A": {
                "target_models": ["a.tar.gz", "b.tar.gz"],
                "model_directory": "/tmp/prefix",
                "process_id": 7,
                "log": "/tmp/server/server.log",
            }
        },
    }
    assert described["single"]["variants"]["A"]["model_directory"] is None


def test_text_shows_how_to_call_every_endpoint(printed: Callable[..., str]) -> None:
    """Models or archives, and boto3 lines to copy, with a TargetModel where it is needed."""
    text = printed(_endpoints())
    single, only, many, empty, deployed = text.split(f"  {URL}/endpoints/")[1:]
    assert "  variant A: digits\n" in single
    assert "  variant A: the archive's only model\n" in only
    assert '  variant A: 2 archives: "a.tar.gz" and "b.tar.gz"\n' in many
    assert "copy into /tmp/prefix can be called immediately" in many
    assert "  variant A: no archives yet\n" in empty
    assert "the archives below s3://b/p/, downloaded on the first call" in deployed
    for block in (single, only, empty, deployed):
        assert "Body=body)" in block
    target = 'ContentType="application/json", Body=body, TargetModel="a.tar.gz")'
    assert f'EndpointName="many", {target}' in many
    assert text.endswith("ready (press Ctrl-C to stop)\n")


def test_a_thousand_models_are_counted(printed: Callable[..., str]) -> None:
    """The text has the number of models, a few names, and the command that lists all of them."""
    names = {f"tenant{number:03}": f"tenant{number:03}-3f9c2a1b.tar.gz" for number in range(1000)}
    archives = {archive: Path(archive) for archive in names.values()}
    container = ContainerSpec("m", "", "s3://b/p/", archives=archives, indexed={"Sync": names})
    assert (
        '  variant A: 1,000 models by name: "tenant000", "tenant001", "tenant002" and 997 more '
        f"(all: `curl {URL}/endpoints/many/index.json`)\n"
    ) in printed([_endpoint("many", container)])


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], "start the run with --bucket-folder DIR"),
        (["--bucket-folder=/s3"], "write the request to the file\n  # /s3/results/async/input/1,"),
    ],
)
def test_asynchronous_endpoint_has_its_own_call(
    printed: Callable[..., str], options: list[str], expected: str
) -> None:
    """InvokeEndpoint would be refused; the request is a file of the folder that
    takes the place of S3.
    """
    container = ContainerSpec(
        "m", "", "s3://b/k", {"SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "digits"}
    )
    endpoint = _endpoint("queue", container)
    endpoint.spec = replace(endpoint.spec, asynchronous=AsyncInferenceSpec("s3://results/out/"))
    text = printed([endpoint], *options)
    assert f"queue  {URL}/endpoints/queue/async-invocations\n" in text
    assert 'runtime.invoke_endpoint_async(EndpointName="queue"' in text
    assert expected in text
    assert 'InputLocation="s3://results/async/input/1")' in text


def test_components_are_listed_and_called_by_name(printed: Callable[..., str]) -> None:
    """The text says which one starts at zero; the JSON has their variants, processes and logs."""
    container = ContainerSpec(
        "m", "", "s3://b/k", {"SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "digits"}
    )
    specs = (ComponentSpec("one", container), ComponentSpec("two", container, starts_at_zero=True))
    running = [LocalComponent(each, _server(f"e/{each.name}", container), 1.0) for each in specs]
    endpoint = RunningEndpoint(EndpointSpec("e", "Stack", (), components=specs), running)
    text = printed([endpoint])
    assert "  inference component one: digits\n" in text
    assert (
        "  inference component two: digits; starts at zero copies, its first call wakes it\n"
        in text
    )
    assert 'InferenceComponentName="one")' in text
    (described,) = json.loads(printed([endpoint], "--json"))["endpoints"]
    assert described["variants"] == {}
    assert described["inference_components"]["two"] == {
        "variant": "AllTraffic",
        "starts_at_zero": True,
        "process_id": 7,
        "log": "/tmp/server/server.log",
    }


def test_progress_is_printed_on_standard_error(
    runs: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    """Standard output contains only the endpoints."""
    main(["local", "up"])
    runs[0]["report"]("a line")
    assert capsys.readouterr() == ("", "stopped\na line\n")
