"""The output of a check in each format, as other programs read it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from check_examples import EXAMPLES, write
from check_examples.onnx_models import relu

from constructs_triton_core.findings import Edit, Finding, Fix, Place, Severity
from triton_model_check.checks.report import Report
from triton_model_check.cli import main
from triton_model_check.model_repository import ModelRepository
from triton_model_check.reporting.formats import print_results
from triton_model_check.reporting.results import Result, shown

SCHEMA = json.loads((Path(__file__).parent / "sarif-schema-2.1.0.json").read_text(encoding="utf-8"))
CONFIG = 'backend: "onnxruntime"\ninstance_group { count: -1 }\nmax_batch_size: -1\n'


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a warning and, below it, an error, seen from the folder above."""
    monkeypatch.chdir(tmp_path)
    write({"m/config.pbtxt": CONFIG, "m/1/model.onnx": relu()}, tmp_path / "models")
    return Path("models")


def _output(format_: str, repository: Path, capsys: pytest.CaptureFixture[str]) -> str:
    assert main([str(repository), "--output-format", format_]) == 1
    return capsys.readouterr().out


def _one_of_each(directory: Path) -> list[Result]:
    """The findings of an example of each rule."""
    results = []
    for number, example in enumerate(EXAMPLES.values()):
        repository = ModelRepository.from_directory(write(example.failing, directory / f"{number}"))
        results.append(Result(repository.check(example.target, is_packed=False)))
    return results


