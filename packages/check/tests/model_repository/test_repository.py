"""Finding the models of a folder."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from check_examples import Files, write
from check_examples.onnx_models import relu

from constructs_triton_core.errors import InvalidValueError, RepositoryError
from triton_model_check.model_config.target import Target
from triton_model_check.model_repository import ModelRepository

ENSEMBLE = 'platform: "ensemble"\nensemble_scheduling {{ {} }}\n'
PYTHON_MODEL = (
    "class TritonPythonModel:\n  def auto_complete_config(c): ...\n  def execute(r): ...\n"
)
STEP = 'step {{ model_name: "{}" model_version: -1 }}'


def make(directory: Path, files: Files) -> ModelRepository:
    return ModelRepository.from_directory(write(files, directory))


def ensemble(*models: str) -> str:
    """A configuration with these steps."""
    return ENSEMBLE.format(" ".join(STEP.format(model) for model in models))


def test_models_are_folders_with_a_config_or_a_version(tmp_path: Path) -> None:
    """Models without a configuration count, other and hidden folders do not,
    and names are sorted.
    """
    files: Files = {"b/config.pbtxt": "", "a/1/model.onnx": "", "notes/x.txt": "", "README.md": ""}
    repository = make(tmp_path, {**files, ".git/1": None})
    assert list(repository.models) == ["a", "b"]
    assert repository.stray_directories == (".git", "notes")
    assert repository.models["a"].config is None
    assert repository.models["b"].config is not None


def test_versions_are_numbers_in_numeric_order(tmp_path: Path) -> None:
    """Version 10 comes after 9; names that are not plain numbers are left out."""
    files = dict.fromkeys(["m/9", "m/10", "m/0", "m/01", "m/latest", "m/1abc", "m/warmup"])
    model = make(tmp_path, files).models["m"]
    assert model.versions == (0, 9, 10)


def test_closure_follows_nested_ensembles(tmp_path: Path) -> None:
    """The closure contains steps at any depth once, even with a cycle or a missing step."""
    files = {f"{name}/config.pbtxt": "" for name in "abc"}
    files["outer/config.pbtxt"] = ensemble("inner", "a", "absent")
    files["inner/config.pbtxt"] = ensemble("a", "b", "outer")
    repository = make(tmp_path, {**files})
    assert repository.closure("outer") == ["a", "b", "inner", "outer"]
    assert repository.closure("c") == ["c"]


def test_top_level_models_are_not_only_steps(tmp_path: Path) -> None:
    """A multi-model endpoint gets an archive for each model that no ensemble uses."""
    files: Files = {
        "pipe/config.pbtxt": ensemble("a"),
        "a/config.pbtxt": "",
        "other/config.pbtxt": "",
    }
    assert make(tmp_path, files).top_level_models() == ["other", "pipe"]


def test_missing_folder_and_missing_model_are_errors(tmp_path: Path) -> None:
    """The errors of a path that cannot be read and of an unknown name have a fix."""
    with pytest.raises(
        InvalidValueError, match="pass a folder that has one subfolder for each model"
    ):
        ModelRepository.from_directory(tmp_path / "absent")
    with pytest.raises(InvalidValueError, match="to check a bucket, download its folder first"):
        ModelRepository.from_directory(Path("s3://bucket/models"))
    (tmp_path / "net.onnx").touch()
    with pytest.raises(
        InvalidValueError, match="for a model file, run `constructs-triton model new FILE`"
    ):
        ModelRepository.from_directory(tmp_path / "net.onnx")
    with pytest.raises(InvalidValueError, match='did you mean "classifier"'):
        make(tmp_path, {"classifier/config.pbtxt": ""}).closure("clasifier")


def test_relative_path_is_reported_as_absolute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A relative path that does not exist is reported with the current directory before it."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidValueError, match=re.escape(f'got "{tmp_path / "models"}"')):
        ModelRepository.from_directory("models")


@pytest.mark.parametrize("files", [("config.pbtxt", "1/model.py"), ("1/model.py",), ("1/a", "2/a")])
def test_folder_of_one_model_is_recognized(tmp_path: Path, files: tuple[str, ...]) -> None:
    """A folder that is itself a model is an error, with or without a configuration;
    its parent is not.
    """
    texts = {"config.pbtxt": 'backend: "python"'}
    report = make(tmp_path / "scorer", {name: texts.get(name, "") for name in files}).check(
        is_packed=False
    )
    codes = [finding.code for finding in report.errors]
    assert "layout-folder-is-model" in codes
    assert "layout-no-model" not in codes
    parent = ModelRepository.from_directory(tmp_path)
    assert "layout-folder-is-model" not in {finding.code for finding in parent.check().findings}


def test_five_mistakes_are_reported_in_one_run(tmp_path: Path) -> None:
    """One check finds the mistakes of all models, each with its file."""
    python = 'backend: "python"\n'
    repository = make(
        tmp_path,
        {
            "a/config.pbtxt": 'name: "b"\n' + python,
            "a/1/model.py": PYTHON_MODEL,
            "c/config.pbtxt": python,
            "d/config.pbtxt": python,
            "d/1": None,
            "e/config.pbtxt": "max_batch: 1\n",
            "e/1": None,
            "pipe/config.pbtxt": ensemble("absent"),
            "pipe/1": None,
        },
    )
    report = repository.check()
    found = {(error.code, error.path) for error in report.errors}
    assert found >= {
        ("layout-name-differs", "a/config.pbtxt"),
        ("layout-no-version", "c"),
        ("python-model-file", "d/1"),
        ("text-unknown-field", "e/config.pbtxt"),
        ("ensemble-unknown-model", "pipe/config.pbtxt"),
    }
    with pytest.raises(RepositoryError, match="errors, Triton rejects it"):
        report.raise_for_errors()


def test_weights_stored_elsewhere_cause_no_further_errors(tmp_path: Path) -> None:
    """A configuration without local files is valid, and its own mistakes are still reported."""
    tensors = (
        f'{side} {{ name: "X" data_type: TYPE_FP32 dims: 4 }}\n' for side in ("input", "output")
    )
    config = "".join(['backend: "python"\nmax_batch_size: -1\n', *tensors])
    repository = make(tmp_path, {"m/config.pbtxt": config})
    codes = [finding.code for finding in repository.check(Target(local_files=False)).findings]
    assert codes == ["backend-max-batch-size"]


def test_archive_name_is_free_in_a_multi_model_endpoint(tmp_path: Path) -> None:
    """There a configuration may have any name; in a single-model endpoint it must
    have its folder's name.
    """
    config = 'name: "nlp"\nbackend: "onnxruntime"\n'
    repository = make(tmp_path, {"roberta/config.pbtxt": config, "roberta/1/model.onnx": relu()})
    assert repository.check(Target("sagemaker-multi-model")).findings == ()
    errors = repository.check(Target(default_model="roberta")).errors
    assert [error.code for error in errors] == ["layout-name-differs"]


def test_a_folder_with_a_space_is_renamed_and_not_its_name(tmp_path: Path) -> None:
    """SageMaker takes no spaces, so a ``name`` without them is the one to keep."""
    files = {"my model/config.pbtxt": 'name: "my_model"\nbackend: "onnxruntime"\n'}
    repository = make(tmp_path, {**files, "my model/1/model.onnx": relu()})
    found = {
        error.code: error for error in repository.check(Target(default_model="my model")).errors
    }
    assert found.keys() == {"sagemaker-name-blank", "layout-name-differs"}
    assert found["layout-name-differs"].hint == 'rename the folder to "my_model", or remove name'
    assert found["layout-name-differs"].fix is None
