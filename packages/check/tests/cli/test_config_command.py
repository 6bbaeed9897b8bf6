"""``constructs-triton config show``."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

import pytest
from check_examples import write
from check_examples.onnx_models import relu
from check_examples.torch_and_plan import plan

from constructs_triton_core.errors import ConstructsTritonError
from triton_model_check.cli import config

MODEL = """
backend: "python"
max_batch_size: 8
input {
  name: "[red]" data_type: TYPE_FP32 dims: [ 3, -1 ] optional: true reshape { shape: [ -1 ] }
}
output { name: "y" data_type: TYPE_STRING dims: [ 1 ] label_filename: "labels.txt" }
parameters {
  key: "EXECUTION_ENV_PATH" value { string_value: "$$TRITON_MODEL_DIRECTORY/env.tar.gz" }
}
"""
ENSEMBLE = """
name: "chain"
platform: "ensemble"
max_batch_size: 8
input { name: "x" data_type: TYPE_FP32 dims: [ 3, -1 ] }
output { name: "label" data_type: TYPE_STRING dims: [ 1 ] }
ensemble_scheduling { step {
  model_name: "model" model_version: -1
  input_map { key: "[red]" value: "x" } output_map { key: "y" value: "label" }
} }
"""


@pytest.fixture
def models(tmp_path: Path) -> Path:
    """A repository of a model and an ensemble of it."""
    files = {"model/config.pbtxt": MODEL, "chain/config.pbtxt": ENSEMBLE}
    return write({**files, "model/1": None, "chain/1": None}, tmp_path)


def _show(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    parser = argparse.ArgumentParser()
    config.add_arguments(parser)
    assert config.run(parser.parse_args(["show", *map(str, words)])) == 0
    return capsys.readouterr().out


def test_tables_show_settings_and_shapes(models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A model without a name has that of its folder; shapes include the batch axis."""
    lines = [" ".join(line.split()) for line in _show(capsys, models / "model").splitlines()]
    assert lines[0] == "model"
    assert "max_batch_size 8" in lines
    assert "parameters EXECUTION_ENV_PATH = $$TRITON_MODEL_DIRECTORY/env.tar.gz" in lines
    assert "input [red] TYPE_FP32 [batch, 3, -1] reshape [-1], optional" in lines
    assert "output y TYPE_STRING [batch, 1] label_filename labels.txt" in lines


def test_repository_shows_graphs_as_text(models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All models of a repository are shown, ensembles with their steps."""
    lines = _show(capsys, models).splitlines()
    assert "chain: x -> label" in lines
    assert "  1. model([red]=x) -> y=label" in lines
    assert "model" in lines


def test_what_triton_fills_in_is_marked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tensors and batching come from an ONNX file;
    fields that the configuration contains are not marked.
    """
    write({"net/1/model.onnx": relu()}, tmp_path)
    lines = [" ".join(line.split()) for line in _show(capsys, tmp_path / "net").splitlines()]
    assert lines[0] == "net"
    assert {"max_batch_size 4 filled in", "backend onnxruntime filled in"} <= set(lines)
    assert "input X TYPE_FP32 [batch, 4] filled in" in lines
    (tmp_path / "net" / "config.pbtxt").write_text("max_batch_size: 16\n")
    (model,) = json.loads(_show(capsys, tmp_path, "--json"))["models"]
    assert "max_batch_size" not in model["filled_in"]
    assert {"input", "output", "dynamic_batching", "name"} <= set(model["filled_in"])
    assert model["config"]["dynamic_batching"] == {"preferred_batch_size": [16]}


def test_what_is_unknown_is_a_note(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A model file that is damaged, or that only its backend reads, is named below the tables."""
    write({"a/1/model.onnx": b"", "b/1/model.plan": plan()}, tmp_path)
    notes = [line for line in _show(capsys, tmp_path).splitlines() if line.startswith("note: ")]
    assert notes == [
        "note: a/1/model.onnx: ModelProto does not have a graph: it is an empty file",
        "note: the tensorrt backend may complete tensors and max_batch_size from the model file",
    ]


def test_mermaid_prints_only_the_graph(models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``--mermaid`` prints a flowchart that can be pasted unchanged."""
    out = _show(capsys, models, "--model", "chain", "--mermaid")
    assert out.startswith("flowchart LR\n")
    assert '  in0 -->|"x"| step0' in out.splitlines()


def test_json_has_the_field_names_of_the_schema(
    models: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """``--json`` has the fields that are set, numbers as numbers, and each tensor's shape."""
    (model,) = json.loads(_show(capsys, models, "--model", "model", "--json"))["models"]
    assert model["name"] == "model"
    assert model["config"]["input"][0]["dims"] == [3, -1]
    assert model["config"]["parameters"] == {
        "EXECUTION_ENV_PATH": "$$TRITON_MODEL_DIRECTORY/env.tar.gz"
    }
    assert model["tensors"][0]["shape"] == ["batch", 3, -1]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["absent"], "absent"),
        (["model", "--mermaid"], "contains no ensemble, got model"),
        (["model", "--model", "x"], "is one model, not a repository, got 'x'; leave it out"),
        ([".", "--model", "modle"], "got 'modle'; did you mean \"model\"?"),
        (["model/1"], "contains no model"),
        (["damaged"], "damaged/config.pbtxt:1:17: error[text-syntax]"),
    ],
)
def test_wrong_request_is_refused(
    words: list[str],
    message: str,
    models: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The error says what can be shown, or what is wrong with the file."""
    (models / "damaged").mkdir()
    (models / "damaged" / "config.pbtxt").write_text('max_batch_size: "x')
    monkeypatch.chdir(models)
    with pytest.raises(ConstructsTritonError) as caught:
        _show(capsys, *words)
    assert message in str(caught.value)


def test_help_imports_nothing_heavy() -> None:
    """The arguments are declared without protobuf, rich or NumPy."""
    code = """
import argparse, sys
from triton_model_check.cli import config
config.add_arguments(argparse.ArgumentParser())
print(sorted({name.split(".")[0] for name in sys.modules} & {"google", "rich", "numpy", "grpc"}))
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"
