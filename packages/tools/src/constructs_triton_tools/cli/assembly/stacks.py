"""The stacks of a folder that ``cdk synth`` wrote, or of one template."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from constructs_triton_core.cloud_assembly.assembly import Assembly
from constructs_triton_core.cloud_assembly.synthesized_stack import SynthesizedStack
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.program.argument_types import add_common
from constructs_triton_core.spelling import did_you_mean, quoted


def add_template_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the folder or template, and its stacks."""
    parser.add_argument(
        "template", type=Path, metavar="PATH", help="folder that `npx cdk synth` wrote, or one template"
    )
    add_common(parser, "--stack", action="append", help="only this CloudFormation stack; may be repeated")


def read_stacks(path: Path, wanted: Sequence[str] | None) -> list[SynthesizedStack]:
    """Return the stacks with the wanted names, or all.

    Raises:
        InvalidValueError: there is no stack with a name.
        TemplateError: the folder or the template cannot be read.
    """
    stacks = list(Assembly(path).all_stacks()) if path.is_dir() else [SynthesizedStack.read(path)]
    known = {name: each for each in stacks for name in (*each.names, each.name)}
    for name in wanted or ():
        if name not in known:
            hint = did_you_mean(name, known, f"use one of {quoted(sorted(known))}")
            raise InvalidValueError(f'--stack: no stack "{name}" in {path}; {hint}')
    return [known[name] for name in wanted] if wanted else stacks
