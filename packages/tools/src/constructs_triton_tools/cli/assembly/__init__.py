"""Commands that read what `cdk synth` wrote, without calling AWS."""

from __future__ import annotations

import argparse
from pathlib import Path

from constructs_triton_core.program.argument_types import add_common


def add_template_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the folder or template, and its stacks."""
    parser.add_argument(
        "template",
        type=Path,
        metavar="PATH",
        help="folder that `npx cdk synth` wrote, or one template",
    )
    add_common(
        parser, "--stack", action="append", help="only this CloudFormation stack; may be repeated"
    )
