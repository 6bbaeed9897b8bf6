"""Failures of a local run: crashes, kills, ports in use, bad repositories, and what they leave."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from botocore.exceptions import ClientError
from local_assembly import AssemblyBuilder, adding_model, below
from local_processes import command_lines_with, folders, process_ids, supervisor_ids, traces
from test_local_endpoints import Caller, eventually
from triton_server import needs_server

from constructs_triton_client.wire import encode_request
from constructs_triton_core.errors import LocalEndpointError
from constructs_triton_tools.local import LocalEndpoint

BUDGET_MINUTES = 2
pytestmark = needs_server


def _assembly(directory: Path) -> Path:
    builder = AssemblyBuilder(directory)
    targets = {
        f"{name}.tar.gz": builder.asset(name, below("m", adding_model(number)))
        for number, name in enumerate(("zero", "one"))
    }
    builder.multi_model("Many", targets)
    builder.endpoint("Multi", {"AllTraffic": ("Many", 1)})
    return builder.write()


@pytest.fixture(scope="module")
def assembly(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An assembly with one multi-model endpoint."""
    return _assembly(tmp_path_factory.mktemp("faults") / "cdk.out")


@pytest.fixture(scope="module")
def local(assembly: Path) -> Iterator[LocalEndpoint]:
    """One run, whose models are made to crash."""
    with LocalEndpoint.from_assembly(assembly, invocation_timeout_seconds=4) as local:
        yield local


@pytest.mark.parametrize("value", [-1.0, -2.0], ids=["segmentation-fault", "exit"])
def test_a_crashed_model_is_a_model_error_and_others_keep_serving(
    local: LocalEndpoint, value: float
) -> None:
    """A model whose process crashes responds with ModelError; other models are not affected."""
    caller = Caller(local.endpoint_url)
    refusal = caller.refusal("Multi", value, TargetModel="zero.tar.gz")
    assert refusal["Error"]["Code"] == "ModelError"
    assert caller.add("Multi", TargetModel="one.tar.gz") == 1
    assert local.messages.count("Multi/AllTraffic: the process of a Python model ended") == 1


def test_a_compressed_body_gets_the_error_of_the_container(local: LocalEndpoint) -> None:
    """Triton's front end for SageMaker never decompresses (``GetRequestCompressionType``
    is IDENTITY).
    """
    url = f"{local.endpoint_url}/endpoints/Multi/invocations"
    headers = {
        "Content-Encoding": "gzip",
        "Content-Type": "application/json",
        "X-Amzn-SageMaker-Target-Model": "one.tar.gz",
    }
    request = urllib.request.Request(url, gzip.compress(b'{"inputs":[]}'), headers)
    for _ in range(2):
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request)
        error = json.load(refused.value)
        assert (refused.value.code, error["OriginalStatusCode"]) == (424, 400)
        assert (
            "failed to parse the request JSON buffer: Invalid value. at 0"
            in error["OriginalMessage"]
        )
    assert (
        local.messages.count("a request has Content-Encoding gzip. SageMaker removes this header")
        == 1
    )


@pytest.mark.parametrize(
    ("victims", "words"),
    [
        (process_ids, "ended with exit code -9"),
        (supervisor_ids, "ended together with its supervisor"),
    ],
)
def test_a_killed_server_is_started_again_and_models_load_again(
    local: LocalEndpoint, victims: Callable[[LocalEndpoint], list[int]], words: str
) -> None:
    """After SIGKILL, of its supervisor too, the container is started again and
    loads its models again; the messages have the end of the server's log.
    """
    caller = Caller(local.endpoint_url)
    assert caller.add("Multi", TargetModel="one.tar.gz") == 1
    os.kill(victims(local)[0], signal.SIGKILL)

    def answers() -> bool:
        try:
            return caller.add("Multi", TargetModel="one.tar.gz") == 1
        except caller.runtime.exceptions.ClientError:
            return False

    # The kernel kills the server after its supervisor: until then the old one may still answer.
    assert eventually(lambda: f"{words}; starting it again" in local.messages)
    assert eventually(lambda: "the end of its log:\n  " in local.messages)
    assert eventually(answers)


