"""The command ``constructs-triton rehearse``."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from constructs_triton.cli import main

PROJECT = Path(__file__).resolve().parents[3]


def _template(path: Path, name: str) -> str:
    metadata = {"aws:cdk:path": "Shop/Alerts/Topic/Resource"}
    topic = {"Type": "AWS::SNS::Topic", "Properties": {"TopicName": name}, "Metadata": metadata}
    path.write_text(json.dumps({"Resources": {"Topic": topic}}))
    return str(path)


BAD_DASHBOARD = {"Type": "AWS::CloudWatch::Dashboard", "Properties": {"DashboardBody": "no JSON"}}


def _run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(["rehearse", *words])
    return code, *capsys.readouterr()


@pytest.mark.e2e
def test_text_and_json_have_the_steps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A changed name replaces the topic; the table has its construct path and
    the JSON its logical ID.
    """
    old, new = (
        _template(tmp_path / "old.json", "alerts"),
        _template(tmp_path / "new.json", "alarms"),
    )
    code, out, _ = _run(capsys, old, new, "--orders", "1")
    assert code == 0
    assert ["1", "replace", "Topic", "Alerts/Topic"] in [line.split() for line in out.splitlines()]
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


@pytest.mark.e2e
def test_problem_is_shown_at_the_line_of_the_app(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of an app that the CDK synthesizes with traces, the annotation has the file and the line."""
    app = (PROJECT / "docs" / "guides" / "rehearse" / "shop" / "app.py").read_text()
    edited = app.replace('"Jobs")', '"Jobs", fifo=True)')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JSII_HOST_STACK_TRACES", "1")
    for name, text in (("old", app), ("new", edited)):
        Path(f"{name}.py").write_text(text)
        monkeypatch.setenv("CDK_OUTDIR", str(tmp_path / f"{name}.out"))
        subprocess.run([sys.executable, f"{name}.py"], check=True)
    line = next(n for n, text in enumerate(edited.splitlines(), 1) if "fifo=True" in text)

    folders = (str(tmp_path / "old.out"), str(tmp_path / "new.out"))
    words = (*folders, "--failures", "none", "--orders", "1")
    code, out, _ = _run(capsys, *words, "--format", "github")
    assert code == 1
    (annotation,) = [each for each in out.splitlines() if each.startswith("::error")]
    assert annotation.startswith(
        f"::error title=rehearse-data-lost,file=new.py,line={line},endLine={line},"
    )
    assert f"    at new.py:{line}" in out.splitlines()


@pytest.mark.e2e
def test_events_before_the_update_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An event that happened is printed first; an unknown kind is an error with all kinds,
    as in the help.
    """
    old, new = (
        _template(tmp_path / "old.json", "alerts"),
        _template(tmp_path / "new.json", "alarms"),
    )
    options = [
        "--orders",
        "1",
        "--failures",
        "none",
        "--meanwhile",
        "log-group=/mine",
        "--meanwhile",
        "days=2",
    ]
    code, out, _ = _run(capsys, old, new, *options)
    assert (code, out.splitlines()[2:4]) == (
        0,
        ["  meanwhile       log group /mine exists", "                  2 days pass"],
    )
    code, _, error = _run(capsys, old, new, "--meanwhile", "rain=Topic")
    assert code == 2
    assert "key-disabled=KEY, image-deleted=IMAGE, got 'rain=Topic'" in error


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["missing", "none"], "missing: does not exist"),
        (["none", "none"], "OLD and NEW are both none"),
        (["none"], "OLD NEW: must be two paths, got 1; write both, or `none`"),
        (
            ["TEMPLATE", "none", "--stack", "Other"],
            "stack 'Other' is in neither version; pass one of old",
        ),
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
def test_acknowledged_error_is_exit_code_0(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An error that the user acknowledges is in the JSON, and an unknown code is exit code 2."""
    old, new = _template(tmp_path / "a.json", "alerts"), tmp_path / "b.json"
    body = json.loads(Path(old).read_text())
    new.write_text(json.dumps({"Resources": {**body["Resources"], "Bad": BAD_DASHBOARD}}))
    words = [old, str(new), "--orders", "1", "--failures", "none", "--json"]
    assert _run(capsys, *words)[0] == 1
    code, out, _ = _run(capsys, *words, "--acknowledge", "rehearse-update-fails@b")
    assert code == 0
    assert [each["code"] for each in json.loads(out)["acknowledged"]] == ["rehearse-update-fails"]
    assert json.loads(out)["problems"] == []
    code, _, err = _run(capsys, *words, "--acknowledge", "rehearse-update-fail")
    assert code == 2
    assert '"rehearse-update-fails"' in err


@pytest.mark.e2e
def test_files_of_the_current_folder_are_not_executed(tmp_path: Path) -> None:
    """A file beside the template that has the name of a package takes its place in no process."""
    for name in ("yaml", "moto", "json", "boto3"):
        (tmp_path / f"{name}.py").write_text("open('ran', 'w').write('')")
    _template(tmp_path / "new.json", "alerts")
    command = Path(sys.executable).with_name("constructs-triton")
    subprocess.run(
        [command, "rehearse", "none", "new.json"], cwd=tmp_path, check=True, capture_output=True
    )
    assert not (tmp_path / "ran").exists()


@pytest.mark.e2e
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_no_process_outlives_the_command(tmp_path: Path, number: signal.Signals) -> None:
    """A rehearsal that is killed, as by a timeout of CI,
    takes the process that rehearses with it.
    """
    template = _template(tmp_path / f"{tmp_path.name}.json", "alerts")
    words = [sys.executable, "-m", "constructs_triton.cli", "rehearse", "none", template]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as command:
        workers = _wait_for(lambda: _children(command.pid), lambda found: len(found) >= 2)
        command.send_signal(number)
    assert (
        _wait_for(lambda: [each for each in workers if _is_running(each)], lambda left: not left)
        == []
    )


def _children(pid: int) -> list[int]:
    listing = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(word) for word in listing.split()]


def _is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _wait_for(read: Callable[[], list[int]], is_wanted: Callable[[list[int]], bool]) -> list[int]:
    """Read until the value is as wanted, for at most 20 seconds."""
    deadline = time.monotonic() + 20
    while not is_wanted(found := read()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return found


#: The command without a package, which does in its own process what the process of the rehearsal
#: does.
WITHOUT_PACKAGE = """
import sys
from constructs_triton.cli import main
from cdk_rehearse.updates import rehearsing, worker
sys.modules[sys.argv.pop(1)] = None
rehearsing._PROCESS.call = lambda request, **limits: worker.answer(request)
raise SystemExit(main(sys.argv[1:]))
"""


@pytest.mark.e2e
@pytest.mark.parametrize("package", ["moto", "cfnlint"])
def test_missing_package_of_the_extra_is_one_sentence(package: str, tmp_path: Path) -> None:
    """Also a package that only the process of the rehearsal uses is an error
    with the command to run.
    """
    template = _template(tmp_path / "new.json", "alerts")
    run = subprocess.run(
        [sys.executable, "-c", WITHOUT_PACKAGE, package, "rehearse", "none", template, "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 2
    (line,) = run.stderr.splitlines()
    assert line.endswith("run `pip install cdk-rehearse`")
    assert json.loads(run.stdout)["error"] in line
