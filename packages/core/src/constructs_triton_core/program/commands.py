"""The commands of a program, and what is said about words that name none of them."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from types import MappingProxyType, ModuleType
from typing import NamedTuple

from constructs_triton_core.spelling import closest, did_you_mean, quoted

#: The options of a program itself, which need no command.
OWN_OPTIONS = ("-h", "--help", "--version")
#: How other programs print their version.
_VERSION_WORDS = ("-v", "-V", "version")


class Command(NamedTuple):
    """A command of a program.

    Args:
        module: The module of the command.
        summary: Its line in the help.
        extra: What ``pip install`` adds for it to the base installation. Default: nothing.
        commands: Its own commands, as ``prices`` of ``cost``. If the word behind the command names
            one of them, it runs; other words are arguments of the command itself. Default: none.
    """

    module: str
    summary: str
    extra: str = ""
    commands: Mapping[str, Command] = MappingProxyType({})

    def load(self) -> ModuleType:
        """Import the module."""
        return import_module(self.module)


def flat(commands: Mapping[str, Command], prefix: str = "") -> Iterator[tuple[str, Command]]:
    """Yield all commands with the words that name them, each before its own commands."""
    for name, command in commands.items():
        yield f"{prefix}{name}", command
        yield from flat(command.commands, f"{prefix}{name} ")


def listed(commands: Mapping[str, Command], width: int) -> list[str]:
    """Return a line of the help for each command."""
    return [f"  {name:{width}}  {command.summary}" for name, command in commands.items()]


def _exists(path: str) -> bool:
    # Of `--help`, a tenth was the import of pathlib, which imports urllib and ipaddress.
    return os.path.exists(path)  # noqa: PTH110


def check_first_word(
    parser: argparse.ArgumentParser, commands: Mapping[str, Command], words: Sequence[str]
) -> None:
    """Report a first word that is neither a command nor an option of the program."""
    first = words[0]
    if first in commands or first in OWN_OPTIONS:
        return

    if first in _VERSION_WORDS:
        parser.error(f'argument {first}: there is no such command; did you mean "--version"?')

    # aws, kubectl and docker take options before the command, too.
    if first.startswith("-"):
        command = next((word for word in words if word in commands), None)
        if command is not None:
            parser.error(
                f"argument {first}: options follow the command; "
                f"write `{parser.prog} {command} ... {first}`"
            )
        return

    known = [name for name, _ in flat(commands)]
    hint = did_you_mean(first, known, f"choose from {quoted(commands)}")
    parser.error(f"argument COMMAND: must be one of its choices, got {first!r}; {hint}")


def check_second_word(parser: argparse.ArgumentParser, command: Command, word: str) -> None:
    """Report a misspelt command of a command. A path that exists is an argument of the command."""
    if word.startswith("-") or word in command.commands or _exists(word):
        return
    meant = closest(word, command.commands)
    if meant is not None:
        name = parser.prog.partition(" ")[2]
        parser.error(
            f"argument COMMAND: must be one of its choices, or a path that exists, got {word!r}; "
            f'did you mean "{name} {meant}"?'
        )
