"""A check of texts that only an editor has finds what it finds when they are saved."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from check_examples import EXAMPLES, Files, write
from check_examples.repositories import CLASS, HEAD, one

from constructs_triton_core.findings import Finding
from triton_model_check.checks.report import Report
from triton_model_check.model_config.target import Target
from triton_model_check.model_repository import ModelRepository
from triton_model_check.untrusted.unsaved_files import unsaved_files


def _has_link(files: Files) -> bool:
    """Whether a name leads to another file, of which an editor has only one name."""
    return any(isinstance(content, str) and content.startswith("->") for content in files.values())


#: One example of each check.
KEYS = sorted(
    key for key, example in EXAMPLES.items() if ":" not in key and not _has_link(example.failing)
)


def _check(root: Path, target: Target | None) -> Report:
    return ModelRepository.from_directory(root).check(target, is_packed=False)


def _of(model: str, findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings in the folder of a model."""
    return [finding for finding in findings if finding.path.startswith(f"{model}/")]


def _edited(files: Files) -> dict[str, str]:
    """The texts of a repository that a person can have in an editor."""
    return {
        name: content
        for name, content in files.items()
        if isinstance(content, str) and name.endswith((".pbtxt", ".py"))
    }


@pytest.mark.parametrize("key", KEYS)
def test_unsaved_texts_have_the_findings_of_saved_ones(key: str, tmp_path: Path) -> None:
    """The texts of every example are found wrong in the same way while other ones are on disk."""
    example = EXAMPLES[key]
    saved = write(example.failing, tmp_path / "saved" / "models")
    texts = _edited(example.failing)
    others: Files = {**example.failing, **dict.fromkeys(texts, "# not saved yet\n")}
    unsaved = write(others, tmp_path / "unsaved" / "models")

    with unsaved_files({str(unsaved / name): text.encode() for name, text in texts.items()}):
        found = _check(unsaved, example.target)

    assert found.findings == _check(saved, example.target).findings
    assert all((unsaved / name).read_text() == "# not saved yet\n" for name in texts)


@pytest.mark.parametrize("key", KEYS)
def test_only_the_named_models_are_checked(key: str, tmp_path: Path) -> None:
    """The findings of a model are the same whether the other ones are checked too."""
    example = EXAMPLES[key]
    repository = ModelRepository.from_directory(write(example.failing, tmp_path / "models"))
    found = repository.check(example.target, is_packed=False).findings
    for name in repository.models:
        alone = repository.check(example.target, is_packed=False, only=[name]).findings
        assert _of(name, alone) == _of(name, found)


def test_folders_need_not_exist(tmp_path: Path) -> None:
    """A new model is checked before its folder and its version folder are created."""
    texts = {"m/config.pbtxt": HEAD, "m/1/model.py": CLASS}
    with unsaved_files({str(tmp_path / name): text.encode() for name, text in texts.items()}):
        assert _check(tmp_path, None).findings == ()
        assert list(ModelRepository.from_directory(tmp_path).models) == ["m"]
    assert list(ModelRepository.from_directory(tmp_path).models) == []


def test_empty_text_replaces_the_file(tmp_path: Path) -> None:
    """A file that was emptied in the editor is empty, whatever is on disk."""
    root = write(one(HEAD), tmp_path / "models")
    with unsaved_files({str(root / "m" / "config.pbtxt"): b""}):
        folder = ModelRepository.from_directory(root).models["m"]
        assert (folder.config_text, folder.head("config.pbtxt")) == ("", b"")
        assert (folder.size_of("config.pbtxt"), folder.exists("config.pbtxt")) == (0, True)
