"""Models of a large repository that are checked in copies of the process."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from triton_model_check.checks import side_by_side
from triton_model_check.checks.model_under_check import ModelUnderCheck
from triton_model_check.checks.report import Report
from triton_model_check.model_config.target import Target
from triton_model_check.model_repository.repository import ModelRepository
from triton_model_check.untrusted import elsewhere

CONFIG = """backend: "python"
max_batch_size: 8
input [ { name: "x" data_type: TYPE_FP32 dims: [ 4 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 4 ] } ]
"""
MODEL = """import json


class TritonPythonModel:
    def execute(self, requests):
        return []
"""
ENSEMBLE = """platform: "ensemble"
max_batch_size: 8
input [ { name: "x" data_type: TYPE_FP32 dims: [ 4 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 4 ] } ]
ensemble_scheduling {
  step [
    {
      model_name: "STEP"
      model_version: -1
      input_map { key: "x" value: "x" }
      output_map { key: "y" value: "y" }
    }
  ]
}
"""


@pytest.fixture
def repository(tmp_path: Path) -> ModelRepository:
    """150 models: of five, one is an ensemble, one has an error, one a pointer, one a comment."""
    for number in range(0, 150, 5):
        folder = tmp_path / f"a{number:03}"
        _write(folder, ENSEMBLE.replace("STEP", f"m{number:03}"))
        (folder / "1").mkdir()
        _write(tmp_path / f"m{number:03}", CONFIG, MODEL)
        _write(tmp_path / f"m{number + 1:03}", CONFIG, MODEL.replace("execute", "exec"))
        pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n"
        _write(tmp_path / f"m{number + 2:03}", CONFIG, pointer)
        mark = "Model:  # triton-model-check: ignore[python-execute] inherited"
        ignored = MODEL.replace("execute", "exec").replace("Model:", mark)
        _write(tmp_path / f"m{number + 3:03}", CONFIG, ignored)
    return ModelRepository.from_directory(tmp_path)


@pytest.fixture(autouse=True)
def _two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1}, raising=False)


def _write(folder: Path, config: str, model: str | None = None) -> None:
    folder.mkdir()
    (folder / "config.pbtxt").write_text(config)
    if model is not None:
        (folder / "1").mkdir()
        (folder / "1" / "model.py").write_text(model)


def _report(path: Path, *, in_copies: bool) -> Report:
    repository = ModelRepository.from_directory(path)
    repository.checks_in_copies = in_copies
    return repository.check(Target.named("kubernetes", image_version="25.03"))


def test_report_is_that_of_one_process(repository: ModelRepository) -> None:
    """Findings, what comments ignore and what was not checked do not depend on who checks."""
    alone = _report(repository.path, in_copies=False)
    assert alone.errors
    assert alone.ignored
    assert _report(repository.path, in_copies=True) == alone


def test_models_are_divided_between_two_processes(repository: ModelRepository) -> None:
    """Half of the models are checked in a copy, and an ensemble where its step is."""
    models = _models(repository)
    process_of = dict(
        zip(
            models,
            side_by_side.check_all(models, lambda _: os.getpid()),
            strict=True,
        )
    )
    in_copy = [model for model, process in process_of.items() if process != os.getpid()]
    assert 60 <= len(in_copy) <= 90
    by_name = {model.name: process for model, process in process_of.items()}
    first = {model.name for model in models[:: -(-len(models) // 10)]}
    for model in models:
        for step in model.folder.step_models:
            assert by_name[step] == by_name[model.name] or {step, model.name} & first


def test_share_of_a_killed_copy_is_checked_by_the_parent(repository: ModelRepository) -> None:
    """A copy that the system kills, for its memory, loses no finding."""
    parent = os.getpid()

    def check(model: object) -> int:
        if os.getpid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)
        return id(model)

    models = _models(repository)
    assert side_by_side.check_all(models, check) == [id(model) for model in models]


def test_error_in_a_copy_is_the_error_of_the_parent(repository: ModelRepository) -> None:
    """A fault of ours in a copy ends the check with the same exception as without copies."""

    def check(model: object) -> int:
        raise ZeroDivisionError(model)

    with pytest.raises(ZeroDivisionError):
        side_by_side.check_all(_models(repository), check)


def test_notes_of_a_copy_are_notes_of_the_parent(repository: ModelRepository) -> None:
    """A report is not kept if a copy exceeded a limit."""
    before = elsewhere.limits_exceeded()

    def check(_: object) -> None:
        elsewhere.note_limit()

    models = _models(repository)
    side_by_side.check_all(models, check)
    assert elsewhere.limits_exceeded() - before == len(models)


def test_small_repositories_are_checked_by_this_process(repository: ModelRepository) -> None:
    """A copy costs more than the check of a few models."""
    found = side_by_side.check_all(_models(repository)[:99], lambda _: os.getpid())
    assert set(found) == {os.getpid()}


def _models(repository: ModelRepository) -> list[ModelUnderCheck]:
    context = repository._context(Target("server"), is_packed=False, is_archive=False)
    return list(context.models.values())
