"""``ModelRepositoryBuilder`` writes a repository completely or not at all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from check_examples.torch_and_plan import torchscript

from constructs_triton_core.errors import InvalidValueError, RepositoryError
from triton_model_check.model_config import (
    Ensemble,
    FilBackend,
    ModelConfig,
    ModelInput,
    ModelOutput,
    OnnxruntimeBackend,
    PythonBackend,
    PytorchBackend,
)
from triton_model_check.model_repository import ModelRepositoryBuilder

MODEL_PY = b"class TritonPythonModel:\n    def execute(self, requests):\n        return []\n"
DOUBLE = ModelConfig(
    name="double",
    backend="python",
    input=[ModelInput(name="x", data_type="TYPE_FP32", dims=[-1])],
    output=[ModelOutput(name="y", data_type="TYPE_FP32", dims=[-1])],
)


def _tree(folder: Path) -> list[str]:
    return sorted(
        f"{path.relative_to(folder)}{'/' if path.is_dir() else ''}" for path in folder.rglob("*")
    )


def test_repository_is_written_and_checked(tmp_path: Path) -> None:
    """Configurations, files, further versions and an ensemble's empty version
    are in their places.
    """
    weights, labels = tmp_path / "traced.pt", tmp_path / "labels"
    weights.write_bytes(torchscript("image: Tensor"))
    labels.write_text("cat\ndog\n")
    image = ModelConfig(
        name="image",
        backend=PytorchBackend(),
        input=[ModelInput(data_type="TYPE_FP32", dims=[3])],
        output=[ModelOutput(data_type="TYPE_FP32", dims=[2], label_filename="labels.txt")],
    )
    builder = (
        ModelRepositoryBuilder()
        .add_model(DOUBLE, MODEL_PY)
        .add_model(Ensemble("chain").input("x").step(DOUBLE).output("y"))
        .add_model(image, weights, version=2, files={"labels.txt": labels, "1/model.pt": b"older"})
    )
    repository = builder.write_to(tmp_path / "out" / "models")
    assert _tree(repository.path) == [
        *("chain/", "chain/1/", "chain/config.pbtxt"),
        *("double/", "double/1/", "double/1/model.py", "double/config.pbtxt"),
        *("image/", "image/1/", "image/1/model.pt", "image/2/", "image/2/model.pt"),
        *("image/config.pbtxt", "image/labels.txt"),
    ]
    assert repository.top_level_models() == ["chain", "image"]
    assert not repository.check().errors
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["models"]


def test_model_file_may_be_added_later(tmp_path: Path) -> None:
    """A repository is written without a model file, but it is not ready for an endpoint."""
    config = ModelConfig(name="net", backend=OnnxruntimeBackend())
    repository = ModelRepositoryBuilder().add_model(config).write_to(tmp_path / "models")
    assert [error.code for error in repository.check().errors] == ["model-file-missing"]


def test_repository_with_errors_is_not_written(tmp_path: Path) -> None:
    """All errors that the checks find are raised together, and nothing is written or replaced."""
    builder = ModelRepositoryBuilder()
    builder.add_model(
        DOUBLE.with_(backend=PythonBackend(execution_env_path="env.tar.gz")), b"no model here"
    )
    builder.add_model(DOUBLE.with_(name="empty"))
    with pytest.raises(RepositoryError) as caught:
        builder.write_to(tmp_path / "models")
    assert {finding.path.split("/")[0] for finding in caught.value.findings} == {"double", "empty"}
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "kept").write_text("mine")
    with pytest.raises(RepositoryError):
        builder.write_to(tmp_path / "models", overwrite=True)
    assert _tree(tmp_path) == ["models/", "models/kept"]


def test_existing_folder_is_replaced_only_when_asked(tmp_path: Path) -> None:
    """A folder with content is an error; with ``overwrite`` the new repository replaces it."""
    builder = ModelRepositoryBuilder()
    builder.add_model(DOUBLE, MODEL_PY)
    builder.write_to(tmp_path / "models")
    (tmp_path / "models" / "stray").write_text("mine")
    with pytest.raises(InvalidValueError, match="is not empty"):
        builder.write_to(tmp_path / "models")
    assert (tmp_path / "models" / "stray").read_text() == "mine"
    builder.write_to(tmp_path / "models", overwrite=True)
    assert _tree(tmp_path / "models") == [
        "double/",
        "double/1/",
        "double/1/model.py",
        "double/config.pbtxt",
    ]


NO_FOLDER_NAME = "must be usable as the name of a folder, got "
NO_PATH_INSIDE = "must be a path inside the model's folder, got "
NO_SOURCE = "file '1/model.py': the source does not exist, got 'absent.py'"
NO_FILE_NAME = "this backend has no default file name, got 'kaldi'; set default_model_filename"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda b: b.add_model(DOUBLE.with_(name="")), f"{NO_FOLDER_NAME}''"),
        (lambda b: b.add_model(DOUBLE.with_(name="a/b")), f"{NO_FOLDER_NAME}'a/b'"),
        (lambda b: (b.add_model(DOUBLE), b.add_model(DOUBLE)), "model 'double': was already added"),
        (lambda b: b.add_model(DOUBLE, "absent.py"), NO_SOURCE),
        (lambda b: b.add_model(DOUBLE, files={"../x": b""}), f"{NO_PATH_INSIDE}'../x'"),
        (lambda b: b.add_model(DOUBLE, files={"/x": b""}), f"{NO_PATH_INSIDE}'/x'"),
        (
            lambda b: b.add_model(DOUBLE, files={"config.pbtxt": b""}),
            "is written from the configuration",
        ),
        (
            lambda b: b.add_model(DOUBLE, MODEL_PY, files={"1/model.py": b""}),
            "contains the model file",
        ),
        (lambda b: b.add_model(DOUBLE, version=0), "version: must be at least 1, got 0"),
        (lambda b: b.add_model(DOUBLE.with_(backend="kaldi"), b""), NO_FILE_NAME),
        (lambda b: b.add_model(DOUBLE, 3), "must be a path or bytes, got 3"),
        (lambda b: b.add_model("double"), "must be a ModelConfig or an Ensemble, got 'double'"),
        (lambda b: b.write_to("anywhere"), "no model was added"),
    ],
)
def test_call_with_an_invalid_value_is_an_error(
    call: Callable[[Any], object], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An invalid name, path or source is an error before anything is written."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidValueError) as caught:
        call(ModelRepositoryBuilder())
    assert message in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_model_file_gets_the_expected_name(tmp_path: Path) -> None:
    """The model file has the name of the configuration, else the backend's default name."""
    tree = ModelConfig(name="tree", backend=FilBackend(model_type="lightgbm", output_class=False))
    named = ModelConfig(name="named", backend="kaldi", default_model_filename="final.mdl")
    builder = ModelRepositoryBuilder()
    builder.add_model(tree, b"tree\n")
    builder.add_model(named, b"weights")
    builder.write_to(tmp_path / "models")
    assert (tmp_path / "models/tree/1/model.txt").read_bytes() == b"tree\n"
    assert (tmp_path / "models/named/1/final.mdl").read_bytes() == b"weights"
