"""``constructs-triton tune`` before anything is measured."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from constructs_triton.cli import main

TENSORS = (
    'input { name: "X" data_type: TYPE_FP32 dims: 4 } output { name: '
    '"Y" data_type: TYPE_FP32 dims: 4 }'
)


@pytest.fixture
def models(tmp_path: Path) -> Path:
    """A repository with a Python model."""
    return write_model(tmp_path / "models", 'backend: "python" max_batch_size: 8')


CODE = "class TritonPythonModel:\n    def execute(self, requests):\n        return []\n"


def write_model(models: Path, config: str) -> Path:
    (models / "m" / "1").mkdir(parents=True)
    (models / "m" / "1" / "model.py").write_text(CODE)
    (models / "m" / "config.pbtxt").write_text(f"{config} {TENSORS}\n")
    return models


def run(models: Path, *words: str) -> int:
    given = ["tune", str(models), "--latency-ms", "100", "-o", str(models.parent / "tuned"), *words]
    try:
        return main(given)
    except SystemExit as error:  # of an argument with another form
        return int(error.code or 0)


def test_plan_is_printed_and_nothing_starts_without_a_confirmation(
    models: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a terminal and --yes, the plan with its time is printed, and the exit code is 2."""
    assert run(models, "--budget-minutes", "7") == 2
    text = capsys.readouterr().err
    assert "tune m: the highest rate with p95 within 100 ms, on this machine" in text
    assert "batches up to 128; waits of 0, 2, 5, 10 ms" in text
    assert "at most 7 (--budget-minutes)" in text
    assert "error: --yes: nothing was done, because no terminal can answer; add --yes" in text
    assert not (models.parent / "tuned").exists()


def test_backend_that_the_server_does_not_have_is_not_measured_silently(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A model whose stand-in would run is refused, and with --accept-stand-in the plan says so."""
    models = write_model(tmp_path / "models", 'backend: "onnxruntime" max_batch_size: 8')
    assert run(models, "--yes") == 2
    assert "does not have the backend onnxruntime" in capsys.readouterr().err
    assert run(models, "--accept-stand-in") == 2
    text = capsys.readouterr().err
    assert "warning   Figures of a Python stand-in, not of the backend onnxruntime." in text
    assert "no terminal can answer" in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("--parameter", "threads"),
            "--parameter: must have the form NAME=VALUE,VALUE, got 'threads'",
        ),
        (("--model", "n"), "has no such model, got 'n'"),
        (
            ("--budget-minutes", "20000"),
            "--budget-minutes: must be at most 10080, got 20000; lower it to 10080",
        ),
        (
            ("--budget-minutes", "0.5"),
            "must be at least 2.4 with steps of 4 seconds, because the present",
        ),
        (("--step-seconds", "0.5"), "--step-seconds: must be from 1 to 600"),
        (("--percentile", "20"), "--percentile: must be from 50 to 99"),
    ],
)
def test_wrong_arguments_are_errors(
    models: Path, words: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """An argument that is out of range is an error with exit code 2 before anything is started."""
    assert run(models, "--yes", *words) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--latency-ms", "100"], ["models"]])
def test_repository_and_limit_are_required(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Without the repository or the limit, the error names what is missing."""
    with pytest.raises(SystemExit, match="2"):
        main(["tune", *words])
    missing = "--latency-ms" if words == ["models"] else "REPOSITORY"
    assert f"the following arguments are required: {missing}" in capsys.readouterr().err


def test_model_that_generates_is_refused_as_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With --json, a model that tune cannot search is a JSON error that names AIPerf."""
    models = write_model(tmp_path / "models", 'backend: "vllm"')
    assert run(models, "--yes", "--json") == 2
    assert "AIPerf" in json.loads(capsys.readouterr().out)["error"]


def test_repository_with_several_models_needs_a_name(
    models: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With two top-level models, the error lists them."""
    (models / "n" / "1").mkdir(parents=True)
    (models / "n" / "config.pbtxt").write_text('backend: "python" max_batch_size: 8')
    assert run(models, "--yes") == 2
    assert "has 2 top-level models (m, n); name one of them" in capsys.readouterr().err


def test_journal_of_another_model_is_refused(
    models: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Results in the folder that belong to another model are an error that says what differs."""
    folder = models.parent / "tuned"
    folder.mkdir()
    (folder / "journal.jsonl").write_text(json.dumps({"inputs": {"model": "other"}}) + "\n")
    assert run(models, "--yes") == 2
    text = capsys.readouterr().err
    assert "belongs to a search with other inputs: model (was other, is m " in text
    assert "give another folder with -o, or delete the file to begin again" in text
