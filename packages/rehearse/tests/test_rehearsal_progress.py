"""What a rehearsal reports before it has ended."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from small_assembly import write_assembly

from cdk_rehearse.cli import main, progress
from cdk_rehearse.updates import rehearsing
from cdk_rehearse.updates.progress import Attempted, Calm, Progress, Stepping
from constructs_triton_core.errors import ConstructsTritonError

TOPICS = {f"T{number}": {"Type": "AWS::SNS::Topic", "Properties": {}} for number in range(3)}
COMMAND = [sys.executable, "-m", "cdk_rehearse"]


@pytest.fixture
def versions(tmp_path: Path) -> tuple[Path, Path]:
    """Return the folders of a stack with one topic, and of the same with three."""
    old = write_assembly(tmp_path / "old", {"T0": TOPICS["T0"]})
    return old, write_assembly(tmp_path / "new", TOPICS)


def test_calm_result_comes_before_the_failures(versions: tuple[Path, Path]) -> None:
    """Each change is reported, then the rehearsal without failures, then each failure."""
    reported: list[Progress] = []
    whole = rehearsing.rehearse(*versions, orders=1, progress=reported.append)

    (calm,) = [report for report in reported if isinstance(report, Calm)]
    place = reported.index(calm)
    before, after = reported[:place], reported[place:]

    changes = [report for report in before if isinstance(report, Stepping)]
    of_new_topic = [change.work for change in changes if change.place == "S/T2"]
    assert of_new_topic[0] == "deploying NEW"
    assert changes[-1].work == "deleting NEW"

    assert calm.rehearsal == rehearsing.rehearse(*versions, orders=1, failures="none")
    assert calm.failures == 2
    assert after.count(Attempted()) == len(whole.failures) == 2


def test_command_prints_the_calm_result_first(versions: tuple[Path, Path]) -> None:
    """The text has the way back before what happens if a step fails; it is printed at once."""
    command = [*COMMAND, *map(str, versions)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        for line in running.stdout:
            if line.startswith("  not simulated"):
                break
        assert running.poll() is None
        rest = running.stdout.read()
    assert "if this step fails" in rest
    assert rest.endswith("\n\n0 errors, 0 warnings.\n")


def test_log_has_lines_of_progress(
    versions: tuple[Path, Path],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They are on standard error, and standard output has the one document alone."""
    monkeypatch.setattr(progress, "_LOG_SECONDS", 0.0)
    assert main([*map(str, versions), "--orders", "1", "--json"]) == 0
    printed = capsys.readouterr()
    assert len(json.loads(printed.out)["failures"]) == 2
    lines = printed.err.splitlines()
    assert "deploying NEW in a simulated account: S/T2 ..." in lines
    assert lines[-1] == "letting steps fail: 2 of about 2 ..."


def _read_all(reader: int, parts: list[bytes]) -> None:
    """Read what is written to a terminal until it is closed, which Linux reports as an error."""
    with os.fdopen(reader, "rb", buffering=0) as file, suppress(OSError):
        while part := file.read(65536):
            parts.append(part)


def test_terminal_has_one_line_of_progress(
    versions: tuple[Path, Path],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The line shows the failures, disappears, and is not in the result."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    reader, terminal = pty.openpty()
    parts: list[bytes] = []
    # A terminal that is not read stops the program that writes to it.
    reading = threading.Thread(target=_read_all, args=(reader, parts))
    reading.start()
    with os.fdopen(terminal, "w") as stderr:
        monkeypatch.setattr(sys, "stderr", stderr)
        assert main([*map(str, versions), "--orders", "1"]) == 0
    reading.join()
    shown = b"".join(parts).decode()
    assert "letting steps fail: 2 of about 2" in shown
    assert "\x1b[2K" in shown.rpartition("letting steps fail")[2]
    assert "way back" not in shown
    assert "letting" not in capsys.readouterr().out


def test_rehearsal_that_waits_for_ever_is_an_error(
    versions: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the change at which the process stopped to answer."""
    rehearsing.rehearse(*versions, orders=1, failures="none")  # starts the process
    monkeypatch.setattr(rehearsing, "_MOST_SILENT_SECONDS", 8.0)
    process = rehearsing._PROCESS._started()

    def stop(each: Progress) -> None:
        if isinstance(each, Stepping) and each.work == "deploying NEW":
            os.kill(process.pid, signal.SIGSTOP)

    with pytest.raises(
        ConstructsTritonError,
        match="deploying NEW, at S/T1, its process does not answer; rehearse fewer stacks",
    ):
        rehearsing.rehearse(*versions, orders=1, progress=stop)
    assert process.poll() is not None
