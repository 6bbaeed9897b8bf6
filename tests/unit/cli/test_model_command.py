"""``constructs-triton model new`` in an empty folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from check_examples.onnx_models import relu

from constructs_triton.cli import main
from triton_model_check.cli import PROGRAM
from triton_model_check.model_config import ModelConfig, ModelDynamicBatching
from triton_model_check.model_files import onnx_shapes

FILE = "resnet.onnx"
_RESNET = '0 errors, 0 warnings: Triton 26.05 on a SageMaker single-model endpoint of "resnet" '


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, which contains resnet.onnx only."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "resnet.onnx").write_bytes(relu(("n", 3, "height", "width")))
    return tmp_path


def test_one_command_writes_a_repository_that_passes(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The output has the tensors, the files and the next commands."""
    assert main(["model", "new", "resnet.onnx"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(
        line.split() == ["input", "X", "TYPE_FP32", "[batch,", "3,", "-1,", "-1]"] for line in lines
    )
    assert "wrote models/resnet/config.pbtxt" in lines
    assert "wrote models/resnet/1/model.onnx" in lines
    assert lines[-3:] == [
        "Check it:  constructs-triton check models",
        "Run it:    constructs-triton local up models --model resnet --endpoint resnet",
        "Call it:   constructs-triton invoke resnet --random --endpoint-url http://127.0.0.1:8080",
    ]
    assert main(["check", "models"]) == 0
    assert capsys.readouterr().out == f"{_RESNET}loads it\n"
    assert (folder / "models" / "resnet" / "1" / "model.onnx").read_bytes() == (
        folder / "resnet.onnx"
    ).read_bytes()


def test_next_commands_of_the_checker(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They are those of a machine that has the checker and a server only."""
    assert PROGRAM.main(["model", "new", "resnet.onnx"]) == 0
    assert capsys.readouterr().out.splitlines()[-2:] == [
        "Check it:  triton-model-check check models",
        "Run it:    tritonserver --model-repository=models",
    ]


def test_torchscript_model_runs_locally(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The next commands run it on this machine, where the endpoint has no name in AWS yet."""
    traced = Path(__file__).parents[3] / "packages/check/tests/model_files/torch_archives/traced.pt"
    (folder / "net.pt").write_bytes(traced.read_bytes())
    tensors = ["--input", "INPUT__0:FP32:8", "--output", "OUTPUT__0:FP32:4"]
    assert main(["model", "new", "net.pt", *tensors]) == 0
    assert capsys.readouterr().out.splitlines()[-2:] == [
        "Run it:    constructs-triton local up models --model net --endpoint net",
        "Call it:   constructs-triton invoke net --random --endpoint-url http://127.0.0.1:8080",
    ]
    assert (
        "# max_batch_size is 0, because" in (folder / "models" / "net" / "config.pbtxt").read_text()
    )


def test_unknown_output_shapes(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without the onnx package, Triton completes the outputs,
    and check finds nothing to warn of.
    """
    monkeypatch.setattr(onnx_shapes, "_is_onnx_installed", lambda: False)
    assert main(["model", "new", "resnet.onnx"]) == 0
    out = capsys.readouterr().out
    assert "filled in" in out
    assert "note: resnet.onnx: operators and output shapes not checked: run `pip install" in out
    assert not ModelConfig.read(folder / "models" / "resnet").output
    assert main(["check", "models"]) == 0
    summary = _RESNET.replace("Triton", "unknown: Triton")
    assert capsys.readouterr().out.startswith(f"{summary}accepts what was checked\n")


def test_options(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each option changes its field."""
    words = ["--name", "net", "-o", "other", "--max-batch-size", "32", "--instances", "2", "--gpu"]
    more = [
        "--dynamic-batching",
        "1.5ms",
        "--with-warmup",
        "--shape",
        "X=3,8,8",
        "--parameter",
        "intra_op_thread_count=2",
        "--json",
    ]
    assert main(["model", "new", "resnet.onnx", *words, *more]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert (printed["folder"], printed["name"]) == ("other/net", "net")
    config = ModelConfig.read(folder / "other" / "net")
    assert config.max_batch_size == 32
    assert config.dynamic_batching == ModelDynamicBatching(max_queue_delay_microseconds=1500)
    assert [(group.count, group.kind) for group in config.instance_group] == [(2, "KIND_GPU")]
    assert config.parameters == {"intra_op_thread_count": "2"}
    assert config.model_warmup[1].inputs["X"].dims == (3, 8, 8)


def test_tensors_have_the_names_of_the_wire(folder: Path) -> None:
    """FP32 and INT64 as in requests; a name may contain colons."""
    (folder / "net.json").write_text('{"learner": {}}')
    words = ["--input", "input__0:FP32:28", "--output", "output__0:TYPE_FP32:2"]
    options = [*words, "--parameter", "output_class=true", "--parameter", "predict_proba=true"]
    assert main(["model", "new", "net.json", *options]) == 0
    config = ModelConfig.read(folder / "models" / "net")
    assert [(each.name, each.dims) for each in config.output] == [("output__0", (2,))]


def test_tensors_that_only_the_backend_knows(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """There is no table and no request to try, and the note says what was not checked."""
    (folder / "net.plan").write_bytes(b"ftrt" + bytes(20) + bytes((10, 3, 0, 30)))
    assert main(["model", "new", "net.plan"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["wrote models/net/config.pbtxt", "wrote models/net/1/model.plan"]
    assert lines[2].startswith("note: net.plan: built with TensorRT 10.3.0.30")
    assert lines[-1] == "Check it:  constructs-triton check models"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            [FILE, "--shape", "X=1"],
            "--shape: sets the dims of the warmup request; add --with-warmup",
        ),
        ([FILE, "--shape", "X", "--with-warmup"], "--shape: must have the form NAME=DIMS, got 'X'"),
        (
            [FILE, "--input", "X:FP32"],
            "--input: must have the form NAME:DATATYPE:DIMS, got 'X:FP32'",
        ),
        ([FILE, "--input", "X:FLOAT:3"], "--input X: the datatype is unknown, got 'FLOAT'"),
        ([FILE, "--parameter", "x"], "--parameter: must have the form KEY=VALUE, got 'x'"),
        (
            ["net.json"],
            "set --input input__0:FP32:28 and --parameter output_class=true for a classifier",
        ),
        ([FILE, "--name", "a/b"], "the name of a folder"),
        (["nothing.onnx"], "nothing.onnx: does not exist; pass the path of a model file"),
        (
            ["resnet"],
            "error: resnet: is a folder, and not a model itself; pass a model file\n",
        ),
    ],
)
def test_errors_name_the_option(
    words: list[str], message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 2, one line that names the option to add, and no folder."""
    (folder / "net.json").write_text('{"learner": {}}')
    (folder / "resnet").mkdir()
    assert main(["model", "new", *words]) == 2
    assert message in capsys.readouterr().err
    assert not (folder / "models").exists()


def test_an_existing_folder_is_not_overwritten(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A second run does not overwrite the first."""
    assert main(["model", "new", "resnet.onnx"]) == 0
    assert main(["model", "new", "resnet.onnx"]) == 2
    assert capsys.readouterr().err.startswith(
        "error: models/resnet: already exists; choose another name"
    )


@pytest.mark.parametrize(
    "words", [["--dynamic-batching", "5"], ["--max-batch-size", "-1"], ["--instances", "0"]]
)
def test_malformed_numbers_are_usage_errors(words: list[str]) -> None:
    """Exit code 2, as for every argument of the wrong form."""
    with pytest.raises(SystemExit, match="2"):
        main(["model", "new", "resnet.onnx", *words])
