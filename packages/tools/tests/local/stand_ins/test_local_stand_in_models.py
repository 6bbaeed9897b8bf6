"""How a stand-in answers requests: batches, errors, and what it reads of a configuration."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import fake_backend
import numpy as np
import pytest

fake_backend.install()
from constructs_triton_tools.local.stand_ins.served import fil_model, pytorch_model  # noqa: E402
from constructs_triton_tools.local.stand_ins.served.model_config import boolean, integer, parameter  # noqa: E402
from constructs_triton_tools.local.stand_ins.served.onnxruntime_model import TritonPythonModel  # noqa: E402
from constructs_triton_tools.local.stand_ins.served.stand_in import Arrays, StandIn  # noqa: E402

CONFIG = {"name": "m", "max_batch_size": 4, "default_model_filename": "", "input": [], "output": []}


class Doubling(StandIn):
    """Doubles ``X``, and records the size of each batch."""

    default_file = "model.double"
    loaded = ""

    def load(self, model_file: str) -> None:
        self.loaded, self.sizes = model_file, list[int]()
        if self.config["name"] == "broken":
            raise ValueError("cannot be read")

    def run(self, inputs: Arrays, outputs: Sequence[str]) -> Arrays:
        self.sizes.append(len(inputs["X"]))
        if inputs["X"].min() < 0:
            raise ValueError("below zero")
        found = {"Y": inputs["X"] * 2, "Z": np.zeros(1)}
        return {name: found[name] for name in outputs}


def _loaded(**changes: Any) -> Doubling:
    model = Doubling()
    config = json.dumps({**CONFIG, **changes})
    model.initialize(
        {"model_config": config, "model_repository": "/models/m", "model_version": "3"}
    )
    return model


def _ask(model: Doubling, *rows: Any, wanted: Sequence[str] = ("Y",)) -> list[Any]:
    requests = [fake_backend.request(wanted, X=np.array(each, np.float32)) for each in rows]
    return model.execute(requests)


def _answer(model: Any, folder: Path, config: dict[str, Any], wanted: str, **inputs: Any) -> Any:
    """The values of an output of a model in a folder, as lists."""
    arguments = {"model_repository": str(folder), "model_version": "1"}
    model.initialize({**arguments, "model_config": json.dumps({**CONFIG, **config})})
    (answer,) = model.execute([fake_backend.request([wanted], **inputs)])
    return answer.outputs[wanted].tolist()


def test_the_file_of_the_version_is_loaded() -> None:
    """The default name, or that of the configuration."""
    assert _loaded().loaded == "/models/m/3/model.double"
    assert _loaded(default_model_filename="a/b").loaded == "/models/m/3/a/b"


@pytest.mark.parametrize(
    ("max_batch_size", "rows", "expected", "sizes"),
    [
        (4, ([[1]], [[2], [3]], [[4, 5]]), [[[2]], [[4], [6]], [[8, 10]]], [3, 1]),
        (0, ([1], [2]), [[2], [4]], [1, 1]),
    ],
)
def test_requests_of_the_same_shape_are_one_batch(
    max_batch_size: int, rows: Any, expected: Any, sizes: list[int]
) -> None:
    """Each response has the rows of its request;
    without a batch dimension each request is run alone.
    """
    model = _loaded(max_batch_size=max_batch_size)
    assert [answer.outputs["Y"].tolist() for answer in _ask(model, *rows)] == expected
    assert model.sizes == sizes


def test_an_error_is_the_response_to_the_whole_batch() -> None:
    """Other batches are answered."""
    answers = _ask(_loaded(), [[1]], [[-1]], [[4, 5]])
    assert [str(answer.error) for answer in answers] == ["below zero", "below zero", "None"]


def test_an_output_without_the_rows_of_the_batch_is_an_error() -> None:
    """It cannot be divided among the requests."""
    (first, _) = _ask(_loaded(), [[1]], [[2]], wanted=["Z"])
    assert "output 'Z' has shape [1], but the batch has 2 rows" in str(first.error)
    (alone,) = _ask(_loaded(), [[1]], wanted=["Z"])
    assert list(alone.outputs) == ["Z"]


def test_a_model_that_does_not_load_raises_its_reason() -> None:
    """The server reports the message of the exception."""
    with pytest.raises(Exception, match="cannot be read") as caught:
        _loaded(name="broken")
    assert type(caught.value).__name__ == "TritonModelException"


def test_parameters_are_read_as_the_backends_do() -> None:
    """A number may have a suffix; a boolean has six spellings."""
    config = {"parameters": {"n": {"string_value": "2x"}, "b": {"string_value": "OFF"}}}
    assert (integer(config, "n"), boolean(config, "b"), parameter(config, "absent")) == (
        2,
        False,
        None,
    )
    assert (integer(config, "absent"), boolean(config, "absent")) == (None, None)
    with pytest.raises(ValueError, match="integral"):
        integer(config, "b")
    with pytest.raises(ValueError, match="boolean"):
        boolean(config, "n")


@pytest.mark.parametrize(
    ("names", "positions"),
    [
        (["right", "left"], {"right": 1, "left": 0}),
        (["INPUT__1", "INPUT__0"], {"INPUT__1": 1, "INPUT__0": 0}),
        (["b", "a__0"], {"b": 0, "a__0": 1}),
    ],
)
def test_torchscript_inputs_are_arguments_indices_or_in_order(
    names: list[str], positions: dict[str, int]
) -> None:
    """All names must follow one convention."""
    assert pytorch_model._input_positions(names, ["left", "right"]) == positions


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({"output_class": "true", "threshold": "0.7"}, [[0.0], [1.0]]),
        (
            {"output_class": "true", "threshold": "0.7", "predict_proba": "true"},
            [[0.5, 0.5], [0.25, 0.75]],
        ),
        ({"output_class": "false"}, [[0.5], [0.75]]),
    ],
)
def test_scores_of_trees_become_what_the_configuration_asks_for(
    parameters: dict[str, str],
    expected: list[list[float]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """Classes by threshold, probabilities of both classes, or the score itself."""
    monkeypatch.setitem(fil_model._LOADERS, "lightgbm", lambda _: lambda rows: rows[:, 0])
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "model.txt").touch()
    written = {key: {"string_value": value} for key, value in parameters.items()}
    parameters_of_model = {"model_type": {"string_value": "lightgbm"}, **written}
    config = {
        "parameters": parameters_of_model,
        "output": [{"name": "output__0", "dims": [len(expected[0])]}],
    }
    rows = np.array([[0.5, 9], [0.75, 9]], np.float32)
    model = fil_model.TritonPythonModel()
    assert _answer(model, tmp_path, config, "output__0", input__0=rows) == expected


def test_an_onnx_model_keeps_the_dims_of_a_scalar(tmp_path: Path) -> None:
    """The configuration has dims for a tensor without dimensions."""
    from onnx_samples import node, tensor, write_onnx

    write_onnx(
        tmp_path / "1" / "model.onnx", [tensor("X", [])], [tensor("Y", [])], [node("Neg", "X", "Y")]
    )
    side = {"data_type": "TYPE_FP32", "dims": [1, 1]}
    config = {
        "max_batch_size": 0,
        "input": [{"name": "X", **side}],
        "output": [{"name": "Y", **side}],
    }
    row = np.array([[3]], np.float32)
    assert _answer(TritonPythonModel(), tmp_path, config, "Y", X=row) == [[-3.0]]