def test_sarif_passes_the_schema(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The results of all rules are valid SARIF, within what GitHub reads of it."""
    print_results(_one_of_each(tmp_path), "sarif")
    document = json.loads(capsys.readouterr().out)
    jsonschema.Draft4Validator(SCHEMA).validate(document)
    (run,) = document["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert len({rule["id"] for rule in rules}) == len(rules) > 100
    assert all(len(rule["fullDescription"]["text"]) <= 1024 for rule in rules)
    assert all(rules[each["ruleIndex"]]["id"] == each["ruleId"] for each in run["results"])


def test_sarif_has_places_in_the_working_folder(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A result has the path from the working folder, the range, and the message with the hint."""
    (run,) = json.loads(_output("sarif", repository, capsys))["runs"]
    first: dict[str, Any] = run["results"][0]
    assert first["ruleId"] == "backend-max-batch-size"
    assert first["locations"] == [
        {
            "physicalLocation": {
                "artifactLocation": {"uri": "models/m/config.pbtxt"},
                "region": {"startLine": 3, "startColumn": 1, "endLine": 3, "endColumn": 19},
            }
        }
    ]
    assert first["message"]["text"].endswith("write 0 for a model without batching.")


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("[fix](https://x.test)", r"[fix\](https://x.test)"),
        (r"[fix\](https://x.test)", r"[fix\\\](https://x.test)"),
        ("dims [1, 2] (3)", "dims [1, 2] (3)"),
    ],
)
def test_sarif_has_no_link_of_a_foreign_name(
    name: str, shown: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Viewers show "[text](target)" in a message as a link, unless its bracket is escaped."""
    finding = Finding(
        "instance-count",
        Severity.ERROR,
        "m",
        f"{name} is wrong",
        hint=f"see {name}",
        place=Place("m/config.pbtxt", 1, 1, 1, 2),
    )
    print_results([Result(Report(str(tmp_path), (finding,)))], "sarif")
    text = json.loads(capsys.readouterr().out)["runs"][0]["results"][0]["message"]["text"]
    assert text.count(shown) == 2
    assert text.count("](") == text.count("\\](")


def test_sarif_has_fixes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A fix is a replacement of characters in the file of the result."""
    text = 'backend: "onnxruntime"\ninput { name: "x" data_type: "TYPE_FP32" dims: 1 }\n'
    write({"m/config.pbtxt": text, "m/1/model.onnx": relu()}, tmp_path)
    main([str(tmp_path), "--output-format", "sarif"])
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    (fix,) = next(each["fixes"] for each in run["results"] if each["ruleId"] == "text-enum")
    for edit in fix["artifactChanges"][0]["replacements"]:
        start, length = edit["deletedRegion"]["charOffset"], edit["deletedRegion"]["charLength"]
        text = text[:start] + edit["insertedContent"]["text"] + text[start + length :]
    assert "data_type: TYPE_FP32 dims" in text


@pytest.mark.parametrize(
    ("text", "line", "expected"),
    [
        ("", 1, "c129715d7a2bc9a3:1"),
        ("Lorem ipsum dolor sit amet.\n" * 10, 6, "a7f2ff13bc495cf2:6"),
        ("Lorem ipsum dolor sit amet.\n" * 10, 7, "a7f2ff1481e87703:1"),
        ("Lorem ipsum\tdolor sit amet.\r\n" * 10, 11, "c129715d7a2bc9a3:1"),
    ],
)
def test_line_hash_is_the_one_that_github_computes(
    text: str, line: int, expected: str, tmp_path: Path
) -> None:
    """GitHub's upload warns of another hash. Source: codeql-action, ``fingerprints.test.ts``."""
    (tmp_path / "f").write_bytes(text.encode())
    finding = Finding("code", Severity.ERROR, "f", "no", place=Place("f", line, 1, line, 1))
    (found,) = shown([Result(Report(str(tmp_path), (finding,)))])
    assert found.line_hash == expected


def test_github_gets_errors_first(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """GitHub shows the first ten errors and warnings; the last line of the log is the verdict."""
    error, warning, verdict = _output("github", repository, capsys).splitlines()
    assert error.startswith(
        "::error "
        "title=backend-max-batch-size,file=models/m/config.pbtxt,line=3,endLine=3,col=1,"
        "endColumn=19::models/m/config.pbtxt:3:1: "
        "backend-max-batch-size: "
    )
    assert warning.startswith("::warning title=instance-count,file=models/m/config.pbtxt,line=2,")
    assert verdict.startswith("1 error, 1 warning: Triton ")


def test_github_command_cannot_be_forged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Line breaks and signs of commands stay text. A range of several lines has no columns."""
    name = "a,b:c%"
    finding = Finding(
        "code", Severity.ERROR, name, "100%\n::error::forged", place=Place(name, 1, 5, 2, 3)
    )
    print_results([Result(Report(str(tmp_path), (finding,)))], "github")
    line, _ = capsys.readouterr().out.splitlines()
    assert line.startswith(f"::error title=code,file={tmp_path}/a%2Cb%3Ac%25,line=1,endLine=2::")
    assert line.endswith("code: 100%25\\n::error::forged")


def test_gitlab_report(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each issue has the fields that GitLab requires,
    and a fingerprint that stays if its line moves.
    """
    issues = json.loads(_output("gitlab", repository, capsys))
    assert [(each["check_name"], each["severity"]) for each in issues] == [
        ("backend-max-batch-size", "major"),
        ("instance-count", "minor"),
    ]
    assert issues[0]["location"]["path"] == "models/m/config.pbtxt"
    assert issues[0]["location"]["positions"]["begin"] == {"line": 3, "column": 1}
    (repository / "m" / "config.pbtxt").write_text(f"# a comment\n{CONFIG}", encoding="utf-8")
    moved = json.loads(_output("gitlab", repository, capsys))
    assert [each["fingerprint"] for each in moved] == [each["fingerprint"] for each in issues]


def test_linked_model_is_shown_where_its_files_are(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Code hosts show no links, so the path is that of the file in the checkout."""
    (repository / "m").rename("elsewhere")
    (repository / "m").symlink_to(Path("elsewhere").resolve())
    issue, *_ = json.loads(_output("gitlab", repository, capsys))
    assert issue["location"]["path"] == "elsewhere/config.pbtxt"


def test_finding_in_another_file_names_its_path(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A finding about a folder or a model file is shown in the configuration, with its path."""
    write({"m/config.pbtxt": 'backend: "onnxruntime"\n', "m/1/model.onnx": b"no"}, tmp_path)
    main([str(tmp_path), "--output-format", "gitlab"])
    (issue,) = json.loads(capsys.readouterr().out)
    assert issue["location"]["path"] == f"{tmp_path}/m/config.pbtxt"
    assert issue["description"].startswith("m/1/model.onnx: ")


@pytest.mark.parametrize("format_", ["text", "json", "sarif", "github", "gitlab"])
def test_output_file_has_what_would_be_printed(
    format_: str, repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The file has the same output, and nothing is printed."""
    printed = _output(format_, repository, capsys)
    main([str(repository), "--output-format", format_, "--output-file", "out"])
    assert capsys.readouterr().out == ""
    assert Path("out").read_text(encoding="utf-8") == printed


def test_format_does_not_depend_on_a_ci_service(
    repository: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The variables of CI services change nothing."""
    main([str(repository)])
    before = capsys.readouterr().out
    for name in ("CI", "GITHUB_ACTIONS", "GITLAB_CI"):
        monkeypatch.setenv(name, "true")
    main([str(repository)])
    assert capsys.readouterr().out == before


def test_paths_of_several_folders_count_from_the_working_folder() -> None:
    """So do the place and each edit of a fix, which may be in another file than the finding."""
    fix = Fix(True, (Edit("m/1/model.py", 0, 1, ""), Edit("n/config.pbtxt", 2, 3, "")))
    place = Place("n/config.pbtxt", 1, 1, 1, 2)
    found = Finding("code", Severity.ERROR, "m/config.pbtxt", "wrong", place=place, fix=fix)
    (moved,) = Result(Report("models", (found,))).from_working_folder().report.findings
    assert moved.fix is not None
    assert moved.place is not None
    assert (moved.path, moved.place.file) == ("models/m/config.pbtxt", "models/n/config.pbtxt")
    assert [each.path for each in moved.fix.edits] == [
        "models/m/1/model.py",
        "models/n/config.pbtxt",
    ]


def test_several_folders_are_one_document(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every format prints the findings of several folders as one document."""
    finding = Finding(
        "backend-runtime", Severity.ERROR, "m", "no", place=Place("m/config.pbtxt", 1, 1, 1, 1)
    )
    results = [Result(Report(str(tmp_path / name), (finding,))) for name in ("a", "b")]
    print_results(results, "json")
    document = json.loads(capsys.readouterr().out)
    assert [each["path"] for each in document["repositories"]] == [
        str(each.root) for each in results
    ]
    print_results(results, "sarif")
    assert len(json.loads(capsys.readouterr().out)["runs"][0]["results"]) == 2
    print_results(results, "text")
    assert f"{tmp_path / 'b'}: 1 error" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words",
    [["--json"], ["--output-format", "json"], ["--output-format=json"]],
    ids=lambda words: words[-1],
)
def test_failure_is_json_too(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A program that reads JSON gets JSON also if nothing could be checked."""
    assert main(["check", str(tmp_path / "absent"), *words]) == 2
    assert "cannot be read" in json.loads(capsys.readouterr().out)["error"]


def test_each_format_has_what_was_not_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An unknown verdict is in every format, with the path and the reason from the working
    folder.
    """
    monkeypatch.chdir(tmp_path)
    write({"m/config.pbtxt": 'backend: "onnxruntime"\n', "m/1/model.onnx": relu()}, Path("models"))
    output: dict[str, str] = {}
    for name in ("sarif", "github", "gitlab"):
        assert main(["models", "--no-files", "--output-format", name]) == 0
        output[name] = capsys.readouterr().out
    said = "models/m: model files not checked"
    document = json.loads(output["sarif"])
    jsonschema.Draft4Validator(SCHEMA).validate(document)
    (run,) = document["runs"]
    assert run["properties"]["verdicts"] == [{"path": "models", "verdict": "unknown"}]
    (notification,) = run["invocations"][0]["toolExecutionNotifications"]
    assert notification["message"]["text"] == f"{said}."
    notice, verdict = output["github"].splitlines()
    assert notice == f"::notice title=not-checked::{said}"
    assert ": unknown: " in verdict
    (issue,) = json.loads(output["gitlab"])
    assert (issue["severity"], issue["description"]) == ("info", said)
