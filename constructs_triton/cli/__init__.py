"""``constructs-triton``: thin commands over the package.

A command is a module with ``add_arguments(parser)`` and ``run(arguments) -> int``. Only the module of the
command that was asked for is imported, so that ``--help`` costs nothing.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType

from constructs_triton.errors import ConstructsTritonError

__all__ = ["main"]


@dataclass(frozen=True, slots=True)
class Command:
    """A command's module below ``constructs_triton.cli`` and its line in the help."""

    module: str
    summary: str

    def load(self) -> ModuleType:
        return import_module(f"{__name__}.{self.module}")


COMMANDS = {
    "check": Command("check", "check a model repository as strictly as Triton does"),
    "pack": Command("pack", "write the archives of a model repository"),
    "config": Command("config", "show a model's configuration, its tensors and an ensemble's graph"),
    "facts": Command("facts", "what AWS publishes of images, instance types and variables"),
    "models": Command("models", "list, add, remove and place the archives of a multi-model endpoint"),
    "plan": Command("plan", "instances, scaling target and cost from a measured benchmark"),
    "local": Command("local", "run a synthesized endpoint here, with the real Triton server"),
    "invoke": Command("invoke", "send tensors to an endpoint and print what comes back"),
}

DESCRIPTION = "NVIDIA Triton on Amazon SageMaker: from a folder of models to an endpoint, here or in AWS."
EXIT_FINE, EXIT_ERRORS, EXIT_USAGE, EXIT_INTERRUPTED = 0, 1, 2, 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; 0 is fine, 1 found errors, 2 was called wrongly."""
    words = list(sys.argv[1:] if argv is None else argv)
    arguments = _parser(words).parse_args(words)
    try:
        return int(COMMANDS[arguments.command].load().run(arguments))
    except ConstructsTritonError as error:
        print(f"error: {error}", file=sys.stderr)
        return EXIT_ERRORS
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # Whoever read the output has seen enough; Python would complain again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_FINE


def _parser(words: Sequence[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="constructs-triton", description=DESCRIPTION)
    parser.add_argument("--version", action="version", version=_version() if "--version" in words else "")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, command in COMMANDS.items():
        subparser = commands.add_parser(name, help=command.summary, description=command.summary)
        if name in words:
            command.load().add_arguments(subparser)
    return parser


def _version() -> str:
    from importlib.metadata import version  # noqa: PLC0415 - costs 20 ms, and only --version needs it

    return f"constructs-triton {version('constructs-triton')}"
