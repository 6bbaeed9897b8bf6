"""The end of a server's log, as the page shows it."""

from __future__ import annotations

from pathlib import Path

import pytest

from constructs_triton_tools.local.page.log_tail import LogTail, Messages

INFO = 'I1123 06:07:30.443561 16083 model.cc:1] "loaded: "\n'


def lines(tail: LogTail, after: int = 0) -> list[tuple[str, bool]]:
    return [(text, is_problem) for _, text, is_problem in tail.after(after)]


def test_only_complete_new_lines_are_read(tmp_path: Path) -> None:
    """A line that is being written is read when it is complete."""
    log = tmp_path / "server.log"
    tail = LogTail()
    tail.read(log)
    log.write_text("E1123 06:07:30.443561 1 a.cc:1] one\nE1123 06:07")
    tail.read(log)
    assert lines(tail) == [("E1123 06:07:30.443561 1 a.cc:1] one", True)]
    with log.open("a") as file:
        file.write(":31.000000 1 a.cc:1] two\n")
    tail.read(log)
    assert lines(tail, after=1) == [("E1123 06:07:31.000000 1 a.cc:1] two", True)]


def test_log_of_a_server_that_started_again(tmp_path: Path) -> None:
    """A log that is shorter than before is read from its beginning."""
    log = tmp_path / "server.log"
    tail = LogTail()
    for text in ("Error: long ago\n", "Error: new\n"):
        log.write_text(text)
        tail.read(log)
    assert [text for text, _ in lines(tail)] == ["Error: long ago", "Error: new"]


STATISTICS = 'I1123 06:07:42.757541 1 http_server.cc:4599] "HTTP request: '


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        (
            (
                f'{INFO}name: "m"\n\x1b[31mTraceback (most recent):\x1b[0m\n  '
                f'File "a.py"\n{INFO}plain\n'
            ),
            ["Traceback (most recent):", '  File "a.py"'],
        ),
        # A verbose server logs each reading of its statistics, which would hide the rest.
        (f'{STATISTICS}0 /v2/models/m/stats"\n{STATISTICS}2 /v2/repository/index"\n', []),
    ],
)
def test_lines_that_may_explain_a_failure(tmp_path: Path, log: str, expected: list[str]) -> None:
    """Errors, tracebacks and what follows them; no information,
    colours or requests of the page itself.
    """
    (tmp_path / "server.log").write_text(log)
    tail = LogTail()
    tail.read(tmp_path / "server.log")
    assert [text for text, is_problem in lines(tail) if is_problem] == expected
    assert expected or lines(tail) == []


def test_much_text_is_read_in_part(tmp_path: Path) -> None:
    """Of text that grows fast only the end is read, and long lines are cut."""
    log = tmp_path / "server.log"
    log.write_text("x" * 100_000 + "\n" + "y" * 5000 + "\nlast\n")
    tail = LogTail()
    tail.read(log)
    assert [len(text) for text, _ in lines(tail)][-2:] == [2000, 4]
    assert sum(len(text) for text, _ in lines(tail)) < 70_000


def test_messages_of_the_run_are_printed_and_kept() -> None:
    """Each line of a message is a line of the page."""
    printed: list[str] = []
    messages = Messages()
    messages.reporter(printed.append)("one\ntwo")
    assert printed == ["one\ntwo"]
    assert [text for _, text, _ in messages.after(1)] == ["two"]
