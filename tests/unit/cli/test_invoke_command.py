"""``constructs-triton invoke`` with a web server in place of the container."""

from __future__ import annotations

import base64
import json
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from chat_server import FIRST, run_chat_server
from chat_streams import CHUNKS, ERROR, ROLE, WHOLE, WORDS, events
from null_server import Received, run_null_server

import constructs_triton_client as client
from constructs_triton.cli import main
from constructs_triton_client.wire import decode_request, encode_response
from constructs_triton_core.errors import InvalidValueError, InvocationError
from constructs_triton_tools.cli.input_values import read_input


@pytest.fixture
def container() -> Iterator[str]:
    """A container whose model returns every input."""

    def echo(received: Received) -> bytes:
        _, headers, body = received
        request = decode_request(body, headers["Content-Type"])
        response = encode_response(request.inputs, request=request, model_name="echo")
        server.content_type = response.content_type
        return response.body

    with run_null_server() as server:
        server.answer = echo
        yield server.url


def test_invoke_sends_files_and_values_and_prints_json(
    container: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file is one BYTES element, .npy an array, values an array of their datatype;
    NaN prints by name.
    """
    (tmp_path / "dog.jpg").write_bytes(b"\xff\xd8dog")
    np.save(tmp_path / "ids.npy", np.array([[1, 2]], dtype="i8"))
    inputs = [
        f"IMAGE=@{tmp_path}/dog.jpg",
        f"ids=@{tmp_path}/ids.npy",
        "x=1.0,2.5:FP32",
        "t=a,b:BYTES",
    ]
    words = [word for text in inputs for word in ("--input", text)]
    assert main(["invoke", container, *words, "--json"]) == 0
    outputs = {entry["name"]: entry for entry in json.loads(capsys.readouterr().out)["outputs"]}
    assert outputs["IMAGE"]["data"] == ["\\xff\\xd8dog"]
    assert outputs["ids"]["data"] == [[1, 2]]
    assert (outputs["x"]["data"], outputs["x"]["datatype"]) == ([1.0, 2.5], "FP32")
    assert outputs["t"]["data"] == ["a", "b"]


def test_invoke_prints_a_table(container: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The table names the model, and long outputs are shortened."""
    assert main(["invoke", container, "--input", f"x={list(range(50))}:INT32", "--batch"]) == 0
    text = capsys.readouterr().out
    assert "echo" in text
    assert "INT32" in text
    assert "[1, 50]" in text
    assert "50 in all" in text


@pytest.mark.parametrize(
    ("declared", "warning"),
    [
        ("data_type: TYPE_INT32 dims: [ 4 ]", ""),
        ("data_type: TYPE_INT32 dims: [ -1 ]", ""),
        ("data_type: TYPE_INT32 dims: [ 3 ]", "has shape [1, 4], and .* declares [-1, 3], with"),
        ("data_type: TYPE_INT32 dims: [ 2, 2 ]", "has shape [1, 4], and .* declares [-1, 2, 2]"),
        ("data_type: TYPE_FP32 dims: [ 4 ]", "has datatype INT32, and .* declares TYPE_FP32"),
    ],
)
def test_outputs_are_compared_with_the_configuration(
    container: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    declared: str,
    warning: str,
) -> None:
    """An output of another shape or datatype than the repository declares is a warning."""
    (tmp_path / "echo" / "1").mkdir(parents=True)
    config = f'backend: "python" max_batch_size: 4 output {{ name: "x" {declared} }}'
    (tmp_path / "echo" / "config.pbtxt").write_text(config)
    words = ["--input", "x=1,2,3,4:INT32", "--batch", "--repository", str(tmp_path)]
    assert main(["invoke", container, *words]) == 0
    printed = " ".join(capsys.readouterr().err.split())
    begin, _, end = warning.partition(".*")
    assert (begin in printed and end in printed) if warning else not printed


def test_unreachable_endpoint_is_one_line_of_error(capsys: pytest.CaptureFixture[str]) -> None:
    """One line, exit code 2."""
    assert main(["invoke", "http://127.0.0.1:9", "--input", "x=1:FP32"]) == 2
    assert capsys.readouterr().err.startswith(
        "error: endpoint http://127.0.0.1:9: the request failed"
    )


def test_batch_puts_an_axis_before_the_value() -> None:
    """A model with a batch axis receives one element as a batch of one."""
    assert read_input("x=[[1],[2]]:INT64", with_batch=True)[1][0].shape == (1, 2, 1)
    name, (array, datatype) = read_input("x=1.5:BF16", with_batch=False)
    assert (name, array.tolist(), datatype) == ("x", [1.5], "BF16")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x", "must have the form NAME=VALUE"),
        ("x=", "must have the form NAME=VALUE"),
        ("x=1.0", "must end in a colon and a datatype"),
        ("x=1:FP8", "must end in a colon and a datatype"),
        ("x=" + "a" * 300, "must end in a colon and a datatype"),
        ("x=[1,2,3,4]", r"write for example --input 'x=\[1,2,3,4\]:FP32'; the datatypes are BOOL"),
        ("x=a,b:STRING", "write for example --input x=a,b:BYTES;"),
        ("x=hello:BYTES:1,1", "remove the dims: write --input x=hello:BYTES; nested lists"),
        ("x=[1,2]:fp32:[2]", r"remove the dims: write --input 'x=\[1,2\]:FP32'; nested lists"),
        ("x=a:b:1", "write for example --input x=a:b:BYTES;"),
        ("x=true,false", "write for example --input x=true,false:BOOL;"),
        ("x=1.5:INT32", r"got '1.5' \(element 0: must be an integer, got float\)"),
        ("x=1:BOOL", "got int\\); write true,false"),
        ("x=[[1],[2,3]]:INT32", "must be INT32 values"),
        ("x=[[1],[2,3]]:BF16", "must be BF16 values"),
        ("x=300:UINT8", "must be UINT8 values"),
        ("x=@/nowhere/dog.jpg", "cannot be read"),
        ("x=@/dev/null/x.npy", "cannot be read"),
    ],
)
def test_wrong_inputs_are_reported_with_their_name(text: str, message: str) -> None:
    """The error names the input and the expected form."""
    with pytest.raises(InvalidValueError, match=message):
        read_input(text, with_batch=False)


