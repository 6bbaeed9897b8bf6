"""``constructs-triton rehearse``: the command of cdk-rehearse, with its option for endpoints."""

from __future__ import annotations

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments, which are those of cdk-rehearse."""
    from cdk_rehearse.cli import command  # noqa: PLC0415 - an extra installs it

    command.add_arguments(
        parser,
        shown=(
            "what serves, who may read which model, what happens if a step fails, and the way back"
        ),
        extra="It needs the extra \"rehearse\": pip install 'constructs-triton[rehearse]'. ",
        fleet=(
            "instances of each variant of the endpoint with this name or logical ID before the "
            "update (default: the maximum of its scaling); repeatable"
        ),
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the rehearsal; return 1 if it found an error."""
    from cdk_rehearse.cli import command  # noqa: PLC0415 - an extra installs it

    return command.run(arguments)
