"""One commit gives one digest on every system.

Git's settings on Linux simulate the other systems.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest
from sample_repositories import MODEL_CODE, MODEL_CONFIG

from constructs_triton.cli import main
from triton_model_check.model_repository import ModelRepository
from triton_model_check.model_repository.packing import fingerprint

pytestmark = pytest.mark.usefixtures("own_cache")

#: Bytes that Git takes for text, because they contain no NUL.
TEXT_LIKE_MODEL = b"\x08\x0cline\nline\n"
MODELS = Path("models", "m")


def _git(folder: Path, *arguments: str) -> None:
    environment = {
        **os.environ,
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        **{
            f"GIT_{who}_{what}": "a@b"
            for who in ("AUTHOR", "COMMITTER")
            for what in ("NAME", "EMAIL")
        },
    }
    subprocess.run(
        ["git", *arguments], cwd=folder, env=environment, check=True, capture_output=True
    )


def _checkout(origin: Path, *options: str) -> Path:
    folder = origin.parent / f"checkout{len(list(origin.parent.iterdir()))}"
    _git(origin.parent, "clone", "--quiet", *options, str(origin), str(folder))
    return folder


def _digest(checkout: Path) -> str:
    return fingerprint(ModelRepository.from_directory(checkout / "models"), ["m"], use_cache=False)


def _warnings(checkout: Path) -> list[str]:
    return [
        each.code for each in ModelRepository.from_directory(checkout / "models").check().warnings
    ]


@pytest.fixture(params=[True, False], ids=["attributes", "no attributes"])
def origin(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A commit of a new project with a model, with and without the template's
    ``.gitattributes``.
    """
    project = tmp_path / "origin"
    assert main(["project", "new", str(project)]) == 0
    shutil.rmtree(project / "models")
    files = {
        "config.pbtxt": MODEL_CONFIG.encode(),
        "1/model.py": MODEL_CODE.encode(),
        "1/weights.onnx": TEXT_LIKE_MODEL,
        "1/\u00e9.txt": b"caf\xc3\xa9\n",
    }
    for path, content in files.items():
        (project / MODELS / path).parent.mkdir(parents=True, exist_ok=True)
        (project / MODELS / path).write_bytes(content)
    if not request.param:
        (project / ".gitattributes").unlink()
    _git(project, "init", "--quiet")
    _git(project, "add", ".")
    _git(project, "commit", "--quiet", "-m", "models")
    return project


def _has_attributes(origin: Path) -> bool:
    return (origin / ".gitattributes").exists()


def _touch(checkout: Path) -> None:
    for path in (checkout / MODELS).rglob("*"):
        path.chmod(0o700 if path.is_dir() else 0o600)
        os.utime(path, (1, 1))


def _add_execute_bits(checkout: Path) -> None:
    for path in (checkout / MODELS).rglob("*"):
        path.chmod(0o777)


def _add_files_of_systems(checkout: Path) -> None:
    version = checkout / MODELS / "1"
    for name in ("._model.py", ".DS_Store", "desktop.ini", "Thumbs.db", "model.pyc"):
        (version / name).write_bytes(b"\0" * 200)
    (version / "__pycache__").mkdir()
    (version / "__pycache__" / "model.cpython-312.pyc").write_bytes(b"x")


@pytest.mark.parametrize("change", [_touch, _add_execute_bits, _add_files_of_systems])
def test_disks_and_desktops_change_nothing(change: Callable[[Path], None], origin: Path) -> None:
    """Permissions, times, and the files that macOS,
    Windows and Python add have no part in the digest.
    """
    checkout = _checkout(origin)
    change(checkout)
    assert _digest(checkout) == _digest(_checkout(origin))
    assert _warnings(checkout) == []


@pytest.mark.parametrize("setting", ["core.autocrlf=true", "core.eol=crlf"])
def test_line_ends_of_windows(setting: str, origin: Path) -> None:
    """Git for Windows converts line ends, also in models; with the attributes it does not."""
    checkout = _checkout(origin, "-c", setting)
    is_same = (
        _has_attributes(origin) or setting == "core.eol=crlf"
    )  # which acts only on declared text
    assert (_digest(checkout) == _digest(_checkout(origin))) is is_same
    assert _warnings(checkout) == ([] if is_same else ["file-line-endings"])
    model = (checkout / MODELS / "1" / "weights.onnx").read_bytes()
    assert (model == TEXT_LIKE_MODEL) is is_same


def test_text_that_was_written_on_windows_is_stored_with_lf(origin: Path) -> None:
    """An editor's CR LF reaches the commit only without the attributes."""
    path = origin / MODELS / "1" / "model.py"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    _git(origin, "commit", "--quiet", "--all", "--allow-empty", "-m", "edited")
    assert _warnings(_checkout(origin)) == (
        [] if _has_attributes(origin) else ["file-line-endings"]
    )


def test_names_in_nfd(origin: Path) -> None:
    """HFS+ of macOS decomposes names, which no attribute prevents; a warning names them."""
    checkout = _checkout(origin)
    for path in (checkout / MODELS / "1").iterdir():
        path.rename(path.with_name(unicodedata.normalize("NFD", path.name)))
    assert _digest(checkout) != _digest(_checkout(origin))
    assert _warnings(checkout) == ["file-name-form"]


def test_names_that_differ_in_case(origin: Path) -> None:
    """A disk that ignores case keeps one of two files; the complete checkout has a warning."""
    (origin / MODELS / "1" / "Model.py").write_text(MODEL_CODE)
    _git(origin, "add", ".")
    _git(origin, "commit", "--quiet", "-m", "twin")
    complete, lost = _checkout(origin), _checkout(origin)
    (lost / MODELS / "1" / "Model.py").unlink()
    assert _digest(complete) != _digest(lost)
    assert _warnings(complete) == ["file-names-collide"]


@pytest.mark.parametrize(
    "is_committed", [False, True], ids=["LF in the commit", "CR LF in the commit"]
)
def test_hint_about_line_ends_leads_to_the_same_digest(is_committed: bool, origin: Path) -> None:
    """The steps of the page on digests end with the digest of a Linux checkout,
    and damage no model.
    """
    wanted, path = _digest(_checkout(origin)), origin / MODELS / "1" / "model.py"
    if is_committed:
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
        (origin / ".gitattributes").unlink(missing_ok=True)
        _git(origin, "commit", "--quiet", "--all", "--allow-empty", "-m", "with CR LF")
    windows = _checkout(origin, "-c", "core.autocrlf=true")
    (windows / ".gitattributes").write_text("* text=auto eol=lf\n*.onnx -text\n")
    _git(windows, "add", ".gitattributes")
    _git(windows, "commit", "--quiet", "--allow-empty", "-m", "attributes")
    again = _checkout(windows, "-c", "core.autocrlf=true")
    if is_committed:
        assert _warnings(again) == ["file-line-endings"]
        _git(again, "add", "--renormalize", ".")
        _git(again, "commit", "--quiet", "-m", "LF")
        again = _checkout(again, "-c", "core.autocrlf=true")
    assert _digest(again) == wanted
    assert _warnings(again) == []
