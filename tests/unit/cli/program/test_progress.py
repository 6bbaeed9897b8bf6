"""The line that shows that a command works."""

from __future__ import annotations

import os
import pty
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from constructs_triton.cli import main
from constructs_triton_core.untrusted.terminal import show_work

MODELS = Path(__file__).resolve().parents[4] / "assets" / "model_repositories" / "digits"


def test_line_is_for_terminals_only(capsys: pytest.CaptureFixture[str]) -> None:
    """In a pipe, as in CI, standard error has only the note about the next command."""
    assert main(["check", str(MODELS)]) == 0
    assert capsys.readouterr().err == f"next: constructs-triton local up {MODELS}\n"


def _read_all(reader: int) -> str:
    """Return what was written to a terminal that is closed now."""
    parts = []
    with (
        os.fdopen(reader, "rb", buffering=0) as file,
        suppress(OSError),
    ):  # Linux reports the end as an error
        while part := file.read(65536):
            parts.append(part)
    return b"".join(parts).decode()


def test_output_keeps_its_stream(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a terminal the line names the work and is cleared;
    the result is on standard output alone.
    """
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    reader, terminal = pty.openpty()
    with os.fdopen(terminal, "w") as stderr:
        monkeypatch.setattr(sys, "stderr", stderr)
        with show_work("checking \x1b[31mmodels"):
            sys.stdout.write("result\n")
    shown = _read_all(reader)
    assert capsys.readouterr().out == "result\n"
    assert r"checking \x1b[31mmodels" in shown
    assert "result" not in shown
    assert "\x1b[2K" in shown.rpartition("models")[2]
