"""Which exit code belongs to which end of a command."""

from __future__ import annotations

import json
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from null_server import run_null_server

from constructs_triton.cli import main
from constructs_triton_client import HttpTransport, SageMakerTransport
from constructs_triton_client.transports.transport import Invocation, Transport
from constructs_triton_core.errors import ConstructsTritonError
from constructs_triton_core.program.exit_codes import combined_code, exit_code_of
from constructs_triton_core.program.program import Command
from triton_model_check.untrusted.tar_reader import read_members

INVOCATION = Invocation(b"{}", "application/json", {})
CLOSED = "http://127.0.0.1:9"
Answer = tuple[int, dict[str, str], dict[str, Any]]
CONTAINER_ERROR: Answer = (500, {}, {"error": "no"})
MODEL_ERROR: Answer = (
    424,
    {"X-Amzn-ErrorType": "ModelError"},
    {"OriginalStatusCode": 500, "OriginalMessage": '{"error": "no"}', "Message": "no"},
)
NO_ENDPOINT: Answer = (
    400,
    {"X-Amzn-ErrorType": "ValidationError"},
    {"Message": "Endpoint e of account 111122223333 not found."},
)


@pytest.fixture
def answering() -> Iterator[Callable[[Answer], str]]:
    """Starts a server that answers every request in the same way, and returns its address."""
    with ExitStack() as servers:

        def start(answer: Answer) -> str:
            server = servers.enter_context(run_null_server())
            status, server.headers, document = answer
            server.status, server.answer = lambda _: status, json.dumps(document).encode()
            return server.url

        yield start


def _code(action: Callable[[], Any]) -> int:
    with pytest.raises(ConstructsTritonError) as raised:
        action()
    return exit_code_of(raised.value)


def test_damaged_archive_is_wrong_and_a_missing_one_is_not_looked_at(tmp_path: Path) -> None:
    """Both are an ``ArchiveError``; only the second one comes from the operating system."""
    damaged = tmp_path / "damaged.tar.gz"
    damaged.write_bytes(b"no archive")
    assert _code(lambda: list(read_members(damaged))) == 1
    assert _code(lambda: list(read_members(tmp_path / "absent.tar.gz"))) == 2


@pytest.mark.parametrize(
    ("answer", "code"), [(CONTAINER_ERROR, 1), (None, 2), (MODEL_ERROR, 1), (NO_ENDPOINT, 2)]
)
def test_error_of_a_model_is_wrong_and_others_are_not_looked_at(
    answering: Callable[[Answer], str], answer: Answer | None, code: int
) -> None:
    """A container that cannot be reached, or an endpoint that does not exist,
    has no model to look at.
    """
    url = CLOSED if answer is None else answering(answer)
    transport: Transport = HttpTransport(url)
    if answer in (MODEL_ERROR, NO_ENDPOINT):
        transport = SageMakerTransport("e", endpoint_url=url, region_name="eu-west-1")
    assert _code(lambda: transport.invoke(INVOCATION)) == code


def test_verify_tells_a_wrong_endpoint_from_an_unreachable_one(
    tmp_path: Path, answering: Callable[[Answer], str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Without any answer nothing was compared."""
    file = tmp_path / "requests.json"
    tensor = {"name": "x", "datatype": "FP32", "shape": [1], "data": [1.0]}
    request = {"name": "one", "inputs": [tensor], "outputs": [{**tensor, "name": "y"}]}
    file.write_text(json.dumps({"version": 1, "requests": [request]}))
    assert main(["verify", answering(CONTAINER_ERROR), str(file)]) == 1
    assert main(["verify", CLOSED, str(file)]) == 2
    assert capsys.readouterr().out.count("1 of 1 responses differ") == 2


def test_model_file_that_triton_does_not_load_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With --json the failure is the only output."""
    monkeypatch.chdir(tmp_path)
    Path("net.onnx").write_bytes(b"\xff\xff\xff")
    assert main(["model", "new", "net.onnx", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["error"].startswith("net.onnx: ")
    assert not Path("models").exists()


@pytest.mark.parametrize(("codes", "code"), [([], 0), ([0, 0], 0), ([0, 2], 2), ([2, 1, 0], 1)])
def test_what_is_wrong_counts_more_than_what_was_not_looked_at(codes: list[int], code: int) -> None:
    """A command that looks at several things has one exit code."""
    assert combined_code(codes) == code


def _fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(_: object) -> int:
        raise KeyError("absent")

    module = SimpleNamespace(add_arguments=lambda parser: parser.add_argument("--json"), run=run)
    monkeypatch.setattr(Command, "load", lambda _: module)


def test_unexpected_error_is_one_line_and_a_file(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The file has the command, the versions and the traceback, and only its owner may read it."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    _fails(monkeypatch)
    assert main(["check", "--json", "x"]) == 2
    printed = capsys.readouterr()
    (file,) = tmp_path.iterdir()
    said = r"error: check: ended with an error of constructs-triton itself \(KeyError\); .*"
    assert re.fullmatch(f"{said}{re.escape(str(file))}.*\n", printed.err)
    assert str(file) in json.loads(printed.out)["error"]
    text = file.read_text()
    assert text.startswith("constructs-triton check --json x\n\nPython 3.")
    assert "\nconstructs-triton 0." in text
    assert text.endswith("KeyError: 'absent'\n")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_without_a_folder_for_the_file_the_traceback_is_printed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Nothing else would say what happened."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "absent"))
    _fails(monkeypatch)
    with pytest.raises(KeyError):
        main(["check"])
