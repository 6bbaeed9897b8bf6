"""``model new --task`` leaves a repository that can be built, checked and run as it prints."""

from __future__ import annotations

import argparse
import json
import tomllib
from pathlib import Path

import pytest
from onnx import TensorProto, helper

from triton_model_check.cli.model.arguments import add_arguments
from triton_model_check.cli.model.command import run

FILES = ("requirements.txt", "triton-models.toml")


@pytest.fixture
def network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A classifier of pictures in the current folder, which is empty but for it."""
    monkeypatch.chdir(tmp_path)
    inputs = [helper.make_tensor_value_info("images", TensorProto.FLOAT, (1, 3, 4, 4))]
    outputs = [helper.make_tensor_value_info("scores", TensorProto.FLOAT, (1, 48))]
    nodes = [helper.make_node("Flatten", ["images"], ["scores"])]
    graph = helper.make_graph(nodes, "network", inputs, outputs)
    opsets = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    Path("colours.onnx").write_bytes(model.SerializeToString())
    return "colours.onnx"


def create(program: str, *words: str) -> None:
    """Run ``model new`` as a command of a program."""
    parser = argparse.ArgumentParser(prog=program)
    add_arguments(parser)
    assert run(parser.parse_args(["new", *words, "--task", "classify"])) == 0


def test_environment_with_pillow_is_written(
    network: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The image has no pillow, so the two files that add it are written, and named as written."""
    create("constructs-triton", network)
    requirements, description = (Path("models", name) for name in FILES)
    assert requirements.read_text() == "pillow\n"
    environments = tomllib.loads(description.read_text())["python_environments"]
    assert environments["colours_decode"]["requirements"] == "requirements.txt"
    printed = capsys.readouterr().out
    assert f"wrote {description}" in printed
    assert f"Build it:  constructs-triton env build {requirements}" in printed


@pytest.mark.parametrize("name", FILES)
def test_description_of_the_user_is_kept(
    network: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A repository that has one of the two files is not changed; the lines to add are printed."""
    own = Path("models", name)
    own.parent.mkdir()
    own.write_text("# mine\n")
    create("constructs-triton", network)
    assert own.read_text() == "# mine\n"
    assert [each.name for each in Path("models").iterdir() if each.is_file()] == [name]
    assert "colours_decode = { requirements" in capsys.readouterr().out


def test_json_names_every_file(network: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A program that reads the output finds all files that were written."""
    create("constructs-triton", network, "--json")
    written = json.loads(capsys.readouterr().out)["files"]
    assert sorted(written)[-2:] == [f"models/{name}" for name in FILES]
    assert all(Path(each).is_file() for each in written)


def test_checker_alone_describes_no_environment(network: str) -> None:
    """``triton-model-check`` has no environments; the server's Python is the user's."""
    create("triton-model-check", network)
    assert not [name for name in FILES if Path("models", name).exists()]
