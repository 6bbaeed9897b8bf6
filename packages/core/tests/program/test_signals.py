"""Signals and full disks end a command in order."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from constructs_triton_core.program.program import ending_with_signals

_PROGRAM = [sys.executable, "-m", "constructs_triton.cli"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_signal_runs_what_cleans_up(number: signal.Signals) -> None:
    """The block ends as after Ctrl-C, with the exit code of shells; the handler before is back."""
    before = signal.signal(number, signal.SIG_DFL)  # which it is not if the tests run under nohup
    try:
        with pytest.raises(SystemExit) as ended, ending_with_signals():
            signal.raise_signal(number)
        assert ended.value.code == 128 + number
        assert signal.getsignal(number) is signal.SIG_DFL
    finally:
        signal.signal(number, before)


def test_ignored_signal_stays_ignored() -> None:
    """Under nohup, the end of the terminal does not end a command."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with ending_with_signals():
            signal.raise_signal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_terminated_command_deletes_what_it_has_begun(tmp_path: Path) -> None:
    """The temporary folder of a command that SIGTERM ends,
    before it was killed with the folder left.
    """
    code = (
        "import signal, tempfile\n"
        "from constructs_triton import cli\n"
        "from constructs_triton_core.program.program import Program\n"
        # the measurement of coverage has a handler
        "signal.signal(signal.SIGTERM, signal.SIG_DFL)\n"
        "def run(program, words):\n"
        f"    with tempfile.TemporaryDirectory(dir={str(tmp_path)!r}):\n"
        "        signal.raise_signal(signal.SIGTERM)\n"
        "Program._run = run\n"
        "raise SystemExit(cli.main(['check']))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr, list(tmp_path.iterdir())) == (143, "", [])


def _run(words: list[str], **streams: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*_PROGRAM, *words], **streams, text=True, check=False)


@pytest.mark.parametrize(
    "words", [["facts", "env", "--json"], ["check", "nowhere", "--json"], ["nonsense"]]
)
def test_full_disk_is_one_line(words: list[str]) -> None:
    """An answer that cannot be written is one error and exit code 2,
    also if the error is JSON too.
    """
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        done = _run(words, stdout=full, stderr=subprocess.PIPE)
        silent = _run(words, stdout=full, stderr=full)
    lines = [line for line in done.stderr.splitlines() if "error: " in line]
    assert (done.returncode, silent.returncode, len(lines)) == (2, 2, 1)
    assert "Traceback" not in done.stderr


def test_full_standard_error_keeps_the_answer() -> None:
    """The failure is still JSON on standard output."""
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        done = _run(["check", "nowhere", "--json"], stdout=subprocess.PIPE, stderr=full)
    assert (done.returncode, sorted(json.loads(done.stdout))) == (2, ["error", "findings"])