@pytest.mark.parametrize(
    ("value", "named"),
    [
        ("dog.jpg", "dog.jpg"),
        ("dog.jpg:STRING", "dog.jpg"),
        ("dog.jpg:UINT8", "dog.jpg"),
        ("@dog.jpg:BYTES", "dog.jpg"),
        ("a dog.jpg", "a dog.jpg"),
        ("ids.npy", "ids.npy"),
        ("ids.npy:INT64", "ids.npy"),
    ],
)
def test_the_name_of_a_file_suggests_how_to_send_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str, named: str
) -> None:
    """The suggested option is what a shell passes on, and it reads the file."""
    monkeypatch.chdir(tmp_path)
    for name in ("dog.jpg", "a dog.jpg"):
        Path(name).write_bytes(b"\xff\xd8dog")
    np.save("ids.npy", np.array([1, 2]))
    with pytest.raises(InvalidValueError) as wrong:
        read_input(f"IMAGE={value}", with_batch=False)
    _, found, hint = str(wrong.value).partition(f"{named} is a file, so write ")
    assert found
    option, suggested, *_ = shlex.split(hint)
    assert (option, suggested) == ("--input", f"IMAGE=@{named}")
    _, (array, _) = read_input(suggested, with_batch=False)
    assert array.tolist() == ([1, 2] if named == "ids.npy" else [b"\xff\xd8dog"])


def test_a_damaged_file_is_not_suggested_again(tmp_path: Path) -> None:
    """The error says why it cannot be read."""
    (tmp_path / "ids.npy").write_text("no array")
    with pytest.raises(InvalidValueError, match=r"cannot be read .*; write @ and the path"):
        read_input(f"x=@{tmp_path}/ids.npy", with_batch=False)


