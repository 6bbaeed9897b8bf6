"""``constructs-triton memory``: the checker's command, for a SageMaker endpoint by default."""

from __future__ import annotations

import argparse

from triton_model_check.cli import memory

run = memory.run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    memory.add_arguments(parser, default=None)
