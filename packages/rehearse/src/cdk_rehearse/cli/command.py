"""The command ``rehearse``: see what an update does, step by step, before it happens."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from cdk_rehearse.cli.failure_text import failure_lines
from cdk_rehearse.cli.formats import FORMATS, print_rehearsal
from cdk_rehearse.cli.progress import ShownProgress
from cdk_rehearse.cli.serve import serve
from cdk_rehearse.updates.event_kinds import KINDS
from constructs_triton_core.aws_reader import make_session
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts.limits import RangeLimit
from constructs_triton_core.program.argument_types import add_common, pair_argument, whole_number
from constructs_triton_core.program.exit_codes import EXIT_SUCCESS, EXIT_WRONG
from constructs_triton_core.program.output_formats import add_format
from constructs_triton_core.untrusted.terminal import print_lines, print_note, show_work

if TYPE_CHECKING:
    from cdk_rehearse.updates.versions import Version

__all__ = ["add_arguments", "run"]

_SHOWN = (
    "what is replaced and deleted, which data is lost, "
    "what happens if a step fails, and the way back"
)


def add_arguments(
    parser: argparse.ArgumentParser,
    *,
    shown: str = _SHOWN,
    extra: str = "",
    fleet: str = argparse.SUPPRESS,
) -> None:
    """Declare the arguments; the texts are what it shows, what it needs,
    and the help of ``--fleet``.
    """
    parser.description = (
        "Deploy OLD and then NEW in a simulated AWS account on this machine, and print the steps "
        f"in order: {shown}. Nothing is changed in AWS. {extra}The command `explain CODE` explains "
        "the code of a problem. Exit code 1 if the update has an error, 2 if OLD or NEW cannot be "
        "read or OLD cannot be deployed."
    )
    kinds = "a folder that `npx cdk synth` wrote, a template in JSON or YAML, or `none`"
    parser.add_argument("versions", metavar="OLD NEW", nargs="*", help=f"each is {kinds}")
    parser.add_argument(
        "--deployed",
        metavar="STACK",
        help="read OLD from AWS: template, parameters and drift of this stack "
        "(cloudformation:GetTemplate, DescribeStacks, DescribeStackResourceDrifts); give only NEW",
    )
    add_common(parser, "--stack", dest="stacks", default=[], action="append")
    _add_deployed_state(parser, fleet)
    parser.add_argument(
        "--failures",
        choices=("each", "none"),
        default="each",
        help="let each step fail once (default), or none",
    )
    parser.add_argument(
        "--orders",
        type=whole_number(),
        choices=(1, 2),
        default=2,
        help="orders of independent resources to try (default: 2)",
    )
    parser.add_argument(
        "--serve",
        action="store_true",
        help=(
            "rehearse nothing; run the simulated account until Ctrl-C, and print the environment "
            "variables that connect `cdk`, `aws` and boto3 to it, in --region (default: us-east-1)"
        ),
    )
    parser.add_argument(
        "--acknowledge",
        action="append",
        default=[],
        metavar="CODE[@PLACE]",
        help=(
            "do not count this problem, for example rehearse-data-lost@Orders; the place is what "
            "the report prints before it, such as a construct, logical ID or stack; repeatable"
        ),
    )
    add_common(parser, "--region", "--profile")
    add_format(parser, FORMATS)


def _add_deployed_state(parser: argparse.ArgumentParser, fleet: str) -> None:
    """Declare what neither version contains."""
    parser.add_argument(
        "--fleet",
        action="append",
        type=pair_argument("NAME=COUNT", "digits=4", whole_number(RangeLimit(0, None))),
        default=[],
        metavar="NAME=COUNT",
        help=fleet,
    )
    has_endpoints = fleet != argparse.SUPPRESS
    kinds = "; ".join(
        f"{name}={facts['subject']}: {facts['help']}"
        for name, facts in KINDS.items()
        if has_endpoints or "about" not in facts
    )
    parser.add_argument(
        "--meanwhile",
        action="append",
        default=[],
        metavar="KIND=SUBJECT",
        help=f"what happens in AWS after OLD and before NEW; repeatable. {kinds}",
    )
    parser.add_argument(
        "--parameters",
        action="append",
        type=pair_argument("NAME=VALUE", "Stage=production"),
        default=[],
        metavar="NAME=VALUE",
        help=(
            "value of a template parameter (default: that of --deployed, "
            "or of the template); repeatable"
        ),
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the rehearsal; return 1 if it found an error."""
    from cdk_rehearse import rehearse

    if arguments.serve:
        given = (arguments.versions, arguments.deployed, arguments.stacks, arguments.fleet)
        if any((*given, arguments.parameters, arguments.meanwhile)):
            raise InvalidValueError("--serve: rehearses nothing; remove OLD, NEW and their options")
        serve(as_json=arguments.output_format == "json", region=arguments.region)
    old, new = _versions(arguments)
    is_shown = arguments.output_format == "text" and arguments.output_file is None
    with show_work("deploying to a simulated account") as work:
        progress = ShownProgress(work, prints_calm=is_shown)
        found = rehearse(
            old,
            new,
            stacks=arguments.stacks,
            fleets=dict(arguments.fleet),
            failures=arguments.failures,
            orders=arguments.orders,
            parameters=dict(arguments.parameters),
            meanwhile=arguments.meanwhile,
            acknowledge=arguments.acknowledge,
            progress=progress,
        )
    if progress.is_printed and progress.calm is not None:
        print_lines(*failure_lines(found, progress.calm))
    else:
        print_rehearsal(found, arguments.output_format, arguments.output_file, calm=progress.calm)
    return EXIT_WRONG if found.errors else EXIT_SUCCESS


def _versions(arguments: argparse.Namespace) -> tuple[str | Version, str]:
    """Return OLD and NEW from the arguments; OLD is read from AWS with ``--deployed``."""
    paths = arguments.versions
    count = len(paths)
    if arguments.deployed is None:
        if count != 2:
            fix = "write both, or `none` for one that does not exist"
            raise InvalidValueError(f"OLD NEW: must be two paths, got {count}; {fix}")
        return paths[0], paths[1]
    if count != 1:
        raise InvalidValueError(
            f"NEW: must be the only path with --deployed, got {count}; write only NEW"
        )
    from cdk_rehearse.cli.deployed import read_deployed
    from cdk_rehearse.updates.versions import deployed_version

    session = make_session(arguments.region, arguments.profile)
    found = read_deployed(session, arguments.deployed)
    if found.note:
        print_note(found.note)
    old = deployed_version(arguments.deployed, found.text, found.parameters, found.drifts)
    return old, paths[0]
