"""``constructs-triton --help``, and how the commands end."""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from constructs_triton import cli
from constructs_triton.cli import COMMAND_GROUPS, COMMANDS, main
from constructs_triton_core.errors import ArchiveError, InvalidValueError
from constructs_triton_core.program.program import Command

#: The commands of one word. Those of two words are in the help of their first word.
TOP = {name: each for name, each in COMMANDS.items() if " " not in name}


def _parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for child in action.choices.values():
                yield from _parsers(child)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_and_option_is_described(command: str) -> None:
    """Each parser has a description, each argument a help text; names of values are upper case."""
    parser = argparse.ArgumentParser()
    COMMANDS[command].load().add_arguments(parser)
    for each in _parsers(parser):
        assert each.description
        for action in each._actions:
            if isinstance(action, argparse._SubParsersAction):
                continue
            assert action.help
            assert not action.help.endswith(".")
            if action.metavar or not action.option_strings:
                assert str(action.metavar).isupper()


def _printed_help(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit):
        main([*words, "--help"])
    return capsys.readouterr().out


@pytest.mark.parametrize("command", COMMANDS)
def test_no_line_of_help_is_wider_than_the_terminal(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On a terminal of 80 columns, no line of a command's help is longer."""
    monkeypatch.setenv("COLUMNS", "80")
    parser = argparse.ArgumentParser(prog="")
    COMMANDS[command].load().add_arguments(parser)
    for each in _parsers(parser):
        text = _printed_help([*command.split(), *each.prog.split()], capsys)
        assert text.startswith("usage: constructs-triton")
        assert [line for line in text.splitlines() if len(line) > 80] == []


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    """With one line each in groups, those that most people need first, examples and exit codes."""
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    for name, command in TOP.items():
        assert re.search(rf"^  {name} +{re.escape(command.summary)}$", text, re.MULTILINE)
    assert len(COMMAND_GROUPS["First steps"]) == 8
    assert "examples:" in text
    headings = re.findall(r"^(\S.*):$", text, re.MULTILINE)
    assert headings == [*COMMAND_GROUPS, "options", "examples", "exit codes"]
    assert "\n  130  you pressed Ctrl-C, also where that is the usual way to stop\n" in text


@pytest.mark.parametrize("command", [name for name in COMMANDS if " " in name])
def test_a_command_of_two_words_is_in_the_help_of_its_first_word(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """With its line, and not in the list of all commands."""
    first, second = command.split()
    text = _printed_help([first], capsys)
    assert re.search(
        rf"^  {second} +{re.escape(COMMANDS[command].summary[:40])}", text, re.MULTILINE
    )
    assert f"constructs-triton {first} COMMAND ...\n" in text
    assert _printed_help(command.split(), capsys).startswith(f"usage: constructs-triton {command} ")
    assert COMMANDS[command].summary not in _printed_help([], capsys)


@pytest.mark.parametrize("words", [[], ["cost"], ["cost", "prices"], ["plan", "recommender"]])
def test_help_is_a_word_too(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """``help cost prices`` prints what ``cost prices --help`` prints."""
    expected = _printed_help(words, capsys)
    with pytest.raises(SystemExit, match="0"):
        main(["help", *words])
    assert capsys.readouterr().out == expected


def test_an_error_names_the_option_in_place_of_the_keyword(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Also the other options in its message; columns of a file keep their names."""
    bounds = ["--target", "9", "--min-capacity", "4", "--max-capacity", "2"]
    traffic = ["--pattern", "step", "--low", "9", "--high", "5", "--throughput", "9"]
    assert main(["simulate", *traffic, *bounds]) == 2
    assert "error: --low: must be from 0 to high (5" in capsys.readouterr().err
    traffic[3] = "1"
    assert main(["simulate", *traffic, *bounds]) == 2
    assert "error: --min-capacity: must be from 1 to --max-capacity (2" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("raised", "words"),
    [
        (
            OSError(30, "Read-only file system", "shop"),
            "error: shop: read-only file system; check the path",
        ),
        (
            OSError(28, "No space left on device"),
            "error: check: no space left on device; check the path",
        ),
        (
            IsADirectoryError(21, "Is a directory", 3),
            "error: check: is a directory; check the path",
        ),
    ],
)
def test_errors_of_files_have_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], raised: OSError, words: str
) -> None:
    """The message has the path, or the command where the system does not give a path."""

    def run(_arguments: argparse.Namespace) -> int:
        raise raised

    command = SimpleNamespace(run=run, add_arguments=lambda _parser: None)
    monkeypatch.setattr(Command, "load", lambda _self: command)
    assert main(["check"]) == 2
    assert capsys.readouterr().err.startswith(words)


def test_options_are_not_abbreviated(capsys: pytest.CaptureFixture[str]) -> None:
    """An abbreviation would change its meaning with a new option."""
    with pytest.raises(SystemExit) as ended:
        main(["pack", "models", "--output", "archives", "--mod", "m"])
    assert ended.value.code == 2
    assert (
        'argument --mod: there is no such option; did you mean "--model"?'
        in capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["invoke", "x", "--inptu", "y=1:FP32"], 'did you mean "--input"?'),
        (["invoke", "x", "--inptu=y=1:FP32"], 'did you mean "--input"?'),
        (["local", "up", "--prot", "1"], 'did you mean "--port"?'),
        (["--verson"], 'did you mean "--version"?'),
        (
            ["check", "--model-repository=models"],
            "see `constructs-triton check --help`; write PATH [...] without an option",
        ),
        (["check", "--baseline"], "see `constructs-triton check --help`"),
        (["cost", "--unlike-any"], "see `constructs-triton cost --help`"),
        (["check", "-help"], 'did you mean "--help"?'),
        (["check", "models", "-q"], "see `constructs-triton check --help`"),
    ],
)
def test_misspelt_options_are_named(
    words: list[str], hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The error is about the option, and not about what is missing because of it."""
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    assert f"there is no such option; {hint}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("-v", 'did you mean "--version"?'),
        ("version", 'did you mean "--version"?'),
        ("--region eu-west-1 status digits", "write `constructs-triton status ... --region`"),
        ("--json status", "write `constructs-triton status ... --json`"),
        ("status digits --json=true", "takes no value, got 'true'; write --json alone"),
        (
            "doctor complete",
            "from 'complete' on; see `constructs-triton doctor --help`",
        ),
        ("cost idle us-east-1", "see `constructs-triton cost idle --help`"),
    ],
)
def test_habits_of_other_programs_get_a_hint(
    words: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """aws, kubectl, docker and gcloud accept these forms."""
    with pytest.raises(SystemExit, match="2"):
        main(words.split())
    assert hint in capsys.readouterr().err


def test_a_path_is_neither_a_command_nor_an_option(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A path may have the name of a keyword after ``--``, or resemble a command if it exists."""
    monkeypatch.chdir(tmp_path)
    assert main(["cost", "--", "prices"]) == 2
    assert capsys.readouterr().err.startswith("error: prices: does not exist; pass a template")
    Path("price").write_text("{}")
    main(["cost", "price"])
    assert "did you mean" not in capsys.readouterr().err


def test_option_like_values_are_values(capsys: pytest.CaptureFixture[str]) -> None:
    """As for argparse: after an equals sign, with a space, and after a double dash."""
    words = ["--input", "--no option=1:FP32", "--endpoint-url=--x", "--", "--name"]
    assert main(["invoke", *words]) == 2
    assert "--endpoint-url: must start with http://" in capsys.readouterr().err


def test_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """The installed version of the package."""
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out.startswith("constructs-triton 0.")


def test_without_a_command_the_help_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """On standard error with exit code 2, because nothing was done."""
    assert main([]) == 2
    printed = capsys.readouterr()
    with pytest.raises(SystemExit):
        main(["--help"])
    assert printed == ("", capsys.readouterr().out)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["chexk", "models"],
            "argument COMMAND: must be one of its choices, got 'chexk'; did you mean \"check\"?",
        ),
        (
            ["model", "neww"],
            "argument ACTION: must be one of its choices, got 'neww'; did you mean \"new\"?",
        ),
        (["zzz"], 'choose from "project", "model", "check", "local"'),
        (["help", "chexk"], 'did you mean "check"?'),
        (["prices"], "got 'prices'; did you mean \"cost prices\"?"),
        (["cost", "pricse", "ml.g5.xlarge"], "got 'pricse'; did you mean \"cost prices\"?"),
        (["simulate", "modles"], 'did you mean "simulate models"?'),
        (["plan", "recomender", "request"], 'did you mean "plan recommender"?'),
    ],
)
def test_misspelt_command_gets_a_suggestion(
    capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    """Also a command of a command; if none is similar, the message lists all of them."""
    with pytest.raises(SystemExit, match="2"):
        main(words)
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("outcome", "code", "printed"),
    [
        (0, 0, ""),
        (1, 1, ""),
        (InvalidValueError("x: is wrong; change it"), 2, "error: x: is wrong; change it\n"),
        (ArchiveError("x: is damaged; pack it again"), 1, "error: x: is damaged; pack it again\n"),
        (KeyboardInterrupt(), 130, ""),
    ],
    ids=["success", "errors", "argument", "archive", "Ctrl-C"],
)
def test_exit_codes(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    outcome: Any,
    code: int,
    printed: str,
) -> None:
    """Those of the command and of the exception's class,
    and 130 as the shell reports an interrupt.
    """

    def run(_: argparse.Namespace) -> int:
        if isinstance(outcome, BaseException):
            raise outcome
        return int(outcome)

    module = SimpleNamespace(add_arguments=lambda _: None, run=run)
    monkeypatch.setattr(Command, "load", lambda _: module)
    assert cli.main(["check"]) == code
    assert capsys.readouterr().err == printed


def test_a_reader_that_closes_the_pipe_is_not_an_error() -> None:
    """As in ``constructs-triton facts environment | head -1``."""
    command = [sys.executable, "-m", "constructs_triton.cli", "facts", "environment", "--json"]
    # Measuring coverage changes how the interpreter ends, and unbuffered output fails earlier.
    changed = ("COVERAGE_", "PYTHONUNBUFFERED")
    unmeasured = {name: value for name, value in os.environ.items() if not name.startswith(changed)}
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as closed:
        done = subprocess.run(
            command, stdout=closed, stderr=subprocess.PIPE, env=unmeasured, check=False
        )
    assert (done.returncode, done.stderr) == (0, b"")


def _options() -> Iterator[tuple[str, argparse.ArgumentParser, argparse.Action]]:
    """Every argument of every command that has a value."""
    for name, command in COMMANDS.items():
        parser = argparse.ArgumentParser()
        command.load().add_arguments(parser)
        for each in _parsers(parser):
            for action in each._actions:
                if action.nargs != 0 and not isinstance(action, argparse._SubParsersAction):
                    yield name, each, action


WRONG_VALUES = (
    "",
    "abc",
    "a",
    "-",
    "=",
    "a=",
    "1,5",
    "9" * 400,
    "9" * 400 + "d",
    "1e999",
    "nan",
    "²",
    "0x1",
    "\x1b",
)
LEAKS = re.compile(r"invalid|None|Traceback|<function|_\w+ value|\bint\b|\bfloat\b")


@pytest.mark.parametrize("text", WRONG_VALUES)
def test_a_wrong_value_is_explained_for_each_option_of_each_command(text: str) -> None:
    """The message names the option once, says what the value must be,
    and names nothing of the code.
    """
    messages = {}
    for command, parser, action in _options():
        try:
            parser._get_value(action, text)
        except argparse.ArgumentError as error:
            messages[f"{command} {'/'.join(action.option_strings) or action.dest}"] = str(error)
    if text == "abc":
        assert {"check --gpus", "plan --price", "logs --since", "local --port"} <= messages.keys()
    unclear = {
        option: message
        for option, message in messages.items()
        if not re.match(r"argument [^:]+: (.+: )?must ", message)
        or "got" not in message
        or LEAKS.search(message.split("got")[0])
        or message.count(option.split()[-1].split("/")[-1]) != 1
    }
    assert not unclear


def test_no_command_writes_a_file_that_its_arguments_do_not_name() -> None:
    """No option has a path as its default, except folders that the help and the output name."""
    defaults = {
        (command, *action.option_strings, str(action.default))
        for command, _, action in _options()
        if isinstance(action.default, Path) or "." in str(action.default)
    }
    assert {each for each in defaults if not each[-1].replace(".", "").isdecimal()} == {
        ("compile", "-o", "--output", "compiled"),
        ("model", "-o", "--repository", "models"),
        ("tune", "-o", "--output", "tuned"),
        ("load-test", "--repository", "models"),
        ("invoke", "--repository", "models"),
    }
