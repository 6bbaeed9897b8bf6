"""Files that several models have a copy of."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from constructs_triton_core.errors import InvalidValueError
from triton_model_check import check_repository
from triton_model_check.artifacts.environments import as_packed
from triton_model_check.model_repository import ModelRepository, pack

CONFIG = """backend: "python"
input [ { name: "X" data_type: TYPE_FP32 dims: [ 1 ] } ]
output [ { name: "Y" data_type: TYPE_FP32 dims: [ 1 ] } ]
"""
CODE = """import triton_python_backend_utils as pb_utils
from common.scale import scaled


class TritonPythonModel:
    def execute(self, requests):
        x = [pb_utils.get_input_tensor_by_name(each, "X").as_numpy() for each in requests]
        return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", scaled(each))]) for each in x]
"""
SHARED = """[shared_files]
"shared/model.py" = ["customer-*"]
"shared/common" = ["customer-*"]
"""


@pytest.fixture
def models(tmp_path: Path) -> Path:
    """Two models without code of their own, one of which has two versions, and another model."""
    folder = tmp_path / "models"
    for name in ("customer-a/1", "customer-a/2", "customer-b", "other/1", "shared/common"):
        (folder / name).mkdir(parents=True)
    for name in ("customer-a", "customer-b", "other"):
        (folder / name / "config.pbtxt").write_text(CONFIG)
    (folder / "other" / "1" / "model.py").write_text(CODE.replace("scaled(each)", "each"))
    (folder / "other" / "1" / "common.py").write_text("")
    (folder / "shared" / "model.py").write_text(CODE)
    (folder / "shared" / "common" / "scale.py").write_text("def scaled(x):\n    return x * 2\n")
    (folder / "shared" / "common" / "__pycache__").mkdir()
    (folder / "shared" / "common" / "__pycache__" / "scale.pyc").write_text("")
    (folder / "triton-models.toml").write_text(SHARED)
    return folder


def _names(models: Path, name: str, target: Path) -> set[str]:
    """Return the files in the archive of a model."""
    archive = pack(as_packed(ModelRepository.from_directory(models)), [name], target)
    with tarfile.open(archive.path) as opened:
        return {member.name for member in opened if member.isfile()}


def test_each_version_of_a_matching_model_has_a_copy(models: Path, tmp_path: Path) -> None:
    """A model without a version directory gets the first one; other models are as they were."""
    assert _names(models, "customer-a", tmp_path) == {
        "customer-a/config.pbtxt",
        *(f"customer-a/{version}/model.py" for version in (1, 2)),
        *(f"customer-a/{version}/common/scale.py" for version in (1, 2)),
    }
    assert "customer-b/1/model.py" in _names(models, "customer-b", tmp_path)
    assert _names(models, "other", tmp_path) == {
        "other/config.pbtxt",
        "other/1/model.py",
        "other/1/common.py",
    }


def test_a_fault_is_reported_once_at_the_file_that_the_user_has(models: Path) -> None:
    """Hundreds of models with one file have one fault, which is not in a copy."""
    (models / "other" / "1" / "model.py").write_text(CODE.replace("from common", "# from common"))
    shared = models / "shared" / "model.py"
    shared.write_text(CODE.replace("tensor_by_name", "tensor_by_nam"))
    report = check_repository(models)
    found = [finding for finding in report.errors if finding.path == "shared/model.py"]
    assert [(finding.code, finding.line) for finding in found] == [("python-request-fails", 7)]
    assert not [finding for finding in report.errors if "customer" in finding.path]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('"shared/model.py" = ["costumer-*"]', r'toml:2: .*no model .* matches "costumer-\*"; did'),
        ('"shared/model.py" = "customer-a"', "toml:2: .*must be a list of names of models"),
        ('"shred/model.py" = ["customer-a"]', "toml:2: .*does not exist, got .*; correct the path"),
        ('"../model.py" = ["customer-a"]', "toml:2: .*must be in the folder of triton-models.toml"),
        ('"shared/model.py" = ["other"]', "other/1/model.py: a file of shared_files would replace"),
    ],
)
def test_a_wrong_declaration_names_its_line_and_the_fix(
    text: str, message: str, models: Path
) -> None:
    """Nothing of the user's is replaced, and a pattern without a model is a typing error."""
    (models / "triton-models.toml").write_text(f"[shared_files]\n{text}\n")
    with pytest.raises(InvalidValueError, match=message):
        as_packed(ModelRepository.from_directory(models))


def test_a_file_of_one_model_can_be_that_of_others_too(models: Path, tmp_path: Path) -> None:
    """The first model keeps it, and stays a model."""
    (models / "triton-models.toml").write_text(
        '[shared_files]\n"other/1/model.py" = ["customer-b"]\n'
    )
    assert _names(models, "customer-b", tmp_path) == {
        "customer-b/config.pbtxt",
        "customer-b/1/model.py",
    }
    assert "other/1/model.py" in _names(models, "other", tmp_path)