class _Client:
    """A client that records its arguments and calls, and returns an empty result."""

    calls: ClassVar[list[Any]] = []

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        self.calls.append(("made", arguments, keywords))

    @classmethod
    def for_endpoint(cls, *arguments: Any, **keywords: Any) -> _Client:
        return cls(*arguments, **keywords)

    def infer(
        self,
        arrays: dict[str, Any],
        outputs: Any,
        *,
        datatypes: dict[str, str],
        **invoke_options: str,
    ) -> Any:
        self.calls.append(("called", sorted(arrays), outputs, datatypes, invoke_options))
        raise InvocationError("endpoint e: failed; see the log")


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What the command asks of a client that takes the place of ours."""
    monkeypatch.setattr(client, "TritonClient", _Client)
    _Client.calls.clear()
    return _Client.calls


@pytest.mark.parametrize(
    ("options", "changed"),
    [
        ([], {}),
        (["--endpoint-url", "http://x"], {"endpoint_url": "http://x"}),
        (["--region", "eu-west-1"], {"session": "eu-west-1"}),
        (["--target-model", "a.tar.gz"], {"target_model": "a.tar.gz"}),
        (["--index", "s3://b/index.json"], {"index": "s3://b/index.json"}),
        (["--inference-component", "a"], {"inference_component": "a"}),
        (
            ["--inference-component", "", "--wake-timeout", "9"],
            {"inference_component": "", "wake_timeout": 9},
        ),
    ],
)
def test_each_option_reaches_the_client(
    calls: list[Any], monkeypatch: pytest.MonkeyPatch, options: list[str], changed: dict[str, Any]
) -> None:
    """An option that is not given is None, so that boto3 decides."""
    monkeypatch.setattr(
        "constructs_triton_tools.cli.options.make_session", lambda region, _profile: region
    )
    assert main(["invoke", "e", "--input", "x=1:FP32", *options]) == 1
    names = ("endpoint_url", "session", "target_model", "index", "inference_component")
    assert calls[0] == ("made", ("e",), {**dict.fromkeys(names), "wake_timeout": 0, **changed})


def test_inputs_and_outputs_reach_the_client(calls: list[Any]) -> None:
    """BF16 is the only datatype that an array does not have;
    the variant is a parameter of the request.
    """
    words = ["--input", "b=1:BF16", "--input", "a=1:FP32", "--output", "y", "--output", "z"]
    assert main(["invoke", "e", *words]) == 1
    assert calls[1] == ("called", ["a", "b"], ("y", "z"), {"b": "BF16"}, {})
    assert main(["invoke", "e", "--input", "x=1:FP32", "--target-variant", "next"]) == 1
    assert calls[3][-1] == {"TargetVariant": "next"}


BATCH_MESSAGE = (
    "unexpected shape for input 'text'. Expected [-1,1], got [1]. NOTE: Setting a non-zero "
    "max_batch_size in the model config requires a batch "
    "dimension to be prepended to each input shape."
)
WRONG_SIZE = BATCH_MESSAGE.replace("got [1]", "got [1,2]")


@pytest.mark.parametrize(
    ("options", "message", "expected"),
    [
        (
            [],
            BATCH_MESSAGE,
            "--input: this model has a batch axis, and the inputs do not; add --batch",
        ),
        (["--batch"], BATCH_MESSAGE, BATCH_MESSAGE),
        ([], WRONG_SIZE, WRONG_SIZE),
        ([], "another error", "another error"),
    ],
)
def test_a_missing_batch_axis_suggests_the_option(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    message: str,
    expected: str,
) -> None:
    """Unless it was given, and only for Triton's message about the batch axis."""

    def infer(*_: Any, **__: Any) -> None:
        raise InvocationError(message)

    monkeypatch.setattr(client, "TritonClient", _Client)
    monkeypatch.setattr(_Client, "infer", infer)
    assert main(["invoke", "e", "--input", "x=1:FP32", *options]) == 1
    assert capsys.readouterr().err == f"error: {expected}\n"


def test_stream_prints_its_text(capsys: pytest.CaptureFixture[str]) -> None:
    """A model that generates gets the inputs as fields; what streams cannot have is an error."""
    words = ["--stream", "--input", "text_input=hi:BYTES", "--input", "max_tokens=2:INT32"]
    with run_null_server() as server:
        server.content_type = "text/event-stream"
        server.answer = b'data: {"text_output":"a","model_name":"m"}\n\n' * 2
        assert main(["invoke", server.url, *words]) == 0
        assert capsys.readouterr().out == "aa\n"
        assert main(["invoke", server.url, *words, "--json"]) == 0
        assert json.loads(capsys.readouterr().out.splitlines()[1])["text_output"] == "a"
        assert main(["invoke", server.url, *words, "--target-model", "m"]) == 2
    assert "--target-model: cannot be used with --stream" in capsys.readouterr().err


CHAT = {"messages": [{"role": "user", "content": "grüß mich"}], "stream": True}


