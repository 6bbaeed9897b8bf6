"""``constructs-triton completion``: the script with which a shell asks for completions, and the
answers.

The script runs ``constructs-triton`` with ``_ARGCOMPLETE`` in its environment whenever the Tab key
is pressed, so the answers are those of the installed version.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import argcomplete
from argcomplete.completers import BaseCompleter, FilesCompleter
from argcomplete.lexers import split_line
from argcomplete.shell_integration import shellcode

from constructs_triton_core.errors import ConstructsTritonError
from constructs_triton_core.program.program import Command, Program, WrongArgumentsError
from constructs_triton_core.untrusted.terminal import print_lines

_SHELLS = "bash", "zsh", "fish"
_EPILOG = """\
To load it in each new shell:

  bash   echo 'eval "$(constructs-triton completion bash)"' >> ~/.bashrc

  zsh    echo 'autoload -U compinit; compinit' >> ~/.zshrc
         echo 'eval "$(constructs-triton completion zsh)"' >> ~/.zshrc

  fish   echo 'constructs-triton completion fish | source' \\
           >> ~/.config/fish/config.fish
"""
#: The values that are paths, where the argument itself is read as a string.
_PATHS = {"BENCHMARK", "DIR", "FILE", "MODELS", "NEW", "OLD", "OLD NEW", "PATH", "TRAFFIC"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.description = (
        "Print a script that completes commands, options and file names with the Tab key."
    )
    parser.epilog = _EPILOG
    parser.add_argument(
        "shell", choices=_SHELLS, metavar="SHELL", help=f"one of {', '.join(_SHELLS)}"
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the script."""
    # Without its defaults, bash offers files where the value of an option is no path.
    script = shellcode(["constructs-triton"], use_defaults=False, shell=arguments.shell)
    print_lines(*script.splitlines())
    return 0


def complete(program: Program) -> None:
    """Print the completions of the command line in the environment, and end the process."""
    line = os.environ["COMP_LINE"][: int(os.environ["COMP_POINT"])]
    _, _, _, (_, *words), _ = split_line(line)
    if words and words[0] not in program.commands:
        return

    # A shell has no place for an error, such as that of a misspelt command: it offers nothing.
    with suppress(ConstructsTritonError, WrongArgumentsError):
        argcomplete.autocomplete(
            program.parser(words),
            always_complete_options="long",
            default_completer=_ValueCompleter(_own_commands(program, words)),
        )


def _own_commands(program: Program, words: Sequence[str]) -> Mapping[str, Command]:
    """Return the commands that the next word may name beside the arguments of a command, as
    ``prices`` after ``cost``.
    """
    command = program.commands.get(" ".join(words))
    return command.commands if command else {}


class _ValueCompleter(BaseCompleter):
    """Completes the values of arguments that are not one of a few choices."""

    def __init__(self, commands: Mapping[str, Command]) -> None:
        self._commands = commands

    def __call__(self, prefix: str, action: argparse.Action, **_: object) -> Mapping[str, str]:
        """Return the values, each with its description."""
        values: dict[str, str] = {}
        if not action.option_strings:
            values |= {name: command.summary for name, command in self._commands.items()}
        if action.type is Path or action.metavar in _PATHS:
            values |= dict.fromkeys(FilesCompleter()(prefix), "")
        return values
