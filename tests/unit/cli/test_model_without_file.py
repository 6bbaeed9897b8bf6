"""``constructs-triton model new`` for Python models and ensembles."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from check_examples.onnx_models import relu

from constructs_triton.cli import main
from triton_model_check.model_config import ModelConfig

NEW = ("model", "new")
PYTHON = (*NEW, "--backend", "python")
ENSEMBLE = (*NEW, "--backend", "ensemble")
CODE = """
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        tensors = [pb_utils.get_input_tensor_by_name(each, "x").as_numpy() for each in requests]
        return [pb_utils.InferenceResponse([pb_utils.Tensor("y", x)]) for x in tensors]
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with the code of a model."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "twice.py").write_text(CODE)
    return tmp_path


def _new_pair() -> None:
    """Create the models ``first`` and ``second``, of which one reads what the other writes."""
    sizes = ("--max-batch-size", "4")
    assert main([*PYTHON, "first", "--input", "text:BYTES:1", "--output", "X:FP32:3", *sizes]) == 0
    Path("second.onnx").write_bytes(relu(("n", 3)))
    assert main([*NEW, "second.onnx"]) == 0


def test_first_model_passes_the_check(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A name and tensors give a folder that passes without a warning, with commands to run it."""
    tensors = [
        "--input",
        "text:BYTES:1",
        "--output",
        "class:FP16:2,-1",
        "--output",
        "class.s:BYTES:1",
    ]
    assert main([*PYTHON, "words", *tensors, "--max-batch-size", "8", "--with-warmup"]) == 0
    out = capsys.readouterr().out
    assert "wrote models/words/1/model.py" in out
    assert "Run it:    constructs-triton local up models --model words" in out
    assert main(["check", "models"]) == 0
    assert "0 errors, 0 warnings" in capsys.readouterr().out
    code = (folder / "models" / "words" / "1" / "model.py").read_text()
    assert 'class_ = np.zeros((len(text), 2, 1), "float16")' in code
    assert 'class_s = np.full((len(text), 1), b"", "object")' in code
    assert len(ModelConfig.read("models/words").model_warmup) == 2


def test_decoupled_model_is_written_with_its_command(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The check asks for a streaming endpoint and for nothing else;
    the command that calls it streams.
    """
    tensors = ["--input", "_:BYTES:1", "--output", "range:FP32:2"]
    assert main([*PYTHON, "teller", "--decoupled", *tensors, "--max-batch-size", "2"]) == 0
    assert "constructs-triton invoke teller --stream --random" in capsys.readouterr().out
    assert ModelConfig.read("models/teller").to_message().model_transaction_policy.decoupled
    code = (folder / "models" / "teller" / "1" / "model.py").read_text()
    assert 'range_ = np.zeros((len(__), 2), "float32")' in code
    assert main(["check", "models", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["findings"]
    assert [each["code"] for each in found] == ["sagemaker-decoupled-stream"]


def test_variables_of_unusual_names(folder: Path) -> None:
    """Tensors get different variables, which are names of Python and hide
    nothing that the code uses.
    """
    words = [
        "--input",
        "np:INT8:1",
        "--input",
        "0:BOOL:1",
        "--input",
        "a b:BOOL:1",
        "--output",
        "a_b:BOOL:1",
    ]
    assert main([*PYTHON, "odd", *words]) == 0
    code = (folder / "models" / "odd" / "1" / "model.py").read_text()
    compile(code, "model.py", "exec")
    for line in ("np_ = ", "tensor_0 = ", "a_b = pb_utils", 'a_b_ = np.zeros((1,), "bool")'):
        assert f"        {line}" in code


@pytest.mark.parametrize("words", [NEW, PYTHON])
def test_code_of_the_user_is_copied(folder: Path, words: tuple[str, ...]) -> None:
    """A path that ends in .py is the model's code, and not a name."""
    tensors = ["--input", "x:FP32:4", "--output", "y:FP32:4"]
    assert main([*words, "twice.py", *tensors, "--name", "double"]) == 0
    assert (folder / "models" / "double" / "1" / "model.py").read_text() == CODE
    assert main(["check", "models"]) == 0


def test_code_that_completes_its_configuration_needs_no_tensors(folder: Path) -> None:
    """A model with auto_complete_config declares its tensors itself."""
    code = (
        CODE + "\n    @staticmethod\n    def auto_complete_config(config):\n        return config\n"
    )
    (folder / "twice.py").write_text(code)
    assert main([*NEW, "twice.py"]) == 0
    assert not ModelConfig.read("models/twice").input


def test_ensemble_connects_equal_names(capsys: pytest.CaptureFixture[str]) -> None:
    """What no step writes is an input, what no step reads is an output,
    and the repository passes.
    """
    _new_pair()
    capsys.readouterr()
    assert main([*ENSEMBLE, "both", "--step", "second", "--step", "first", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["name"] == "both"
    config = ModelConfig.read("models/both")
    assert ([each.name for each in config.input], [each.name for each in config.output]) == (
        ["text"],
        ["Y"],
    )
    assert config.max_batch_size == 4
    assert main(["check", "models"]) == 0
    assert "0 errors, 0 warnings" in capsys.readouterr().out


def test_ensemble_maps_other_names() -> None:
    """A step gives its tensors other names in the ensemble."""
    _new_pair()
    words = ["--step", "first:text=review,X=features", "--step", "second:X=features"]
    assert main([*ENSEMBLE, "both", *words]) == 0
    config = ModelConfig.read("models/both").to_message()
    assert [each.name for each in config.input] == ["review"]
    assert [dict(step.input_map) for step in config.ensemble_scheduling.step] == [
        {"text": "review"},
        {"X": "features"},
    ]


TENSORS = ("--input", "a:FP32:1", "--output", "b:FP32:1")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((*NEW, "none.py"), "none.py: cannot be read (no such file or directory); pass the path"),
        (
            (*NEW, "twice.py"),
            "the tensors of a Python model are not known; set --input and --output",
        ),
        ((*PYTHON, "a/b", *TENSORS), "name: must be usable as the name of a folder, got 'a/b'"),
        (
            (*PYTHON, "a", *TENSORS, "--name", "b"),
            "--name: with --backend, the first argument is the name",
        ),
        (
            (*PYTHON, "a", *TENSORS, "--step", "b"),
            "only an ensemble has steps; add --backend ensemble",
        ),
        (
            (*NEW, "second.onnx", "--decoupled"),
            "only a Python model can be written as a stream; add",
        ),
        ((*ENSEMBLE, "e", "--step", "first", "--decoupled"), "--decoupled: only a Python model"),
        (
            (*PYTHON, "a", "--input", "a:BF16:1", "--output", "b:FP32:1"),
            'tensor "a": NumPy has no BF16',
        ),
        (
            (*PYTHON, "a", *TENSORS, "--dynamic-batching", "5ms"),
            "has no effect, because max_batch_size is 0",
        ),
        ((*ENSEMBLE, "e"), "--step: an ensemble has at least one step"),
        ((*ENSEMBLE, "e", "--step", "firsts"), "got 'firsts'; did you mean \"first\"?"),
        (
            (*ENSEMBLE, "e", "--step", "first:txt=a"),
            'the model has no tensor "txt"; did you mean "text"?',
        ),
        (
            (*ENSEMBLE, "e", "--step", "first:text"),
            "must have the form NAME:TENSOR=TENSOR,..., got 'text'",
        ),
        ((*ENSEMBLE, "e", "--step", "first", *TENSORS), "takes --step and --max-batch-size only"),
        ((*ENSEMBLE, "e", "--step", "first", "--step", "first"), "for example --step first:X=X_2"),
        (
            (*ENSEMBLE, "e", "--step", "first", "--step", "alone"),
            '"alone" cannot batch, and the other',
        ),
        (
            (*ENSEMBLE, "e", "--step", "same:s=t"),
            '"s" is an input and an output of the model; use the class',
        ),
        ((*ENSEMBLE, "e", "--step", "bare"), "--step bare: its config.pbtxt has no inputs"),
        (
            (*ENSEMBLE, "e", "--step", "first", "--max-batch-size", "9"),
            'error: ensemble "e": ensemble allows maximum batch size 9',
        ),
    ],
)
def test_mistakes(words: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The message says how to fix each mistake, and no folder is created."""
    _new_pair()
    assert main([*PYTHON, "alone", "--input", "q:FP32:1", "--output", "r:FP32:1"]) == 0
    assert main([*PYTHON, "same", "--input", "s:FP32:1", "--output", "s:FP32:1"]) == 0
    ModelConfig(name="bare", backend="python").write("models/bare")
    before = sorted(Path("models").iterdir())
    capsys.readouterr()
    assert main(list(words)) == 2
    assert message in capsys.readouterr().err
    assert sorted(Path("models").iterdir()) == before