def test_a_model_that_hangs_times_out_and_others_keep_serving(local: LocalEndpoint) -> None:
    """The caller gets ModelError with status 0, as from SageMaker after its timeout."""
    caller = Caller(local.endpoint_url)
    refusal = caller.refusal("Multi", -4.0, TargetModel="zero.tar.gz")
    assert (refusal["Error"]["Code"], refusal["OriginalStatusCode"]) == ("ModelError", 0)
    assert "timed out" in refusal["Error"]["Message"]
    assert caller.add("Multi", TargetModel="one.tar.gz") == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_the_end_of_a_run_removes_everything_of_it_and_nothing_of_another(
    assembly: Path,
    local: LocalEndpoint,
    number: signal.Signals,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """SIGTERM exits with 0, and even SIGKILL leaves no process, folder or shared memory behind."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    with LocalEndpoint.from_assembly(assembly) as second:
        assert Caller(second.endpoint_url).add("Multi", TargetModel="one.tar.gz") == 1
        places = folders(second)
        assert len(traces(places)) > 2
        assert second.process is not None
        second.process.send_signal(number)
        code = second.process.wait(30)
    assert code == (-number if number == signal.SIGKILL else 0)
    assert eventually(lambda: traces(places) == [] and list(scratch.iterdir()) == [])
    assert Caller(local.endpoint_url).add("Multi", TargetModel="one.tar.gz") == 1


class _SmallSharedMemory(LocalEndpoint):
    """A run with a private /dev/shm of 48 MiB."""

    def _command(self) -> list[str]:
        mount = 'mount -t tmpfs -o size=48m tmpfs /dev/shm && exec "$@"'
        return [*_UNSHARE, "sh", "-c", mount, "sh", *super()._command()]


_UNSHARE = (
    ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--mount"]
)


def _can_mount() -> bool:
    try:
        command = [*_UNSHARE, "mount", "-t", "tmpfs", "tmpfs", "/dev/shm"]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


@pytest.mark.skipif(
    not _can_mount(), reason="a private /dev/shm needs the right to mount (root or user namespaces)"
)
def test_a_model_that_fills_shared_memory_fails_alone(assembly: Path) -> None:
    """A tensor that does not fit is a ModelError with the server's message;
    other requests succeed.
    """
    large = encode_request({"X": np.zeros(5_000_000, dtype=np.float32)})
    with _SmallSharedMemory.from_assembly(assembly) as local:
        caller = Caller(local.endpoint_url)
        assert caller.add("Multi", TargetModel="one.tar.gz") == 1
        with pytest.raises(
            ClientError, match="Failed to increase the shared memory pool"
        ) as refused:
            caller.runtime.invoke_endpoint(
                EndpointName="Multi",
                TargetModel="zero.tar.gz",
                ContentType=large.content_type,
                Body=large.body,
            )
        assert refused.value.response["Error"]["Code"] == "ModelError"
        assert caller.add("Multi", 2.0, TargetModel="zero.tar.gz") == 2
        assert caller.add("Multi", TargetModel="one.tar.gz") == 1


def test_a_start_that_fails_reports_the_cause_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server's error is in the message; the other server that had started is stopped too."""
    builder = AssemblyBuilder(tmp_path / "cdk.out")
    builder.serve("Good", below("m", adding_model(1)))
    builder.serve("Bad", below("m", {**adding_model(1), "1/model.py": "import no_such_package"}))
    # A separate folder for temporary files: other runs may use this machine.
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    with (
        pytest.raises(LocalEndpointError, match=r"Bad/AllTraffic(.|\n)*no_such_package"),
        LocalEndpoint.from_assembly(builder.write()),
    ):
        pass
    assert list(scratch.iterdir()) == []
    assert command_lines_with(str(scratch)) == []


def test_the_command_prints_what_to_copy(assembly: Path) -> None:
    """`local up` prints name, models, URL, a boto3 snippet and `ready`,
    and exits with 130 on Ctrl-C.
    """
    command = [
        sys.executable,
        "-m",
        "constructs_triton.cli",
        "local",
        "up",
        str(assembly),
        "--port",
        "0",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            lines.append(line)
            if line.startswith("ready"):
                process.send_signal(signal.SIGINT)
        text = "".join(lines)
    assert process.returncode == 130
    for words in (
        "/endpoints/Multi/invocations",
        '2 models by name: "one" and "zero"',
        'EndpointName="Multi"',
    ):
        assert words in text
