"""``check --server``: the Triton server finds errors that need a model to be executed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from backports import tarfile
from check_examples import EXAMPLES, write
from check_examples.onnx_models import model, node, tensor
from onnx import TensorProto
from test_local_endpoints import eventually
from triton_server import needs_server

from constructs_triton.cli import main
from constructs_triton_tools.local.server_check import CheckRun, ask_server
from triton_model_check.model_config import ModelConfig, PythonBackend
from triton_model_check.model_repository import ModelRepository

pytestmark = [pytest.mark.e2e, needs_server, pytest.mark.xdist_group("check_server")]
ARCHIVE = (
    Path(__file__).parents[2]
    / "packages"
    / "check"
    / "tests"
    / "contract"
    / "oracle"
    / "cases.tar.gz"
)
CASES = (
    "bad_auto_conflict",
    "bad_py_init_raises",
    "foreign_trt_good",
    "bad_warmup_shape",
    "ok_minimal",
)

_PYTHON_CONFIG = (
    'backend: "python"\ninput [ { name: "X" data_type: TYPE_FP32 dims: [ 1 ] } ]\n'
    'output [ { name: "Y" data_type: TYPE_FP32 dims: [ 1 ] } ]\n'
)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The models of several cases in one repository, each under its case's name."""
    directory = tmp_path_factory.mktemp("models")
    with tarfile.open(ARCHIVE) as archive:
        members = [
            member for member in archive if member.name.removeprefix("./").split("/")[0] in CASES
        ]
        archive.extractall(directory / "cases", members, filter="data")
    repository = directory / "repository"
    repository.mkdir()
    for case in CASES:
        (directory / "cases" / case / "m").rename(repository / case)
    return repository


def test_server_decides_each_model(models: Path, tmp_path: Path) -> None:
    """A model that raises is rejected with the server's message; an empty backend replaces
    TensorRT.

    The models are links to the user's files, so the server must not write bytecode beside them.
    """
    folder = tmp_path / f"check{os.getpid()}"
    folder.mkdir()
    before = sorted(models.rglob("*"))
    asked = CheckRun.prepare(ModelRepository.from_directory(models), folder).ask()
    assert set(asked) == set(CASES)
    assert {answer.release for answer in asked.values()} == {"24.10"}
    answers = {name: str(answer) for name, answer in asked.items()}
    assert answers["ok_minimal"] == "loads"
    assert answers["foreign_trt_good"].startswith("loads (an empty backend tensorrt")
    assert "max_batch_size" in answers["bad_auto_conflict"]
    assert "weights missing" in answers["bad_py_init_raises"]
    assert answers["bad_warmup_shape"].startswith("rejected: ")
    assert not list(Path("/dev/shm").glob(f"triton_{folder.name}_*"))
    assert sorted(models.rglob("*")) == before


def test_name_of_a_folder_is_no_fault_of_its_model(tmp_path: Path) -> None:
    """Triton decodes no escapes of a URL, so a name is sent as it is; one that cannot be sent, or
    that needs the locale of the image, is unknown and not rejected.
    """
    for name in ("a+b", "model@1", "x%20y", "a~b", "My Model", "why?", "Größe"):
        version = tmp_path / "models" / name / "1"
        version.mkdir(parents=True)
        (version.parent / "config.pbtxt").write_text(_PYTHON_CONFIG)
        (version / "model.py").write_text(
            "class TritonPythonModel:\n    def execute(self, requests):\n        return []\n"
        )
    (tmp_path / "check").mkdir()
    repository = ModelRepository.from_directory(tmp_path / "models")
    answers = CheckRun.prepare(repository, tmp_path / "check").ask()
    assert {name: answer.outcome for name, answer in answers.items()} == {
        **dict.fromkeys(("a+b", "model@1", "x%20y", "a~b"), "loads"),
        **dict.fromkeys(("My Model", "why?", "Größe"), "unknown"),
    }
    assert "cannot be in a URL of Triton" in str(answers["My Model"])
    assert "no UTF-8 locale" in str(answers["Größe"])


def test_python_examples_have_the_verdict_of_the_server(tmp_path: Path) -> None:
    """A misspelled import and an environment below one folder are rejected; the fixed one loads."""
    content = EXAMPLES["python-environment-content: in a folder"]
    # Triton 2.51 cannot unpack another environment after one that is not accepted.
    examples = {"a": EXAMPLES["python-import"].failing, "b": content.fixed, "c": content.failing}
    for name, files in examples.items():
        write({f"{name}{path[1:]}": text for path, text in files.items()}, tmp_path)
    answers = {name: str(answer) for name, answer in ask_server(tmp_path).items()}
    assert "No module named 'triton_python_backend_util'" in answers["a"]
    assert answers["b"] == "loads"
    assert "bin/activate does not exist" in answers["c"]


_ENDING_MODEL = """import os, pathlib, signal

class TritonPythonModel:
    def initialize(self, args):
        seen = pathlib.Path({seen!r})
        times = len(seen.read_text()) if seen.exists() else 0
        seen.write_text("x" * (times + 1))
        if times < {times}:
            os.kill(os.getppid(), signal.{name})

    def execute(self, requests):
        return []
"""


