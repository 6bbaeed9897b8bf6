"""What commands ask before they cost money or delete, and what they recommend to do next."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.untrusted.terminal import print_note


def confirm(arguments: argparse.Namespace, question: Callable[[], str]) -> None:
    """Ask before something costs money or deletes; ``--yes`` answers the question.

    Raises:
        InvalidValueError: the answer is not yes, or standard input is not a terminal.
    """
    if arguments.yes:
        return
    print_note(f"{question()} [y/N]")
    if not sys.stdin.isatty():
        raise InvalidValueError("--yes: nothing was done, because no terminal can answer; add --yes")
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise InvalidValueError("--yes: nothing was done, because the answer was no; answer y, or add --yes")


def recommend(command: str) -> None:
    """Print the command that most people need next, on standard error as all notes."""
    print_note(f"next: constructs-triton {command}")
