"""A rehearsal in each format, as code hosts and other programs read it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import jsonschema  # type: ignore[import-untyped]
import pytest

from cdk_rehearse.cli import main
from cdk_rehearse.cli.formats import print_rehearsal
from cdk_rehearse.updates.codes import CODES
from cdk_rehearse.updates.places import with_places
from cdk_rehearse.updates.problems import problem
from cdk_rehearse.updates.report import Rehearsal
from cdk_rehearse.updates.versions import NONE, read_version

SCHEMA = Path(__file__).parents[3] / "check" / "tests" / "reporting" / "sarif-schema-2.1.0.json"
APP = "import cdk\n\nstack = Stack(app)\ntable = Table(stack)\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with an app and what it synthesizes."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "app.py").write_text(APP)
    return tmp_path


def _assembly(folder: Path, name: str, *constructs: str) -> Path:
    """An assembly of the stack Shop, whose app has the constructs of these lines."""
    out = folder / name
    out.mkdir()
    metadata = {"/Shop": [_trace(folder, 3)]}
    resources = {"Topic": {"Type": "AWS::SNS::Topic", "Properties": {}}}
    for construct in constructs:
        resources[construct] = {"Type": "AWS::DynamoDB::Table", "Properties": {}}
        metadata[f"/Shop/{construct}/Resource"] = [
            {"type": "aws:cdk:logicalId", "data": construct},
            _trace(folder, 4),
        ]
    (out / "Shop.metadata.json").write_text(json.dumps(metadata))
    (out / "Shop.template.json").write_text(json.dumps({"Resources": resources}, indent=1))
    stack = {
        "type": "aws:cloudformation:stack",
        "additionalMetadataFile": "Shop.metadata.json",
        "properties": {"templateFile": "Shop.template.json"},
    }
    (out / "manifest.json").write_text(json.dumps({"artifacts": {"Shop": stack}}))
    return out


def _trace(folder: Path, line: int) -> dict[str, object]:
    """What the CDK writes of an app in Python with JSII_HOST_STACK_TRACES=1."""
    frames = [
        "...aws-cdk-lib, jsii runtime, node internals...",
        "(no user code in 10 frames, use --stack-trace-limit to capture more)",
        "__init__ (/venv/lib/python3.12/site-packages/library/table.py:7)",
        f"<module> ({folder}/app.py:{line})",
    ]
    return {"type": "aws:cdk:creationStack", "data": frames}


def _found(folder: Path, *codes: str) -> Rehearsal:
    """A rehearsal in which the table has a problem of each code."""
    problems = tuple(problem(code, "Table", f"is {code}", stack="Shop") for code in codes)
    new = read_version(_assembly(folder, "cdk.out", "Table"))
    found = Rehearsal({"Shop": "UPDATE_COMPLETE"}, problems=problems, resources=2, simulated=1)
    return with_places(found, NONE, new)


def test_sarif_passes_the_schema(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The problems of all codes are valid SARIF, with construct and line, errors first."""
    print_rehearsal(_found(folder, *CODES), "sarif")
    document = json.loads(capsys.readouterr().out)
    jsonschema.Draft4Validator(json.loads(SCHEMA.read_text())).validate(document)
    (run,) = document["runs"]
    assert {rule["id"] for rule in run["tool"]["driver"]["rules"]} == CODES.keys()
    levels = [each["level"] for each in run["results"]]
    assert levels == sorted(levels)
    (location,) = run["results"][0]["locations"]
    assert location == {
        "physicalLocation": {
            "artifactLocation": {"uri": "app.py"},
            "region": {"startLine": 4, "startColumn": 1, "endLine": 4, "endColumn": 21},
        },
        "logicalLocations": [{"fullyQualifiedName": "Shop/Table/Resource", "kind": "resource"}],
    }
    (note,) = run["invocations"][0]["toolExecutionNotifications"]
    assert note["message"]["text"].startswith("1 of 2 resources is simulated, 1 is compared")


