"""Environments of ``triton-models.toml``, as the commands use them."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest
from handmade_wheels import write_wheels

from constructs_triton.cli import main
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_tools.local.sources.sources import read_source
from constructs_triton_tools.measuring.tuning.candidates import Candidate, ModelSettings
from constructs_triton_tools.measuring.tuning.repositories import TunedRepository
from triton_model_check.artifacts.environments.placement import as_packed
from triton_model_check.model_repository import ModelRepository

TENSOR = '[ { name: "%s" data_type: TYPE_FP32 dims: [ 1 ] } ]'
CONFIG = f'backend: "python"\ninput {TENSOR % "X"}\noutput {TENSOR % "Y"}\n'
CODE = "import pure\nclass TritonPythonModel:\n    def execute(self, requests): ...\n"


@pytest.fixture
def models(tmp_path: Path, own_cache: Path) -> Path:
    """Two models, of which the file gives one an environment that was not built yet."""
    folder = tmp_path / "models"
    for name in ("first", "second"):
        (folder / name / "1").mkdir(parents=True)
        (folder / name / "config.pbtxt").write_text(CONFIG)
        (folder / name / "1" / "model.py").write_text(CODE)
    write_wheels(folder / "wheels")
    (folder / "requirements.txt").write_text("--no-index\n--find-links ./wheels\npure\n")
    (folder / "triton-models.toml").write_text(
        '[python_environments]\nfirst = { requirements = "requirements.txt" }\n'
    )
    return folder


def build(models: Path) -> None:
    """Build the environment."""
    assert main(["env", "build", str(models / "requirements.txt")]) == 0


def checked(models: Path, capsys: pytest.CaptureFixture[str]) -> tuple[list[str], str]:
    """The models whose imports are missing, and what was not checked."""
    capsys.readouterr()
    assert main(["check", "--json", str(models)]) == 0
    found = json.loads(capsys.readouterr().out)
    paths = [each["path"] for each in found["findings"] if each["code"] == "python-import-missing"]
    reasons = [each["reason"] for each in found["not_checked"]]
    return paths, " ".join(each for each in reasons if each.startswith("environment"))


def test_check_reads_the_environment(models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Only the model without an environment lacks a package;
    one that is not built is not checked.
    """
    paths, not_checked = checked(models, capsys)
    assert paths == ["second/1/model.py"]
    assert f"run `constructs-triton env build {models / 'requirements.txt'}`" in not_checked
    build(models)
    assert checked(models, capsys) == (["second/1/model.py"], "")
    (models / "triton-models.toml").write_text(
        'python_environments."*".requirements = "requirements.txt"'
    )
    assert checked(models, capsys) == ([], "")


def test_pack_and_local_up_place_the_environment(models: Path, tmp_path: Path) -> None:
    """The archives have the environment and not the file; without the environment,
    nothing is packed.
    """
    assert main(["pack", str(models), "-o", str(tmp_path / "packed")]) == 2
    build(models)
    assert main(["pack", str(models), "-o", str(tmp_path / "packed"), "--model", "first"]) == 0
    (endpoint,) = read_source(models, tmp_path, model="first")
    container = endpoint.variants[0].container
    for archive in (tmp_path / "packed" / "first.tar.gz", container.archive):
        assert archive is not None
        with tarfile.open(archive) as tar:
            assert sorted(tar.getnames()) == [
                "first",
                "first/1",
                "first/1/model.py",
                "first/config.pbtxt",
                "first/env.tar",
            ]


def test_config_show_names_the_environment(
    models: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It needs no built environment."""
    assert main(["config", "show", "--json", str(models)]) == 0
    first, second = json.loads(capsys.readouterr().out)["models"]
    (note,) = first["notes"]
    assert note.startswith(
        f"triton-models.toml: Python environment of {models / 'requirements.txt'} for image"
    )
    assert second["notes"] == []


def test_tune_measures_with_the_environment(models: Path, tmp_path: Path) -> None:
    """A copy has the environment itself and no link;
    the configuration to write is that of the user.
    """
    build(models)
    own = ModelRepository.from_directory(models)
    present, other = (Candidate.of(first=ModelSettings(size)) for size in (1, 2))
    tuned = TunedRepository(as_packed(own), "first", present, own=own)
    tuned.copy(present, tmp_path / "copy")
    archive = tmp_path / "copy" / "first" / "env.tar"
    assert archive.is_file()
    assert not archive.is_symlink()
    assert "EXECUTION_ENV_PATH" in (tmp_path / "copy" / "first" / "config.pbtxt").read_text()
    (changed,) = tuned.changed(other)
    assert "EXECUTION_ENV_PATH" not in (changed.config_text or "")


def test_included_requirements_stay_in_the_folder(models: Path) -> None:
    """A line ``-r`` of a foreign folder reads no file outside of it."""
    (models.parent / "secret.txt").write_text("key = SECRET")
    (models / "requirements.txt").write_text("-r ../secret.txt\n")
    with pytest.raises(InvalidValueError, match=r"secret\.txt: must be in the folder") as caught:
        as_packed(ModelRepository.from_directory(models))
    assert "SECRET" not in str(caught.value)


def test_next_command_names_the_folder_of_the_user(
    models: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A copy with the environment is checked, and the command is for the folder without it."""
    build(models)
    capsys.readouterr()
    assert main(["check", str(models)]) == 0
    note = capsys.readouterr().err.splitlines()[-1]
    assert note == f"next: constructs-triton local up {models} --multi-model"
