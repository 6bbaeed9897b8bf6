"""Writes the reference of the command line from the argument parsers."""

from __future__ import annotations

import argparse
import re
import textwrap
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from constructs_triton.cli import COMMANDS, PROGRAM
from constructs_triton_core.program.exit_codes import EXIT_CODES

_EXIT_CODES = "\n".join(f"| {code} | {meaning} |" for code, meaning in EXIT_CODES.items())
COMMON = {
    "--json": "print JSON instead of text",
    "--region": "AWS Region (default: that of the AWS profile)",
    "--profile": "AWS profile",
    "--yes": "do not ask before what costs money, time or data",
}
"""The options that the page describes once, with their help."""
_COMMON = "\n".join(f"| `{name}` | {text} |" for name, text in COMMON.items())
_WIDTH = 84
HEAD = f"""# Commands

{PROGRAM.description} `constructs-triton COMMAND --help` prints the same on your terminal.

| exit code | meaning |
|---|---|
{_EXIT_CODES}

With `--json`, a failure is one JSON object too. After an error of constructs-triton itself (exit
code 2), the message has the path of a file with the traceback and the versions, to attach to a
report.

Options with the same meaning in all commands that have them; `--help` of a command says whether it
does:

| argument | meaning |
|---|---|
{_COMMON}

| command | what it does |
|---|---|
"""


def write_commands(path: Path) -> None:
    """Write the page."""
    contents = "".join(
        f"| [`{name}`](#{name.replace(' ', '-')}) | {each.summary} |\n"
        for name, each in COMMANDS.items()
    )
    sections = "\n".join(line for name in COMMANDS for line in _command(name))
    path.write_text(f"{HEAD}{contents}\n{sections}\n", encoding="utf-8")


def _command(name: str) -> Iterator[str]:
    module = COMMANDS[name].load()
    parser = argparse.ArgumentParser(
        prog=f"constructs-triton {name}",
        description=getattr(module, "DESCRIPTION", None),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        add_help=False,
    )
    module.add_arguments(parser)
    yield f"{_heading(name)}\n"
    yield from _parser(parser, name)


def _parser(parser: argparse.ArgumentParser, heading: str) -> Iterator[str]:
    if parser.description:
        yield f"{parser.description}\n"
    groups = [each for each in parser._actions if isinstance(each, argparse._SubParsersAction)]
    # Not argparse's usage: it depends on the version of Python and on the width of the terminal.
    positional = [_argument(each).strip("`") for each in parser._actions if not each.option_strings]
    yield f"`{' '.join([parser.prog, '[options]', *positional])}`\n"
    yield from _arguments(parser)
    if parser.epilog:
        yield "\n".join(["```text", *_wrapped(parser.epilog), "```\n"])
    for group in groups:
        for name, child in group.choices.items():
            yield f"{_heading(f'{heading} {name}')}\n"
            yield from _parser(child, f"{heading} {name}")


def _heading(command: str) -> str:
    """Return the heading of a command, below that of the command that its first words name."""
    return f"{'#' * (len(command.split()) + 1)} {command}"


def _wrapped(text: str) -> Iterator[str]:
    """Yield the lines of an epilog in the width of the page;
    a command goes on after a backslash.
    """
    for is_indented, group in groupby(
        text.rstrip().splitlines(), key=lambda line: line[:1] in ("", " ")
    ):
        if not is_indented:
            yield from textwrap.wrap(" ".join(group), _WIDTH, break_on_hyphens=False)
            continue
        for line in group:
            is_command = line.lstrip().startswith("constructs-triton")
            joined = (
                re.sub(r"(--[\w-]+) (?!-)", "\\1\0", line) if is_command else line
            )  # option and value
            parts = textwrap.wrap(
                joined, _WIDTH - 2, subsequent_indent=" " * 6, break_on_hyphens=False
            )
            end = " \\\n" if is_command else "\n"
            yield end.join(parts).replace("\0", " ")


def _arguments(parser: argparse.ArgumentParser) -> Iterator[str]:
    actions = [
        each
        for each in parser._actions
        if not isinstance(each, argparse._SubParsersAction | argparse._HelpAction)
        and each.help != argparse.SUPPRESS
        and COMMON.get(each.option_strings[-1] if each.option_strings else "") != each.help
    ]
    if actions:
        yield from (f"- {_argument(each)}: {_help(each, parser)}" for each in actions)
        yield ""


def _argument(action: argparse.Action) -> str:
    value = action.metavar if isinstance(action.metavar, str) else ""
    if not value and action.choices:
        value = "{" + ",".join(map(str, action.choices)) + "}"
    if not action.option_strings:
        return f"`{value or action.dest}`"
    if action.nargs != 0:
        value = f" {value or action.dest.upper()}"
    names = ", ".join(f"`{name}{value}`" for name in action.option_strings)
    return f"{names}, required" if action.required else names


def _help(action: argparse.Action, parser: argparse.ArgumentParser) -> str:
    text = parser._get_formatter()._expand_help(action) if action.help else ""
    return " ".join(text.split()).replace("<", "&lt;")
