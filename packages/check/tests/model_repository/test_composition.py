"""Which models are packed together, and which get an archive of their own."""

from __future__ import annotations

from pathlib import Path

import pytest
from sample_repositories import write_repository

from constructs_triton_core.errors import InvalidValueError
from triton_model_check.model_config.target import Target
from triton_model_check.model_repository import ModelRepository

IO = (
    "input [{ name: 'x' data_type: TYPE_FP32 dims: 1 }] output [{ name: "
    "'y' data_type: TYPE_FP32 dims: 1 }]"
)
PYTHON = f'backend: "python" {IO}'.encode()
ENSEMBLE = f"""platform: "ensemble" {IO}
ensemble_scheduling {{ step [{{
  model_name: "caller" model_version: -1
  input_map {{ key: "x" value: "x" }} output_map {{ key: "y" value: "y" }}
}}] }}""".encode()
MODEL = "class TritonPythonModel:\n    def execute(self, requests): ...\n"
CALL = """import triton_python_backend_utils as pb_utils
NAMES = ["a"]
def send(**arguments):
    pb_utils.InferenceRequest(model_name={}, **arguments)
"""


def make(path: Path, calls: dict[str, str]) -> Path:
    """Python models, each with the source of the name that it calls or "",
    and an ensemble of "caller".
    """
    files = {"both/config.pbtxt": ENSEMBLE, "both/1/.keep": b""}
    for name, called in calls.items():
        files[f"{name}/config.pbtxt"] = PYTHON
        files[f"{name}/1/model.py"] = (MODEL + (CALL.format(called) if called else "")).encode()
    write_repository(path / "r", files)
    return path / "r"


CHAIN = {"caller": "'middle'", "middle": "'last'", "last": "", "other": ""}


def test_called_models_belong_to_the_closure(tmp_path: Path) -> None:
    """Calls are followed at any depth and through an ensemble, and are loaded by name.

    SageMaker's start script loads one model:
    https://github.com/triton-inference-server/server/issues/5452.
    """
    repository = ModelRepository.from_directory(make(tmp_path, CHAIN))
    assert repository.closure("both") == ["both", "caller", "last", "middle"]
    assert repository.called_models("both") == ["last", "middle"]
    assert repository.called_models("caller") == ["last", "middle"]
    assert repository.called_models("other") == []
    assert repository.top_level_models() == ["both", "other"]


def test_models_that_call_each_other_are_both_served(tmp_path: Path) -> None:
    """A called model is left out only if it does not need its caller."""
    repository = ModelRepository.from_directory(
        make(tmp_path, {"caller": "", "a": "'b'", "b": "'a'"})
    )
    assert repository.called_models("a") == ["b"]
    assert repository.top_level_models() == ["a", "b", "both"]


def test_declared_calls_count(tmp_path: Path) -> None:
    """``calls`` declares what the source does not contain, and the notes about it disappear."""
    path = make(tmp_path, {"caller": "NAMES[0]", "a": "", "b": ""})
    undeclared = ModelRepository.from_directory(path)
    target = Target(default_model="caller")
    codes = [finding.code for finding in undeclared.check(target).findings]
    assert codes == ["python-called-model-unknown"]
    report = undeclared.check()
    assert not report.findings
    assert "call of a model not checked" in report.not_checked[0]
    assert "b" in undeclared.top_level_models()
    declared = ModelRepository.from_directory(path, calls={"caller": ["b"]})
    assert not declared.check(target).findings
    assert not declared.check().not_checked
    assert declared.closure("caller") == ["b", "caller"]


def test_model_can_be_served_alone(tmp_path: Path) -> None:
    """A step of an ensemble gets an archive of its own too."""
    path = make(tmp_path, {"caller": "", "other": ""})
    assert ModelRepository.from_directory(path).top_level_models() == ["both", "other"]
    repository = ModelRepository.from_directory(path, also_served=["caller"])
    assert repository.top_level_models() == ["both", "caller", "other"]
    assert not repository.check(Target("sagemaker-multi-model")).findings


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"also_served": ["callr"]}, r'^also_served: .* got "callr"; did you mean "caller"\?$'),
        ({"calls": {"callr": ["other"]}}, r'^calls .* got "callr"; did you mean "caller"\?$'),
        (
            {"calls": {"caller": "other"}},
            r'^calls\["caller"\]: must be a list .* write \["other"\]$',
        ),
        ({"also_served": "caller"}, r'^also_served: must be a list .* write \["caller"\]$'),
    ],
)
def test_unknown_models_are_refused(
    tmp_path: Path, options: dict[str, object], message: str
) -> None:
    """A name that is not in the repository raises an error that suggests one."""
    path = make(tmp_path, {"caller": "", "other": ""})
    with pytest.raises(InvalidValueError, match=message):
        ModelRepository.from_directory(path, **options)  # type: ignore[arg-type] # wrong on purpose


def test_declared_model_that_is_missing_is_an_error(tmp_path: Path) -> None:
    """The check reports it with a suggestion."""
    path = make(tmp_path, {"caller": "", "other": ""})
    (found,) = ModelRepository.from_directory(path, calls={"caller": ["othr"]}).check().errors
    assert found.path == "caller/config.pbtxt"
    assert (
        found.message
        == 'is declared in calls to call "othr", which the repository does not contain'
    )
    assert found.hint == 'did you mean "other"?'
