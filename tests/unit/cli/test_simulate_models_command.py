"""``constructs-triton simulate models``: from a file of models to the number of instances."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from constructs_triton.cli import main

TYPE = "ml.g4dn.4xlarge"


@pytest.fixture
def models(tmp_path: Path) -> str:
    path = tmp_path / "models.csv"
    path.write_text("model,memory_mib,load_seconds,count\nresnet,380,1.6,80\nlarge,4000,20,\n")
    return str(path)


def fit(models: str, *options: str) -> int:
    return main(
        [
            "simulate",
            "models",
            models,
            "--instance-type",
            TYPE,
            "--requests-per-second",
            "20",
            *options,
        ]
    )


def test_instances_are_added_until_the_hit_rate_is_reached(
    models: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The table ends with the first number of instances that reaches the rate, with its cost."""
    assert fit(models, "--price", f"{TYPE}=1.5", "--hit-rate", "0.999") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "81 models; 13,824 MiB of GPU memory for models on each instance"
    assert lines[-1].split()[:3] == ["3", "81", "1.000"]
    assert lines[-1].split()[-1] == "3,285.00"


def test_too_few_instances_are_exit_code_1(models: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What was looked at is not enough; the JSON has what was reached."""
    assert fit(models, "--max-instances", "1", "--json") == 1
    printed = capsys.readouterr()
    (found,) = json.loads(printed.out)["results"]
    assert found["hit_rate"] < 0.99
    assert found["cost_per_month"] is None
    assert "use a larger type or --max-instances" in printed.err


def test_popular_models_are_found_more_often(
    models: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """With Zipf's law, the memory holds a larger part of the requests."""

    def hit_rate(*options: str) -> float:
        fit(models, "--max-instances", "1", "--json", *options)
        return float(json.loads(capsys.readouterr().out)["results"][0]["hit_rate"])

    assert hit_rate("--zipf", "1.2") > hit_rate("--zipf", "0") == hit_rate()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("model,memory_mib\nm,1\n", "load_seconds"),
        ("model,memory_mib,load_seconds,count\nm,1,1,2.5\n", "count"),
        ("model,memory_mib,load_seconds,count\nm,1,1,30000\n", "whole number up to 20,000"),
        ("model,memory_mib,load_seconds\nm,99999,1\n", "use a larger instance type"),
    ],
)
def test_bad_files_are_refused(
    tmp_path: Path, text: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A missing column, a bad cell and a model that never fits are errors with their place."""
    path = tmp_path / "models.csv"
    path.write_text(text)
    assert fit(str(path)) != 0
    assert message in capsys.readouterr().err


def _plan(folder: Path, name: str, mib: int) -> None:
    version = folder / name / "1"
    version.mkdir(parents=True)
    with (version / "model.plan").open("wb") as file:
        file.truncate(mib * 2**20)
    (folder / name / "config.pbtxt").write_text('backend: "tensorrt"\n')


def test_folder_of_models_has_their_memory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The weights of a folder count as memory, so that three of four models of 4 GiB stay."""
    for name in "abcd":
        _plan(tmp_path, name, 4000)
    options = ("--load-seconds", "10", "--json", "--max-instances", "1", "--hit-rate", "0")
    assert fit(str(tmp_path), *options) == 0
    (result,) = json.loads(capsys.readouterr().out)["results"]
    assert result["loaded"] == pytest.approx(3, abs=0.1)


def test_folder_needs_the_seconds_of_a_load(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No file says how long a load takes; the message names the option and the metrics."""
    _plan(tmp_path, "a", 10)
    assert fit(str(tmp_path)) == 2
    assert "add --load-seconds SECONDS" in capsys.readouterr().err


def test_model_of_unknown_memory_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A Python model needs a declaration, which the message writes and which then counts."""
    version = tmp_path / "m" / "1"
    version.mkdir(parents=True)
    (version / "model.py").write_text("class TritonPythonModel:\n    def execute(self, r): ...\n")
    (tmp_path / "m" / "config.pbtxt").write_text('backend: "python"\n')
    assert fit(str(tmp_path), "--load-seconds", "10") == 2
    line = capsys.readouterr().err.split("write ")[1].split(" below")[0]
    (tmp_path / "triton-models.toml").write_text(f"[memory]\n{line}\n")
    assert fit(str(tmp_path), "--load-seconds", "10") == 0
