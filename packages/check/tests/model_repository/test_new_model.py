"""Model folders that are created from a configuration and model files."""

from __future__ import annotations

from pathlib import Path

import pytest

from constructs_triton_core.errors import InvalidValueError, RepositoryError
from triton_model_check.model_repository.new_model import NewModel, write_together

CONFIG = """name: "net"
backend: "python"
input { name: "x" data_type: TYPE_FP32 dims: 4 }
output { name: "y" data_type: TYPE_FP32 dims: 4 }
"""
CODE = "class TritonPythonModel:\n    def execute(self, requests): ...\n"


@pytest.fixture
def net(tmp_path: Path) -> NewModel:
    """A model of a file and a folder."""
    (tmp_path / "code.py").write_text(CODE)
    (tmp_path / "code.py").chmod(0o600)
    (tmp_path / "words").mkdir()
    (tmp_path / "words" / "en.txt").write_text("a")
    files = {"model.py": tmp_path / "code.py", "data/words": tmp_path / "words"}
    return NewModel("net", CONFIG, files)


def test_folder_has_copies(net: NewModel, tmp_path: Path) -> None:
    """Missing parents are created; the files are copies,
    so a change of the original does not reach them.
    """
    folder = net.write_to(tmp_path / "a" / "models")
    assert folder == tmp_path / "a" / "models" / "net"
    paths = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    assert paths == ["1/data/words/en.txt", "1/model.py", "config.pbtxt"]
    copied = folder / "1" / "model.py"
    (tmp_path / "code.py").write_text("")
    assert (copied.read_text(), copied.is_symlink(), copied.stat().st_nlink) == (CODE, False, 1)
    assert [path.name for path in (tmp_path / "a" / "models").iterdir()] == ["net"]


def test_existing_folder_is_kept(net: NewModel, tmp_path: Path) -> None:
    """Nothing is overwritten, even if the folder is empty."""
    (tmp_path / "models" / "net").mkdir(parents=True)
    with pytest.raises(
        InvalidValueError, match="net: already exists; choose another name, or delete the folder"
    ):
        net.write_to(tmp_path / "models")


def test_nothing_is_left_after_an_error(
    net: NewModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error of the checks or of the disk leaves no folder, not even a new repository."""
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(RepositoryError, match="net: 1 error, "):
        NewModel("net", CONFIG.replace("TYPE_FP32", "TYPE_INVALID", 1), net.files).write_to(
            tmp_path / "a" / "models"
        )
    assert sorted(tmp_path.rglob("*")) == before

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("shutil.copyfileobj", full)
    monkeypatch.setattr("fcntl.ioctl", full)
    with pytest.raises(
        InvalidValueError, match=r"net: cannot be written \(no space left on device\)"
    ):
        net.write_to(tmp_path / "a" / "models")
    assert sorted(tmp_path.rglob("*")) == before


def test_models_and_files_are_written_together_or_not_at_all(tmp_path: Path) -> None:
    """A file that cannot be written leaves no model, no other file and no new folder behind."""
    models = [NewModel("net", CONFIG, {"model.py": CODE.encode()})]
    repository = tmp_path / "new" / "models"
    files = {"requirements.txt": "pillow\n", "absent/triton-models.toml": "# text\n"}
    with pytest.raises(InvalidValueError, match="cannot be written"):
        write_together(models, repository, files=files)
    assert list(tmp_path.iterdir()) == []

    write_together(models, repository, files={"requirements.txt": "pillow\n"})
    assert sorted(each.name for each in repository.iterdir()) == ["net", "requirements.txt"]


def test_file_of_the_user_is_not_replaced(tmp_path: Path) -> None:
    """A file that is there already is an error that says so, and no model is written."""
    (tmp_path / "requirements.txt").write_text("mine\n")
    models = [NewModel("net", CONFIG, {"model.py": CODE.encode()})]
    with pytest.raises(InvalidValueError, match=r"requirements\.txt: already exists.*the file"):
        write_together(models, tmp_path, files={"requirements.txt": "pillow\n"})
    assert [each.name for each in tmp_path.iterdir()] == ["requirements.txt"]


def test_link_out_of_a_folder_is_not_copied(net: NewModel, tmp_path: Path) -> None:
    """What is copied would be uploaded: a foreign folder must not choose files of the user."""
    secret = tmp_path / "elsewhere" / "credentials"
    secret.parent.mkdir()
    secret.write_text("secret")
    for name, target in {"file": secret, "folder": secret.parent}.items():
        link = tmp_path / "words" / name
        link.symlink_to(target)
        with pytest.raises(InvalidValueError, match=r"words/.*: is a link out of the folder"):
            net.write_to(tmp_path / "models", check=False)
        link.unlink()
    assert not (tmp_path / "models").exists()


def test_snapshot_of_hugging_face_is_copied(tmp_path: Path) -> None:
    """All files of a snapshot are links to the folder of blobs beside it, and to nothing else."""
    snapshot = tmp_path / "models--a--b" / "snapshots" / "1" / "net"
    blobs = tmp_path / "models--a--b" / "blobs"
    for folder in (snapshot, blobs):
        folder.mkdir(parents=True)
    (blobs / "0123").write_text("weights")
    (snapshot / "weights").symlink_to("../../../blobs/0123")
    model = NewModel("net", CONFIG, {"saved": snapshot})
    folder = model.write_to(tmp_path / "models", check=False)
    assert (folder / "1" / "saved" / "weights").read_text() == "weights"
    (tmp_path / "elsewhere").mkdir()
    blobs.rename(tmp_path / "elsewhere" / "blobs")
    blobs.symlink_to(tmp_path / "elsewhere" / "blobs")
    with pytest.raises(InvalidValueError, match="is a link out of the folder of the model"):
        model.write_to(tmp_path / "others", check=False)
