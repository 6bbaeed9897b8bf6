"""Comments that ignore findings, and what they must not hide."""

from __future__ import annotations

from pathlib import Path

import pytest
from check_examples import Files, write
from check_examples.repositories import CLASS, HEAD, one

from constructs_triton_core.errors import InvalidValueError
from triton_model_check.checks.report import Report
from triton_model_check.choosing.choice import Choice
from triton_model_check.model_config.target import Target
from triton_model_check.model_repository import ModelRepository

IGNORE = "# triton-model-check: ignore"
PATH = 'parameters { key: "path" value { string_value: "${path}" } }'
GROUP = "instance_group { count: -1 }"


def _check(files: Files, directory: Path, target: Target | None = None) -> Report:
    return ModelRepository.from_directory(write(files, directory / "models")).check(
        target, is_packed=False
    )


def _codes(report: Report) -> tuple[list[str], list[str]]:
    return [each.code for each in report.findings], [each.code for each in report.ignored]


@pytest.mark.parametrize(
    ("lines", "found", "ignored"),
    [
        (f"{PATH}  {IGNORE}[text-placeholder] set at start", [], ["text-placeholder"]),
        (f"{IGNORE}[text-placeholder] set at start\n{PATH}", [], ["text-placeholder"]),
        (f"{IGNORE}[text-placeholder] set at start\n\n# more\n{PATH}", [], ["text-placeholder"]),
        (
            f"#triton-model-check:ignore[text-placeholder]set at start\r\n{PATH}",
            [],
            ["text-placeholder"],
        ),
        (
            f"{IGNORE}[text-placeholder, instance-count] x\n{PATH} {GROUP}",
            [],
            ["text-placeholder", "instance-count"],
        ),
        # Behind a field, the comment is about its own line.
        (
            f"{GROUP} {IGNORE}[text-placeholder] x\n{PATH}",
            ["instance-count", "ignore-unused", "text-placeholder"],
            [],
        ),
        (
            f"{IGNORE}[text-placeholder] x\n{GROUP}\n{PATH}",
            ["ignore-unused", "instance-count", "text-placeholder"],
            [],
        ),
        # In a string it is no comment.
        (
            f"metric_tags {{ key: '{IGNORE}[instance-count] x' value: 'b' }} {GROUP}",
            ["instance-count"],
            [],
        ),
        (f"{IGNORE}[text-placeholder]\n{PATH}", ["ignore-without-reason"], ["text-placeholder"]),
    ],
)
def test_comment_ignores_findings_of_its_line_or_of_the_next_field(
    lines: str, found: list[str], ignored: list[str], tmp_path: Path
) -> None:
    """Of the codes in the comment; every other finding is left,
    and a comment in vain is one too.
    """
    report = _check(one(f"{HEAD}{lines}\n"), tmp_path)
    assert sorted(_codes(report)[0]) == sorted(found)
    assert sorted(_codes(report)[1]) == sorted(ignored)


def test_comment_in_the_first_line_ignores_what_has_no_line(tmp_path: Path) -> None:
    """A finding about a folder is shown at the beginning of the configuration."""
    files: Files = {"m/config.pbtxt": f"{IGNORE}[layout-no-version] built by CI\n{HEAD}"}
    assert _codes(_check(files, tmp_path)) == ([], ["layout-no-version"])
    assert not _check(files, tmp_path).errors


def test_errors_of_the_syntax_are_not_ignored(tmp_path: Path) -> None:
    """Neither by a comment nor by a choice of their group; their code is refused."""
    text = f"{IGNORE}[text-field-twice] x\n{HEAD}max_batch_size: 8  {IGNORE}[text-field-twice] x\n"
    report = _check(one(text), tmp_path)
    assert set(_codes(report)[0]) == {"ignore-unknown-code", "text-field-twice"}
    assert Choice.of(ignore=["text", "ignore"]).apply(report).errors == report.errors
    assert Choice.of(select=["onnx"]).apply(report).findings == report.errors
    with pytest.raises(InvalidValueError, match="syntax cannot be ignored"):
        Choice.of(ignore=["text-syntax"])


def test_comment_in_a_python_model(tmp_path: Path) -> None:
    """It is found by Python's own tokenizer, so a string that looks like one is none."""
    comment = f"{IGNORE}[python-import-missing] our image has it"
    code = f"NOTE = '''\n{comment}\n'''\nimport torch\nimport transformers  {comment}\n{CLASS}"
    report = _check(one(HEAD, **{"m/1/model.py": code}), tmp_path, Target(image_version="26.05"))
    assert [each.message.split('"')[1] for each in report.findings] == ["torch"]
    assert [each.line for each in report.ignored] == [5]


def test_choice_of_models_and_files(tmp_path: Path) -> None:
    """Patterns of names and of paths; what is ignored is kept apart,
    what is not selected is dropped.
    """
    text = f"{HEAD}{PATH} {GROUP}\n"
    report = _check({**one(text), "bert/config.pbtxt": text, "bert/1/model.py": CLASS}, tmp_path)
    per_model = Choice.of(["text", "instance-count"], per_model={"be*": ["instances"]}).apply(
        report
    )
    assert [each.path for each in per_model.ignored] == ["bert/config.pbtxt"]
    per_file = Choice.of(["text-placeholder"], per_file={"*/config.pbtxt": ["text"]}).apply(report)
    assert (per_file.findings, len(per_file.ignored)) == ((), 2)
    with pytest.raises(
        InvalidValueError, match=r'per-model-ignores\["m"\]: .*did you mean "text-placeholder"'
    ):
        Choice.of(per_model={"m": ["text-placehoder"]})


def test_a_file_full_of_comments_is_reported_a_few_times(tmp_path: Path) -> None:
    """Of ten thousand comments, or one with as many codes, only the first are read."""
    many = f"{IGNORE}[text-placehoder] x\n" * 10_000 + f"{IGNORE}[{'unknown, ' * 10_000}]\n"
    code = f"{IGNORE}[{'unknown, ' * 10_000}] x\n{CLASS}"
    report = _check(one(many + HEAD, **{"m/1/model.py": code}), tmp_path)
    assert len(report.findings) <= 300
    assert {each.code for each in report.findings} == {"ignore-unknown-code"}
