"""The command ``constructs-triton rehearse``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from constructs_triton.cli import main


def _template(path: Path, name: str) -> str:
    metadata = {"aws:cdk:path": "Shop/Alerts/Topic/Resource"}
    topic = {"Type": "AWS::SNS::Topic", "Properties": {"TopicName": name}, "Metadata": metadata}
    path.write_text(json.dumps({"Resources": {"Topic": topic}}))
    return str(path)


def _run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(["rehearse", *words])
    return code, *capsys.readouterr()


@pytest.mark.e2e
def test_text_and_json_have_the_steps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A changed name replaces the topic; the table has its construct path and the JSON its logical ID."""
    old, new = _template(tmp_path / "old.json", "alerts"), _template(tmp_path / "new.json", "alarms")
    code, out, _ = _run(capsys, old, new, "--orders", "1")
    assert code == 0
    assert ["1", "replace", "Topic", "Alerts/Topic", "-", "-", "-"] in [
        line.split() for line in out.splitlines()
    ]
    assert "cleanup: CloudFormation does not undo what follows" in out
    assert "deploying OLD again afterwards works" in out
    code, out, _ = _run(capsys, old, new, "--orders", "1", "--json")
    found: dict[str, Any] = json.loads(out)
    assert code == 0
    assert [(step["action"], step["logical_id"]) for step in found["steps"]] == [
        ("replace", "Topic"),
        ("delete", "Topic"),
    ]
    assert found["construct_paths"] == {"Topic": "Alerts/Topic"}
    assert found["failures"][0]["status"] == "UPDATE_ROLLBACK_COMPLETE"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["missing", "none"], "missing: does not exist"),
        (["none", "none"], "OLD and NEW are both none"),
        (["none"], "give OLD and NEW, got 1 paths"),
        (["TEMPLATE", "none", "--stack", "Other"], "stack 'Other' is in neither version; pass one of old"),
    ],
)
def test_input_that_cannot_be_read_is_exit_code_2(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The error names what to pass, also as JSON."""
    template = _template(tmp_path / "old.json", "alerts")
    given = [template if word == "TEMPLATE" else word for word in words]
    code, out, err = _run(capsys, *given, "--json")
    assert code == 2
    assert message in err
    assert message in json.loads(out)["error"]


@pytest.mark.e2e
@pytest.mark.parametrize("package", ["moto", "cfnlint", "yaml"])
def test_missing_package_of_the_extra_is_one_sentence(package: str, tmp_path: Path) -> None:
    """Also a package that only the process of the rehearsal uses is an error with the command to run."""
    (tmp_path / "sitecustomize.py").write_text(f"import sys\nsys.modules[{package!r}] = None\n")
    template = _template(tmp_path / "new.json", "alerts")
    run = subprocess.run(
        [sys.executable, "-m", "constructs_triton.cli", "rehearse", "none", template, "--json"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, sys.path)])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 2
    (line,) = run.stderr.splitlines()
    assert line.endswith("run `pip install 'constructs-triton[rehearse]'`")
    assert json.loads(run.stdout)["error"] in line
