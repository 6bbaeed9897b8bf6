"""``constructs-triton completion``: the script with which a shell completes commands and options."""

from __future__ import annotations

import argparse

import shtab

from constructs_triton import cli
from constructs_triton.untrusted.terminal import print_lines

__all__ = ["add_arguments", "run"]

_SHELLS = "bash", "zsh", "fish"
_EPILOG = """\
To load it in each new shell:

  bash   echo 'eval "$(constructs-triton completion bash)"' >> ~/.bashrc
  zsh    constructs-triton completion zsh > "${fpath[1]}/_constructs-triton"
  fish   constructs-triton completion fish > ~/.config/fish/completions/constructs-triton.fish
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.description = "Print a script that completes commands, options and file names with the Tab key."
    parser.epilog = _EPILOG
    parser.add_argument("shell", choices=_SHELLS, metavar="SHELL", help=f"one of {', '.join(_SHELLS)}")


def run(arguments: argparse.Namespace) -> int:
    """Print the script."""
    print_lines(*shtab.complete(cli.complete_parser(), shell=arguments.shell).splitlines())
    return 0
