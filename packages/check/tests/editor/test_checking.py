"""The check of what an editor has open, and the options of an editor."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from check_examples import write
from check_examples.repositories import CLASS, HEAD, Files, one

from constructs_triton_core.errors import InvalidValueError
from triton_model_check.editor.checking import Checker
from triton_model_check.editor.command import add_arguments
from triton_model_check.editor.model_files import ModelFile, model_file


@pytest.fixture
def checker() -> Checker:
    """A check with the options of ``triton-model-check lsp``."""
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return Checker(parser.parse_args([]))


def _file(path: Path) -> ModelFile:
    found = model_file(path)
    assert found is not None
    return found


def _codes(checker: Checker, root: Path, texts: Mapping[str, str]) -> dict[str, list[str]]:
    files = {_file(root / name): text for name, text in texts.items()}
    found = checker.check(root, files)
    return {
        path.relative_to(root).as_posix(): [finding.code for finding in findings]
        for path, findings in found.items()
    }


def test_other_files_of_the_repository_are_not_reported(checker: Checker, tmp_path: Path) -> None:
    """Only what is open has findings, and each file its own."""
    files: Files = {**one(HEAD), "other/config.pbtxt": "max_batchsize: 1", "other/1/model.py": ""}
    root = write(files, tmp_path / "models")
    assert _codes(checker, root, {"m/config.pbtxt": HEAD, "m/1/model.py": "x = ("}) == {
        "m/config.pbtxt": [],
        "m/1/model.py": ["python-syntax"],
    }


def test_settings_and_comments_count(checker: Checker, tmp_path: Path) -> None:
    """What the project ignores, and what a comment ignores, is not reported."""
    root = write(one(HEAD), tmp_path / "models")
    text = HEAD + "instance_group [ { count: -1 } ]\n"
    (code,) = _codes(checker, root, {"m/config.pbtxt": text})["m/config.pbtxt"]
    (tmp_path / "triton-model-check.toml").write_text(f'ignore = ["{code}"]\n', encoding="utf-8")
    assert _codes(checker, root, {"m/config.pbtxt": text}) == {"m/config.pbtxt": []}


def test_wrong_settings_are_an_error(checker: Checker, tmp_path: Path) -> None:
    """The user is shown the message that ``check`` prints."""
    root = write(one(HEAD), tmp_path / "models")
    (tmp_path / "triton-model-check.toml").write_text("targets = 1\n", encoding="utf-8")
    with pytest.raises(InvalidValueError, match=r"triton-model-check\.toml"):
        _codes(checker, root, {"m/config.pbtxt": HEAD})


def test_half_of_a_surrogate_pair_keeps_places(checker: Checker, tmp_path: Path) -> None:
    """A client can send what UTF-8 cannot express; the column behind it is right."""
    root = write(one(HEAD), tmp_path / "models")
    text = 'name: "\ud800" platform: 3\n'
    found = checker.check(root, {_file(root / "m" / "config.pbtxt"): text})
    (finding,) = found[root / "m" / "config.pbtxt"]
    assert finding.column == text.index("3") + 1


def test_options_of_the_editor_are_those_of_the_command_line(
    checker: Checker, tmp_path: Path
) -> None:
    """A target with other rules, a list, and an option without a value."""
    root = write({"m/config.pbtxt": HEAD, "m/1/model.py": CLASS}, tmp_path / "models")
    texts = {"m/config.pbtxt": HEAD + "instance_group [ { count: -1 } ]\n"}
    assert _codes(checker, root, texts) != {"m/config.pbtxt": []}
    chosen = checker.with_options({"select": ["layout", "files"], "no-files": True})
    assert _codes(chosen, root, texts) == {"m/config.pbtxt": []}
    assert checker.with_options(None) is checker


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": "moon"}, "initializationOptions: argument --target"),
        (
            {"plaze": "server"},
            "initializationOptions: there is no such option, got '--plaze=server'",
        ),
    ],
)
def test_wrong_options_of_the_editor(
    checker: Checker, options: dict[str, Any], message: str
) -> None:
    """An option that does not exist, and a value that it cannot have."""
    with pytest.raises(InvalidValueError, match=message):
        checker.with_options(options)
