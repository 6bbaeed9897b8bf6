"""A Git LFS pointer in place of a file, through each way by which models come in."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from cdk_apps import make_stack, write_model
from check_examples.files import POINTER

from constructs_triton import ModelSource, TritonModelRepository
from constructs_triton.cli import main
from constructs_triton_core.errors import RepositoryError
from triton_model_check.model_repository import ModelRepository, pack

WORDS = ("is a Git LFS pointer, not the file itself", "run `git lfs install` and `git lfs pull`")


def _of_command(*arguments: str) -> Callable[[Path, pytest.CaptureFixture[str]], str]:
    def run(folder: Path, output: pytest.CaptureFixture[str]) -> str:
        given = [each.format(folder=folder) for each in arguments]
        assert main(given) != 0
        captured = output.readouterr()
        return captured.out + captured.err

    return run


def _of_source(
    source: Callable[[Path], ModelSource],
) -> Callable[[Path, pytest.CaptureFixture[str]], str]:
    def run(folder: Path, _: pytest.CaptureFixture[str]) -> str:
        stack = make_stack()
        given = source(folder)
        with pytest.raises(RepositoryError) as error:
            TritonModelRepository(stack, "Models", source=given)
        assert len(error.value.findings) == 1
        return str(error.value)

    return run


def _packed(folder: Path) -> Path:
    return pack(
        ModelRepository.from_directory(folder / "models"), ["net"], folder / "archives"
    ).path


@pytest.mark.parametrize(
    "message_of",
    [
        _of_command("check", "{folder}/models"),
        _of_command("pack", "{folder}/models", "-o", "{folder}/out"),
        _of_command("model", "new", "{folder}/net.onnx", "-o", "{folder}/new"),
        _of_command("local", "up", "{folder}/models"),
        _of_source(lambda folder: ModelSource.from_directory(folder / "models")),
        _of_source(lambda folder: ModelSource.from_archive(_packed(folder))),
        _of_source(lambda folder: ModelSource.from_model_file(folder / "net.onnx")),
    ],
    ids=["check", "pack", "model new", "local up", "folder", "archive", "model file"],
)
def test_each_way_in_says_the_same(
    message_of: Callable[[Path, pytest.CaptureFixture[str]], str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The words of the error and its fix are the same, and nothing is written."""
    write_model(tmp_path / "models", "net")
    (tmp_path / "models" / "net" / "1" / "weights.npz").write_text(POINTER)
    (tmp_path / "net.onnx").write_text(POINTER)
    message = message_of(tmp_path, capsys)
    assert all(words in message for words in WORDS), message
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "new").exists()
