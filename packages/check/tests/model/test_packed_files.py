"""What the checks report of any file that packing takes: Git LFS pointers, line ends and names."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from check_examples.files import POINTER
from check_examples.onnx_models import model, node, tensor
from check_examples.repositories import CLASS, ENVIRONMENT, HEAD, ONNX, Files, one, write
from onnx import TensorProto, external_data_helper, helper

from constructs_triton_core.findings import Severity
from triton_model_check.checks.report import Report
from triton_model_check.model.folder import ModelFolder
from triton_model_check.model_config.target import Target
from triton_model_check.model_repository import ModelRepository

LFS = "file-git-lfs-pointer"
LABELS = HEAD.replace('"Y"', '"Y" label_filename: "labels.txt"')
WARM = (
    'model_warmup [ { name: "w" batch_size: 1 inputs { key: '
    '"X" value { data_type: TYPE_FP32 dims: [ 400 ] '
)
STATE = (
    "sequence_batching { state [ { "
    'input_name: "S" output_name: "T" data_type: TYPE_FP32 dims: [ 400 ] '
    'initial_state { name: "s" data_type: TYPE_FP32 dims: [ 400 ] data_file: "zero" } } ] }\n'
)
SAVED = HEAD.replace('backend: "python"', 'platform: "tensorflow_savedmodel"')
OPENVINO = HEAD.replace('backend: "python"', 'backend: "openvino"')


def _external() -> bytes:
    """A model whose weights of 1,600 bytes are in another file."""
    weights = helper.make_tensor("w", TensorProto.FLOAT, [100, 4], bytes(1600), raw=True)
    external_data_helper.set_external_data(weights, "model.onnx.data", 0, 1600)
    weights.ClearField("raw_data")
    weights.data_location = TensorProto.EXTERNAL
    nodes = [node("Add", ["X", "w"], ["Y"])]
    return model("external", nodes, [tensor("X")], [tensor("Y")], initializers=[weights])


POINTED: dict[str, Files] = {
    "m/config.pbtxt": one(HEAD),
    "m/1/model.py": one(HEAD),
    "m/1/helpers.py": one(HEAD),
    "m/1/weights.npz": one(HEAD),
    "m/1/tokenizer/tokenizer.json": one(HEAD),
    "m/labels.txt": one(LABELS),
    "m/env.tar.gz": one(HEAD + ENVIRONMENT % "$$TRITON_MODEL_DIRECTORY/env.tar.gz"),
    "m/warmup/x": one(
        HEAD.replace("dims: [ 4 ]", "dims: [ 400 ]") + WARM + 'input_data_file: "x" } } } ]\n'
    ),
    "m/initial_state/zero": one(HEAD + STATE),
    "m/1/model.onnx": {"m/config.pbtxt": ONNX},
    "m/1/model.onnx.data": {"m/config.pbtxt": ONNX, "m/1/model.onnx": _external()},
    "m/1/model.savedmodel/saved_model.pb": {"m/config.pbtxt": SAVED},
    "m/1/model.bin": {
        "m/config.pbtxt": OPENVINO,
        "m/1/model.xml": '<net><layers><layer type="Const"/></layers></net>',
    },
    "m/1/model.json": {"m/config.pbtxt": 'backend: "vllm"\n'},
}


def _check(files: Files, directory: Path, target: Target | None = None) -> Report:
    return ModelRepository.from_directory(write(files, directory / "models")).check(target)


@pytest.mark.parametrize("path", POINTED)
def test_pointer_is_the_only_finding(path: str, tmp_path: Path) -> None:
    """A pointer in place of any file is one error,
    and no rule says what else is wrong with its text.
    """
    (finding,) = _check({**POINTED[path], path: POINTER}, tmp_path).errors
    assert (finding.code, finding.path) == (LFS, path)
    assert finding.hint == "run `git lfs install` and `git lfs pull`, or check with --no-files"


@pytest.mark.parametrize(
    ("path", "verdict"),
    [
        ("m/config.pbtxt", "rejected"),
        ("m/1/model.py", "rejected"),
        ("m/1/weights.npz", "cannot-be-served"),
    ],
)
def test_verdict_is_still_that_of_the_server(path: str, verdict: str, tmp_path: Path) -> None:
    """Triton rejects a pointer in place of a file that it reads itself."""
    assert _check({**one(HEAD), path: POINTER}, tmp_path).verdict == verdict


@pytest.mark.parametrize(
    ("content", "is_pointer"),
    [
        (POINTER + "#" * 1024, False),
        (POINTER.replace("v1", "v2", 1), False),
        (POINTER[1:], False),
        ("", False),
        (POINTER.replace("\n", "\r\n").encode(), True),
    ],
    ids=["1 KiB", "another version", "another first line", "empty", "line ends of Windows"],
)
def test_a_pointer_has_the_first_line_of_the_specification(
    content: str | bytes, is_pointer: bool, tmp_path: Path
) -> None:
    """It is below 1 KiB; Git for Windows may have converted its line ends."""
    errors = _check({**one(HEAD), "m/1/weights.npz": content}, tmp_path).errors
    assert [each.code for each in errors] == [LFS] * is_pointer


@pytest.mark.parametrize(
    ("rules", "is_reported"),
    [
        ({".tritonignore": "*.npz\n"}, False),
        ({"m/.tritonignore": "/1/big/\n"}, False),
        ({"m/1/.tritonignore": "big\n"}, False),
        ({".tritonignore": "*.npz\n", "m/1/big/.tritonignore": "!w.npz\n"}, True),
        ({".tritonignore": b"\xff"}, True),
    ],
)
def test_pointer_that_is_not_packed_is_no_error(
    rules: Files, is_reported: bool, tmp_path: Path
) -> None:
    """The rules of every ``.tritonignore`` above the file decide, as they do when it is packed."""
    report = _check({**one(HEAD), **rules, "m/1/big/w.npz": POINTER}, tmp_path)
    assert [each.path for each in report.errors] == ["m/1/big/w.npz"] * is_reported


def test_pointer_of_a_model_that_is_not_loaded_is_a_warning(tmp_path: Path) -> None:
    """The archive of an endpoint contains only the models that it loads."""
    files = {**one(HEAD), "n/config.pbtxt": HEAD, "n/1/model.py": CLASS, "n/1/w.npz": POINTER}
    report = _check(files, tmp_path, Target(default_model="m"))
    assert [(each.code, each.severity) for each in report.findings] == [(LFS, Severity.WARNING)]


def test_without_files_only_the_configuration_is_looked_at(tmp_path: Path) -> None:
    """The weights are stored elsewhere then, so a pointer may be in their place."""
    report = _check({**one(HEAD), "m/1/w.npz": POINTER}, tmp_path / "a", Target(local_files=False))
    assert report.errors == ()
    report = _check(
        {**one(HEAD), "m/config.pbtxt": POINTER}, tmp_path / "b", Target(local_files=False)
    )
    assert [each.code for each in report.errors] == [LFS]


def test_folders_are_looked_into_once_and_only_inside_the_repository(tmp_path: Path) -> None:
    """Links that lead above or out of the repository end nowhere, and no file is reported twice."""
    write({"w.npz": POINTER}, tmp_path / "outside")
    links = {
        "again": "real",
        "above": "..",
        "root": "/",
        "out": str(tmp_path / "outside"),
        "loop": "loop",
    }
    files = {f"m/1/{name}": f"->{target}" for name, target in links.items()}
    (error,) = _check({**one(HEAD), "m/1/real/w.npz": POINTER, **files}, tmp_path).errors
    assert error.path in ("m/1/real/w.npz", "m/1/again/w.npz")


def test_small_files_are_opened_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that other rules read is not opened again, and a large one is not opened at all."""
    opened: list[str] = []
    real = os.open

    def counted(path: str, *rest: int) -> int:
        opened.append(os.fspath(path))
        return real(path, *rest)

    files: Files = {**one(HEAD), "m/1/w.npz": b"x" * 1024, "m/1/tiny.npz": b"x"}
    write(files, tmp_path)
    folder = ModelFolder("m", tmp_path / "m")
    assert folder.config is not None
    monkeypatch.setattr(os, "open", counted)
    packed = ModelRepository.from_directory(tmp_path)._packed_files(
        {"m": folder}, is_archive=False
    )["m"]
    assert packed.findings.git_lfs_pointers == ()
    assert sorted(path.rpartition("/")[2] for path in opened) == ["model.py", "tiny.npz"]