def test_github_has_annotations_and_the_report(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A command marks the line that creates the construct; the report follows for the log."""
    print_rehearsal(_found(folder, "rehearse-data-lost"), "github")
    first, notice, *report = capsys.readouterr().out.splitlines()
    assert first.startswith(
        "::error title=rehearse-data-lost,file=app.py,line=4,endLine=4,col=1,endColumn=21::"
        "app.py:4:1: rehearse-data-lost: Table: is rehearse-data-lost"
    )
    assert notice.startswith("::notice title=not-checked::1 of 2 resources is simulated")
    assert "Table: error[rehearse-data-lost]: is rehearse-data-lost" in report
    assert "    at app.py:4" in report
    assert report[-1] == "1 error, 0 warnings."
    assert not any(line.startswith("::") for line in report)


def test_app_without_lines_is_told_once_how_to_get_them(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One notice, for all problems, says how the CDK writes the lines; with lines there is none."""
    found = _found(folder, "rehearse-data-lost", "rehearse-data-unprotected")
    print_rehearsal(found, "github")
    assert "JSII_HOST_STACK_TRACES" not in capsys.readouterr().out

    problems = tuple(replace(problem, place=None) for problem in found.problems)
    print_rehearsal(replace(found, problems=problems), "github")
    assert capsys.readouterr().out.count("JSII_HOST_STACK_TRACES=1") == 1


def test_removed_construct_is_shown_where_its_stack_is_created(folder: Path) -> None:
    """NEW has no line for it, and OLD may be the checkout of another branch."""
    old = read_version(_assembly(folder, "base.out", "Table"))
    new = read_version(_assembly(folder, "cdk.out"))
    lost = problem("rehearse-data-lost", "Table", "is removed", stack="Shop")
    (placed,) = with_places(Rehearsal({}, problems=(lost,)), old, new).problems
    assert placed.construct == "Shop/Table/Resource"
    assert placed.place is not None
    assert (placed.place.file, placed.place.line) == ("app.py", 3)


def test_folder_is_found_from_another_folder(folder: Path) -> None:
    """The process that rehearses keeps the working folder that it started in."""
    _assembly(folder, "cdk.out")
    (stack,) = read_version("cdk.out").stacks
    assert stack.directory == folder / "cdk.out"


def test_template_has_the_line_of_a_resource(folder: Path) -> None:
    """Without a trace of the app, the template shows where the resource is declared."""
    (folder / "shop.yaml").write_text(
        "Outputs:\n  Orders: {Value: 1}\nResources:\n  Orders:\n    Type: AWS::SQS::Queue\n"
    )
    lost = problem("rehearse-data-lost", "Orders", "is lost", stack="shop")
    found = Rehearsal({}, problems=(lost,))
    (placed,) = with_places(found, NONE, read_version("shop.yaml")).problems
    assert placed.place is None
    assert placed.template is not None
    assert placed.template[:3] == ("shop.yaml", 4, 3)


def test_equal_problems_of_several_stacks_are_one_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Problems that differ only in their stack are printed once, with all places."""
    lost = problem("rehearse-data-lost", "Table", "is removed")
    problems = tuple(replace(lost, stack=f"S{number}") for number in range(10))
    found = Rehearsal(
        dict.fromkeys("AB", "UPDATE_COMPLETE"),
        problems=problems,
        construct_paths={"Table": "Data/Table"},
    )
    print_rehearsal(found, "text")
    lines = capsys.readouterr().out.splitlines()
    text = " ".join(line.strip() for line in lines)
    assert text.count("rehearse-data-lost") == 1
    places = ", ".join(f"S{number}/Data/Table" for number in range(5))
    assert f"{places} and 5 more: error[" in text
    assert lines[-1] == "10 errors, 0 warnings."


@pytest.mark.e2e
def test_output_is_the_same_in_each_format(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each format has the lost table and exits with 1; a file has what would be printed."""
    table = {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": "a"}}
    topic = {"Topic": {"Type": "AWS::SNS::Topic", "Properties": {}}}
    (folder / "old.json").write_text(json.dumps({"Resources": {**topic, "Table": table}}))
    (folder / "new.json").write_text(json.dumps({"Resources": topic}))
    words = ["old.json", "new.json", "--failures", "none", "--orders", "1"]
    for form in ("text", "json", "sarif", "github"):
        assert main([*words, "--format", form, "--output-file", "out"]) == 1
        assert capsys.readouterr().out == ""
        assert "rehearse-data-lost" in (folder / "out").read_text()
    assert main([*words, "--acknowledge", "rehearse-data-lost@new/Table"]) == 0
    assert "1 acknowledged." in capsys.readouterr().out