def test_text_of_a_chat_is_printed_as_it_arrives() -> None:
    """The reasoning is on standard output before the server has sent the answer."""
    with run_chat_server() as server:
        words = [
            "invoke",
            "chat",
            "--endpoint-url",
            server.url,
            "--inference-component",
            "c",
            "--stream",
        ]
        command = [
            sys.executable,
            "-m",
            "constructs_triton.cli",
            *words,
            "--body",
            json.dumps(CHAT),
        ]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            first, began = process.stdout.read(3), time.monotonic()
            rest = process.stdout.read()
            assert (first + rest).decode() == "hm Grüß\n dich\n"
            assert time.monotonic() - began > FIRST / 2
    assert process.returncode == 0
    (path, headers, body), *_ = server.received
    assert (path, body) == ("/endpoints/chat/invocations-response-stream", CHAT)
    assert headers["X-Amzn-SageMaker-Inference-Component"] == "c"


def test_events_of_a_chat_as_json(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """With --json, each event is a line; a body may be in a file."""
    (tmp_path / "chat.json").write_text(json.dumps(CHAT))
    with run_chat_server() as server:
        words = ["invoke", server.url, "--stream", "--body", f"@{tmp_path / 'chat.json'}", "--json"]
        assert main(words) == 0
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == CHUNKS


def test_error_in_the_middle_of_a_chat(capsys: pytest.CaptureFixture[str]) -> None:
    """The text so far has a line of its own, and the error follows."""
    with run_null_server() as server:
        server.answer = events([ROLE, *WORDS, ERROR])
        assert main(["invoke", server.url, "--stream", "--body", json.dumps(CHAT)]) == 1
    out, error = capsys.readouterr()
    assert out == "Grüß\n dich\n"
    assert error == "error: event 4: the model failed, got out of memory; see the endpoint's log\n"


def test_body_without_stream_is_sent_and_its_response_printed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Any JSON object and any response; what belongs to tensors is refused."""
    with run_chat_server() as server:
        sagemaker = ["chat", "--endpoint-url", server.url, "--inference-component", "c"]
        body = ["--body", '{"messages": []}']
        assert main(["invoke", *sagemaker, *body]) == 0
        assert json.loads(capsys.readouterr().out) == WHOLE
        assert server.received[0][1]["X-Amzn-SageMaker-Inference-Component"] == "c"
        assert main(["invoke", server.url, *body, "--target-model", "m.tar.gz"]) == 0
        assert [path for path, *_ in server.received][1:] == ["/models/m.tar.gz/invoke"]
        assert main(["invoke", server.url, *body, "--batch"]) == 2
    assert (
        "--batch: cannot be used with --body: the body is sent as it is; remove it"
        in capsys.readouterr().err
    )


@pytest.fixture
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret-key")


@pytest.mark.usefixtures("credentials")
def test_token_is_alone_on_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    """A shell keeps it in a variable; the base URL and the end are on standard error."""
    words = ["invoke", "shared", "--print-token", "--valid-for", "1h", "--region", "eu-west-1"]
    assert main([*words, "--inference-component", "chat"]) == 0
    out, error = capsys.readouterr()
    (token,) = out.splitlines()
    signed = base64.b64decode(token.removeprefix("sagemaker-api-key-")).decode()
    assert "AKIDEXAMPLE" in signed
    assert "Expires=3600" in signed
    url = "https://runtime.sagemaker.eu-west-1.amazonaws.com/endpoints/shared"
    assert error.splitlines()[0] == f"base URL: {url}/inference-components/chat/openai/v1"
    assert token not in error
    assert main([*words, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert (printed["base_url"], [*printed]) == (
        f"{url}/openai/v1",
        ["base_url", "api_key", "expires"],
    )


@pytest.mark.usefixtures("credentials")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["chat", "--valid-for", "13h"],
            "--valid-for: must be from 1s to 12h, got 46800s; write 12h",
        ),
        (["chat", "--valid-for", "0s"], "--valid-for: must be from 1s to 12h, got 0s"),
        (
            ["http://127.0.0.1:9"],
            "--print-token: a container needs no token; give the name of an endpoint",
        ),
    ],
)
def test_token_that_cannot_be_printed(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The message has the option and the fix."""
    assert main(["invoke", *words, "--print-token", "--region", "eu-west-1"]) == 2
    assert message in capsys.readouterr().err