# --- checkouts ------------------------------------------------------------------------------------


def test_line_ends_are_one_finding(tmp_path: Path) -> None:
    """A checkout changes all files at once, so a warning for each would hide the others."""
    files = {
        path: text.replace("\n", "\r\n").encode()
        for path, text in one(HEAD).items()
        if isinstance(text, str)
    }
    report = _check({**files, "m/1/notes.txt": b"a\r\n", "m/1/late.py": b"a\nb\r\n"}, tmp_path)
    (warning,) = report.findings
    assert (warning.code, warning.path, warning.line) == ("file-line-endings", "m/1/model.py", 1)
    assert "CR LF in 2 files," in warning.message


def test_archive_gets_no_warnings_about_checkouts(tmp_path: Path) -> None:
    """An archive has the same bytes everywhere; a pointer in it is an error,
    whatever would leave it out.
    """
    files: dict[str, str | bytes | None] = {"m/config.pbtxt": HEAD.replace("\n", "\r\n").encode()}
    files |= {"m/1/model.py": CLASS, "m/1/Model.py": CLASS, "m/1/e\u0301": "x", "m/.git/w": POINTER}
    repository = ModelRepository.from_directory(write(files, tmp_path))
    assert [each.path for each in repository.check(is_archive=True).findings] == ["m/.git/w"]


def test_names_in_two_unicode_forms_collide(tmp_path: Path) -> None:
    """A disk that does not distinguish the forms keeps one of the files;
    only names in the archive count.
    """
    report = _check({**one(HEAD), "m/1/\u00e9.txt": "x", "m/1/e\u0301.txt": "y"}, tmp_path / "a")
    assert {each.code for each in report.warnings} == {"file-names-collide", "file-name-form"}
    files = {
        **one(HEAD),
        ".tritonignore": "Notes.txt\n",
        "m/1/Notes.txt": "x",
        "m/1/notes.txt": "y",
    }
    assert _check(files, tmp_path / "b").findings == ()


def test_at_most_a_hundred_names_are_listed(tmp_path: Path) -> None:
    """A generated folder may have any number of names."""
    files = {f"m/1/{name}{number}": "" for number in range(150) for name in "aA"}
    report = _check({**one(HEAD), **files}, tmp_path)
    assert len(report.findings) == 101
