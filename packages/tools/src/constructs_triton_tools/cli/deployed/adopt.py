"""``constructs-triton adopt``: write an app for an endpoint that was created by hand."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, TypedDict

from constructs_triton_core.declared_values import Value
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts.limits import RangeLimit
from constructs_triton_core.processes.children import foreign_environment, python_command, run_child
from constructs_triton_core.program.argument_types import add_common
from constructs_triton_core.program.exit_codes import EXIT_SUCCESS, EXIT_WRONG
from constructs_triton_core.untrusted.drafts import temporary_folder
from constructs_triton_core.untrusted.terminal import print_json, print_lines, print_note
from constructs_triton_tools.cli.options import add_options, open_session
from constructs_triton_tools.cli.project import shared_files
from constructs_triton_tools.operations.adopting.adopt import SWITCHES, adopt_endpoint
from constructs_triton_tools.operations.adopting.findings import Adoption, Problem
from constructs_triton_tools.operations.adopting.reading import reading_policy
from constructs_triton_tools.operations.adopting.refusals import Switch

_FILES = (
    "cdk.json",
    ".gitattributes",
    ".gitignore",
    "package.json",
    "pytest.ini",
    "requirements.txt",
    "tests/conftest.py",
)
_MIB = 1 << 20
_SYNTH_SECONDS = 600


class _Adoption(TypedDict, total=False):
    output: Annotated[Path, Value("new folder for the app", short="-o", metavar="DIR")]
    switch: Annotated[
        Switch,
        Value(
            "how the app takes the place of the endpoint: take it over by an update, import it "
            "into the stack, or create a new endpoint beside it",
            default=SWITCHES[0],
        ),
    ]
    accepted: Annotated[
        Sequence[str],
        Value(
            "accept what is not carried over, or an error of the models, by its code",
            flag="--accept",
            metavar="CODE",
        ),
    ]
    max_download: Annotated[
        int,
        Value(
            "MiB of model archives that may be downloaded; larger ones stay in S3 unchecked",
            default=1024,
            limit=RangeLimit(0, None),
            metavar="MIB",
        ),
    ]
    synthesizes: Annotated[
        bool, Value("synthesize the app to check it", default=True, flag="--no-synth")
    ]
    policy: Annotated[bool, Value("print the IAM policy that the command needs", default=False)]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.description = (
        "Write a CDK app for an endpoint that was created with boto3, the SageMaker SDK or the "
        "console: its names and numbers as they run today, its models, a snapshot test, AWS's "
        "answers and ADOPT.md, which describes the switch. AWS is only read. Secrets in variables "
        "become parameters. Exit codes: 0 written, 1 something is not carried over and not "
        "accepted, or the app does not synthesize, 2 it could not be read."
    )
    parser.add_argument("endpoint", metavar="ENDPOINT", nargs="?", help="name of the endpoint")
    add_options(parser, _Adoption)
    add_common(parser, "--region", "--profile", "--json")


def run(arguments: argparse.Namespace) -> int:
    """Write the app; return 1 if something is not carried over and not accepted."""
    if arguments.policy:
        print_json(reading_policy())
        return EXIT_SUCCESS
    for name, value in (("ENDPOINT", arguments.endpoint), ("-o", arguments.output)):
        if value is None:
            raise InvalidValueError(
                f"{name}: is required; run `constructs-triton adopt ENDPOINT -o DIR`"
            )
    adoption = adopt_endpoint(
        open_session(arguments),
        arguments.endpoint,
        arguments.output,
        files=shared_files(_FILES, arguments.endpoint.lower()),
        accepted=arguments.accepted,
        switch=arguments.switch,
        max_download_bytes=arguments.max_download * _MIB,
    )
    problems = adoption.open_problems(arguments.accepted)
    failure = "" if problems or not arguments.synthesizes else _synthesize(arguments.output)
    if arguments.json:
        written = None if problems else str(arguments.output)
        print_json({**asdict(adoption), "written": written, "synthesis_error": failure or None})
    else:
        _print(adoption, arguments.output, problems, failure)
    return EXIT_WRONG if problems or failure else EXIT_SUCCESS


def _synthesize(directory: Path) -> str:
    """Return why the app does not synthesize; nothing if it does."""
    with temporary_folder() as assembly:
        # The app imports only this package and the CDK, and its text has no code of others.
        command = python_command("import runpy; runpy.run_path('app.py', run_name='__main__')")
        environment = foreign_environment(CDK_OUTDIR=str(assembly))
        done = run_child(command, seconds=_SYNTH_SECONDS, cwd=directory, environment=environment)
    lines = done.stderr.strip().splitlines()
    errors = [
        line for line in lines if line.startswith("ERROR ")
    ]  # of the CDK; its report is deleted
    if done.returncode and errors:
        return "\n".join(errors)
    start = next(
        (n for n, line in enumerate(lines) if line.startswith("constructs_triton")), len(lines) - 1
    )
    return "" if done.returncode == 0 else "\n".join(lines[start:])


def _print(adoption: Adoption, directory: Path, problems: Sequence[Problem], failure: str) -> None:
    if problems:
        lines = [f"  [{problem.code}] {problem.message}" for problem in problems]
        print_note(f"endpoint {adoption.name}: nothing was written", *lines, _way_out(problems))
        return
    print_lines(
        f"{directory}/app.py: endpoint {adoption.name}",
        f"  carried over: {len(adoption.carried)}, different on purpose: "
        f"{len(adoption.differences)}, not readable: {len(adoption.not_read)}, secrets as "
        f"parameters: {len(adoption.parameters)}",
        f"  {directory}/ADOPT.md lists them, and has the steps of the switch",
    )
    if failure:
        print_note(f"{directory}/app.py does not synthesize:", *failure.splitlines())


def _way_out(problems: Sequence[Problem]) -> str:
    if any(problem.is_final for problem in problems):
        return "--accept does not help here; do what the messages say, and run the command again"
    codes = dict.fromkeys(problem.code for problem in problems)
    return f"to write the app without this, add {' '.join(f'--accept {code}' for code in codes)}"
