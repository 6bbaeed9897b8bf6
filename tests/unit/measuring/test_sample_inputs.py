"""``constructs-triton invoke --random`` and ``--zeros``."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import constructs_triton_client as client
from constructs_triton.cli import main
from constructs_triton_client.wire import encode_request
from constructs_triton_core.datatypes import DATATYPES
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_tools.measuring.sample_inputs import python_call, sample_inputs

_TENSOR = '{side} {{ name: "{name}" data_type: {data_type} dims: [ {dims} ] {more} }}\n'


def write_model(repository: Path, name: str, tensors: str, max_batch_size: int = 8) -> None:
    output = _TENSOR.format(side="output", name="y", data_type="TYPE_FP32", dims="4", more="")
    (repository / name / "1").mkdir(parents=True)
    config = f'name: "{name}" backend: "python" max_batch_size: {max_batch_size}\n{tensors}{output}'
    (repository / name / "config.pbtxt").write_text(config)


def declare(name: str, data_type: str = "TYPE_FP32", dims: str = "-1, 4", more: str = "") -> str:
    return _TENSOR.format(side="input", name=name, data_type=data_type, dims=dims, more=more)


@pytest.mark.parametrize("is_random", [True, False])
@pytest.mark.parametrize("row", DATATYPES, ids=lambda row: str(row.datatype))
def test_every_datatype_can_be_sent(row: Any, is_random: bool, tmp_path: Path) -> None:
    """The arrays have the datatype and the batch axis; a variable size is 1."""
    write_model(tmp_path, "net", declare("x", row.data_type))
    array, datatype = sample_inputs(tmp_path, None, [], {}, is_random=is_random)["x"]
    assert (array.shape, datatype) == ((1, 1, 4), row.datatype)
    datatypes = {"x": "BF16"} if row.datatype == "BF16" else None
    assert encode_request({"x": array}, datatypes=datatypes)


def test_shapes_and_optional_inputs(tmp_path: Path) -> None:
    """A shape replaces variable sizes; there is no batch axis without batching,
    and no optional input.
    """
    write_model(
        tmp_path, "net", declare("x") + declare("o", more="optional: true"), max_batch_size=0
    )
    inputs = sample_inputs(tmp_path, None, [], {"x": (3, 4)}, is_random=True)
    assert {name: array.shape for name, (array, _) in inputs.items()} == {"x": (3, 4)}


def test_missing_repository(tmp_path: Path) -> None:
    """The message names the option, because the default is a folder of the current folder."""
    with pytest.raises(InvalidValueError, match=r"--repository: .*absent is not a folder; set it"):
        sample_inputs(tmp_path / "absent", None, [], {}, is_random=True)


def test_choice_of_the_model(tmp_path: Path) -> None:
    """--model, else the endpoint's name, else the only model."""
    for name in ("a", "b"):
        write_model(tmp_path, name, declare(f"x_{name}"))
    assert list(sample_inputs(tmp_path, None, ["", "b"], {}, is_random=False)) == ["x_b"]
    assert list(sample_inputs(tmp_path, "a", ["b"], {}, is_random=False)) == ["x_a"]
    with pytest.raises(InvalidValueError, match=r'--model: is required, .* contains "a" and "b"'):
        sample_inputs(tmp_path, None, ["endpoint"], {}, is_random=False)
    with pytest.raises(InvalidValueError, match=r"has no such model, got 'c'"):
        sample_inputs(tmp_path, "c", [], {}, is_random=False)


def test_folder_of_repositories(tmp_path: Path) -> None:
    """The message names the repositories that a folder contains in place of models."""
    write_model(tmp_path / "tenants", "a", declare("x"))
    write_model(tmp_path / "single", "b", declare("x"))
    with pytest.raises(
        InvalidValueError, match=r'no model; set it .*, such as ".*single" and ".*tenants"'
    ):
        sample_inputs(tmp_path, None, [], {}, is_random=False)
    with pytest.raises(
        InvalidValueError, match=r"tenants.a contains no model; set it to a folder of models$"
    ):
        sample_inputs(tmp_path / "tenants" / "a", None, [], {}, is_random=False)


def test_unknown_inputs(tmp_path: Path) -> None:
    """A configuration without inputs does not say what to send."""
    write_model(tmp_path, "net", "")
    with pytest.raises(InvalidValueError, match="the inputs of the model are not known"):
        sample_inputs(tmp_path, None, [], {}, is_random=False)


@pytest.mark.parametrize("endpoint", ["net", "http://127.0.0.1:8080"])
def test_python_call_is_code(endpoint: str) -> None:
    """The printed code parses, and calls the same endpoint."""
    inputs = {
        "x": (np.zeros((1, 4), "f4"), "FP32"),
        "s": (np.full((1, 1), b"", dtype=object), "BYTES"),
    }
    options = {"endpoint_url": "http://x", "region_name": None}
    code = python_call(endpoint, options, inputs, {"TargetVariant": "next"})
    ast.parse(code)
    assert "}, TargetVariant='next')" in code
    assert repr(endpoint) in code
    assert "'x': np.zeros((1, 4), \"float32\")" in code
    assert "region_name" not in code


def test_command_sends_and_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """--zeros sends every input and prints the same call in Python."""
    write_model(tmp_path / "models", "net", declare("x"))
    monkeypatch.chdir(tmp_path)
    sent: dict[str, Any] = {}

    class Echo:
        def __init__(self, *_: object, **__: object) -> None: ...

        @classmethod
        def for_endpoint(cls, *_: object, **__: object) -> Echo:
            return cls()

        def infer(self, arrays: dict[str, Any], *_: object, **__: object) -> client.InferenceResult:
            sent.update(arrays)
            return client.InferenceResult({"y": arrays["x"]}, {"y": "FP32"}, "net", "1")

    monkeypatch.setattr(client, "TritonClient", Echo)
    write_model(tmp_path / "models", "other", declare("x"))
    words = ["--target-model", "net-3f9c2a1b.tar.gz", "--zeros", "--shape", "x=2,4"]
    assert main(["invoke", "endpoint", *words]) == 0
    assert sent["x"].shape == (1, 2, 4)
    shown = capsys.readouterr().out
    assert "A request of this form in Python, with zeros:" in shown
    assert "session=" not in shown
