"""The printed form of a finding: the same in the terminal and in exceptions."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from check_examples.onnx_models import relu

from constructs_triton.cli import main
from constructs_triton_core.errors import ModelConfigError, RepositoryError
from constructs_triton_core.findings import Finding, Severity, format_findings
from triton_model_check.model_config.text import parse_model_config
from triton_model_check.model_repository import ModelRepository

CONFIG = 'backend: "onnxruntime"\nmax_batch_size: -1\ninstance_group { count: -2 }\n'
PLACED = Finding(
    "some-code", Severity.ERROR, "m/config.pbtxt", "is wrong", "fix it", line=3, column=7
)
UNPLACED = Finding("other-code", Severity.WARNING, "m", "looks wrong")


@pytest.fixture
def repository(tmp_path: Path) -> ModelRepository:
    """A repository with one error and one warning."""
    (tmp_path / "m" / "1").mkdir(parents=True)
    (tmp_path / "m" / "1" / "model.onnx").write_bytes(relu())
    (tmp_path / "m" / "config.pbtxt").write_text(CONFIG, encoding="utf-8")
    return ModelRepository.from_directory(tmp_path)


def test_string_has_location_severity_code_message_and_hint() -> None:
    """It has all that a reader needs; an annotation shows the code itself,
    so ``one_line`` leaves it out.
    """
    assert str(PLACED) == "m/config.pbtxt:3:7: error[some-code]: is wrong\n    hint: fix it"
    assert str(UNPLACED) == "m: warning[other-code]: looks wrong"
    assert format_findings([UNPLACED, PLACED]) == f"{UNPLACED}\n{PLACED}"
    assert (PLACED.one_line, UNPLACED.one_line) == (
        "m/config.pbtxt:3:7: is wrong; fix it",
        "m: looks wrong",
    )


def test_terminal_prints_findings_as_their_strings(
    repository: ModelRepository, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without the excerpts from the file, ``check`` prints exactly the strings of the findings."""
    main(["check", str(repository.path)])
    *printed, _summary, _fixable = capsys.readouterr().out.splitlines()
    without_excerpts = [line for line in printed if not re.match(r" *\d+ \| |[ ]+\^$", line)]
    assert "\n".join(without_excerpts) == format_findings(repository.check().findings)


def test_repository_error_prints_findings_as_their_strings(repository: ModelRepository) -> None:
    """The message of ``RepositoryError`` is the number of errors, the verdict and each error."""
    report = repository.check()
    with pytest.raises(RepositoryError) as caught:
        report.raise_for_errors()
    assert str(caught.value) == f"{repository.path}: 1 error, Triton rejects it\n{report.errors[0]}"


def test_config_error_prints_its_finding_as_its_string() -> None:
    """The message of ``ModelConfigError`` is the string of its finding."""
    with pytest.raises(ModelConfigError) as caught:
        parse_model_config('nome: "m"\n', "m/config.pbtxt")
    assert str(caught.value) == str(caught.value.finding)
    assert str(caught.value).startswith("m/config.pbtxt:1:1: error[text-unknown-field]: ")