def test_a_server_that_ended_is_no_verdict(tmp_path: Path) -> None:
    """A model whose server ends is loaded again alone,
    and rejected only if it crashes that server, too.
    """
    models = tmp_path / "models"
    for case, times, name in (
        ("once", 1, "SIGILL"),
        ("crashes", 9, "SIGILL"),
        ("killed", 9, "SIGKILL"),
    ):
        seen = str(tmp_path / f"{case}.txt")
        text = _ENDING_MODEL.format(seen=seen, times=times, name=name)
        write({f"{case}/config.pbtxt": _PYTHON_CONFIG, f"{case}/1/model.py": text}, models)
    answers = {name: str(answer) for name, answer in ask_server(models).items()}
    assert answers["once"] == "loads"
    assert (
        answers["crashes"]
        == "rejected: the server ended with SIGILL while it loaded this model alone"
    )
    assert answers["killed"].startswith("unknown: the server was ended by SIGKILL; ")


def test_command_prints_the_answers_of_the_server(
    models: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The JSON of ``--server`` contains the server's answers by model."""
    (tmp_path / "ok_minimal").symlink_to(models / "ok_minimal")
    assert main(["check", str(tmp_path), "--server", "--json"]) == 0
    article = json.loads(capsys.readouterr().out)
    assert article["server"] == {"ok_minimal": "loads"}


def test_a_model_that_the_server_refuses_is_an_error(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The verdict is the server's, at the line that it names; after the fix, both agree."""
    example = EXAMPLES["server-refused"]
    write(example.failing, tmp_path / "a")
    command = ["check", "--server", "--target", "server", "--json"]
    assert main([*command, str(tmp_path / "a")]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["verdict"] == "rejected"
    (found,) = document["findings"]
    assert (found["code"], found["path"], found["line"]) == ("server-refused", "m/1/model.py", 6)
    assert found["message"].startswith("Triton 24.10 on this machine (the image has 26.08) ")
    assert str(tmp_path) not in found["message"]
    assert "constructs-triton-check-" not in found["message"] + found["hint"]
    write(example.fixed, tmp_path / "b")
    assert main([*command, str(tmp_path / "b")]) == 0
    assert json.loads(capsys.readouterr().out)["verdict"] == "loads"


def test_killed_check_leaves_nothing(tmp_path: Path) -> None:
    """SIGKILL during a load ends the server too, and removes its folder."""
    version = tmp_path / "models" / "slow" / "1"
    version.mkdir(parents=True)
    (version.parent / "config.pbtxt").write_text(_PYTHON_CONFIG)
    started = tmp_path / "started"
    (version / "model.py").write_text(
        f"import pathlib, time\npathlib.Path({str(started)!r}).touch()\ntime.sleep(60)\n"
    )
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    command = [
        sys.executable,
        "-m",
        "constructs_triton.cli",
        "check",
        "--server",
        str(tmp_path / "models"),
    ]
    with subprocess.Popen(command, env={**os.environ, "TMPDIR": str(temporary)}) as check:
        assert eventually(started.exists)
        check.kill()
    assert eventually(lambda: not list(temporary.glob("constructs-triton-check-*")))
    assert str(temporary) not in subprocess.check_output(["ps", "-eo", "args"], text=True)


_RECORDING_MODEL = """class TritonPythonModel:
    def execute(self, requests):
        import triton_python_backend_utils as pb_utils
        responses = []
        for request in requests:
            x, s = (pb_utils.get_input_tensor_by_name(request, name).as_numpy() for name in "XS")
            with open({seen!r}, "a") as file:
                file.write(f"{{x.shape}} {{x.dtype}} {{x.any()}} {{s.shape}} {{s.ravel()[0]}}\\n")
            tensors = [pb_utils.Tensor("Y", x), pb_utils.Tensor("T", s)]
            responses.append(pb_utils.InferenceResponse(tensors))
        return responses
"""


def test_server_runs_the_warmup_of_model_new(tmp_path: Path) -> None:
    """A Python model in place of ONNX Runtime receives zeros of every input,
    once for each batch size.
    """
    tensors = [
        tensor("X", TensorProto.INT64, ("n", "length")),
        tensor("S", TensorProto.STRING, ("n", 1)),
    ]
    outputs = [
        tensor("Y", TensorProto.INT64, ("n", "length")),
        tensor("T", TensorProto.STRING, ("n", 1)),
    ]
    nodes = [node("Identity", ["X"], ["Y"]), node("Identity", ["S"], ["T"])]
    (tmp_path / "net.onnx").write_bytes(model("", nodes, tensors, outputs))
    words = ["--with-warmup", "--shape", "X=7", "-o", str(tmp_path / "models")]
    assert main(["model", "new", str(tmp_path / "net.onnx"), *words]) == 0
    folder = tmp_path / "models" / "net"
    ModelConfig.read(folder).with_(backend=PythonBackend()).write(folder)
    (folder / "1" / "model.onnx").unlink()
    seen = tmp_path / "seen.txt"
    (folder / "1" / "model.py").write_text(_RECORDING_MODEL.format(seen=str(seen)))
    assert str(ask_server(tmp_path / "models")["net"]) == "loads"
    # Triton makes a batch of four from four requests.
    assert seen.read_text().splitlines() == ["(1, 7) int64 False (1, 1) b''"] * 5
