"""``constructs-triton doctor completion``: the script with which a shell completes
commands and options.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path

import shtab

from constructs_triton_core.untrusted.terminal import print_lines

_SHELLS = "bash", "zsh", "fish"
_EPILOG = """\
To load it in each new shell:

  bash   echo 'eval "$(constructs-triton doctor completion bash)"' >> ~/.bashrc

  zsh    echo 'autoload -U compinit; compinit' >> ~/.zshrc
         echo 'eval "$(constructs-triton doctor completion zsh)"' >> ~/.zshrc

  fish   echo 'constructs-triton doctor completion fish | source' \\
           >> ~/.config/fish/config.fish
"""
#: The values that are paths, where the argument itself is read as a string.
_PATHS = {"BENCHMARK", "DIR", "FILE", "MODELS", "OLD NEW", "PATH", "TRAFFIC"}


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
    from constructs_triton.cli import complete_parser  # which has the table with this module

    parser = complete_parser()
    _prepare(parser)
    _nest(next(each for each in parser._actions if isinstance(each, argparse._SubParsersAction)))
    print_lines(*shtab.complete(parser, shell=arguments.shell).splitlines())
    return 0


def _prepare(parser: argparse.ArgumentParser) -> None:
    """Let the shell offer files for each path,
    and describe each command by its line in the help.
    """
    for action in parser._actions:
        if action.type is Path or action.metavar in _PATHS:
            action.complete = shtab.FILE  # type: ignore[attr-defined] # shtab's own attribute
        if isinstance(action, argparse._SubParsersAction):
            for each in action._choices_actions:
                command = action.choices[each.dest]
                command.description = each.help
                _prepare(command)


def _nest(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Put commands of two words, such as ``cost prices``, below the first,
    beside the files that it reads.
    """
    below = defaultdict[str, list[argparse.Action]](list)
    for each in [each for each in commands._choices_actions if " " in each.dest]:
        commands._choices_actions.remove(each)
        below[each.dest.partition(" ")[0]].append(each)
    for name, actions in below.items():
        parser = commands.choices[name]
        words = [each.dest.partition(" ")[2] for each in actions]
        both = f"_constructs_triton_{name}"
        define = f'{both}() {{ compgen -W "{" ".join(words)}" -- "$1"; compgen -f -- "$1"; }}'
        file = shtab.CHOICE_FUNCTIONS["file"]
        for files in [each for each in parser._actions if not each.option_strings][
            :1
        ]:  # `doctor` reads none
            files.complete = {**file, "bash": both, "preamble": {"bash": define}}  # type: ignore[attr-defined]
        nested = parser.add_subparsers()
        for word, each in zip(words, actions, strict=True):
            child = nested.add_parser(word, help=each.help)
            child.__dict__.update(commands.choices.pop(each.dest).__dict__)
