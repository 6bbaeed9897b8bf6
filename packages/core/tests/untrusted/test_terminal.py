"""The output of lines that contain text of files, names and servers."""

from __future__ import annotations

import io
import sys
import threading
from typing import Any

import pytest

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.findings import Finding, Severity
from constructs_triton_core.untrusted.terminal import (
    print_error,
    print_json,
    print_lines,
    print_note,
    print_table,
)

HOSTILE = "a\x1b]0;T\x07b\r\nc\u202ed\x9be\udcfff"
SHOWN = "a\\x1b]0;T\\x07b\\r\\nc\\u202ed\\x9be\\xfff"


@pytest.mark.parametrize(
    "printed", [print_lines, print_note, print_error, lambda text: print_table(["x"], [[text]])]
)
def test_control_characters_are_shown(printed: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Escape sequences, line breaks, bidirectional marks and wrong bytes are shown
    in one line, not sent.
    """
    printed(f"name {HOSTILE.replace(chr(10), '')}")
    output = "".join(capsys.readouterr())
    assert SHOWN.replace("\\n", "") in output
    assert output.removesuffix("\n").replace("\n", "").isprintable()


def test_line_stays_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """A line break inside a string does not begin a line of the output."""
    print_lines(HOSTILE, "next")
    assert capsys.readouterr().out == f"{SHOWN}\nnext\n"


@pytest.mark.parametrize(
    "command", ["::error::x", "  ::set-output name=a::b", "##[error]x", "##vso[task.x]y"]
)
def test_command_of_a_ci_service_is_not_sent(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """No printed line begins with a command that GitHub Actions or Azure Pipelines would run."""
    print_lines(command)
    print_lines([command[:4], (command[4:], "1")])
    print_error(InvalidValueError(f"x\n{command}"))
    lines = [line for stream in capsys.readouterr() for line in stream.splitlines()]
    assert len(lines) == 4
    assert not [line for line in lines if line.lstrip().startswith(("::", "##"))]


def test_messages_of_errors_are_clean_wherever_they_are_printed() -> None:
    """An error's text has no control characters, because a traceback prints it too."""
    assert (
        str(InvalidValueError(f"name: {HOSTILE}"))
        == f"name: {SHOWN.replace(chr(92) + 'n', chr(10), 1)}"
    )


def test_finding_is_one_line_for_each_part() -> None:
    """A folder's name with a line break cannot forge a line of a finding's text."""
    finding = Finding("code", Severity.ERROR, "a\n::error::b", "wrong\x1b[2J", "fix\nit")
    assert str(finding).splitlines() == [
        "a\\n::error::b: error[code]: wrong\\x1b[2J",
        "    hint: fix\\nit",
    ]


def test_styles_only_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Styled pieces have escape sequences on a terminal,
    and none with ``NO_COLOR`` or in a pipe.
    """

    class Terminal(io.StringIO):
        encoding = "utf-8"

        def isatty(self) -> bool:
            return True

    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for stream, colour in ((Terminal(), True), (io.StringIO(), False)):
        monkeypatch.setattr(sys, "stdout", stream)
        print_lines([("name\x1b", "1"), ": text"])
        assert stream.getvalue() == (
            "\x1b[1mname\\x1b\x1b[0m: text\n" if colour else "name\\x1b: text\n"
        )


def test_terminal_that_is_not_utf8(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the terminal's encoding lacks is shown as an escape."""
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stream)
    print_lines("naïve")
    print_json({"name": "naïve"}, indent=None)
    stream.seek(0)
    assert stream.read() == 'na\\xefve\n{"name": "na\\u00efve"}\n'


def test_lines_of_two_threads_are_not_mixed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream that is interrupted in the middle of a line gets one line after the other."""

    class Interrupted(io.StringIO):
        def write(self, text: str) -> int:
            super().write(text[:3])
            other_begins.set()
            if threading.current_thread() is not other:
                other.join(0.2)
            return super().write(text[3:])

    other_begins = threading.Event()
    stream = Interrupted()
    monkeypatch.setattr("sys.stderr", stream)

    def print_later() -> None:
        other_begins.wait()
        print_note("of another thread")

    other = threading.Thread(target=print_later)
    other.start()
    print_note("first line")
    other.join()
    assert stream.getvalue() == "first line\nof another thread\n"


@pytest.mark.parametrize(("width", "is_whole"), [(80, True), (50, False)])
def test_names_are_not_broken_while_words_fit(
    width: int, is_whole: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """Sentences are wrapped before names; nothing is lost if not even their words fit."""
    columns = ["endpoint", "variant", "instance type", "instances", "per hour", "per month"]
    row = [
        "Digits1601E29B",
        "AllTraffic",
        "ml.g5.xlarge",
        "1 to 5",
        "1.40 to 7.00",
        "1,022.00 to 5,110.00",
    ]
    print_table(columns, [row], width=width)
    output = capsys.readouterr().out
    assert (row[0] in output) is is_whole
    assert sorted("".join(output.split())) == sorted("".join([*columns, *row]).replace(" ", ""))
    assert all(len(line) <= width for line in output.splitlines())
