"""``constructs-triton local``: run endpoints on this machine with the Triton server."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from constructs_triton_core.declared_values import declared_values
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.program.argument_types import (
    add_common,
)
from constructs_triton_core.untrusted.terminal import print_note
from constructs_triton_tools.cli.flags import add_concurrency, add_option, given
from constructs_triton_tools.cli.local_run import status
from constructs_triton_tools.local.options import PAGE_PATH, LocalRunOptions, RunOptions
from triton_model_check.cli.tensor_options import add_called_models, called_models

if TYPE_CHECKING:
    from constructs_triton_tools.local.gateway.running_endpoint import RunningEndpoint


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``local`` and its actions."""
    parser.description = "Run endpoints on this machine with the Triton server of nvidia-pytriton."
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    up = actions.add_parser(
        "up",
        help="start endpoints and serve SageMaker's runtime API on 127.0.0.1",
        description=(
            "Start the endpoints of a synthesized app, a model repository or an archive with the "
            "Triton server, and serve SageMaker's runtime API for them on 127.0.0.1. Prints how to "
            "call them. Ctrl-C stops everything, with exit code 130; "
            "SIGTERM does so with exit code 0."
        ),
    )
    _add_sources(up)
    for name in declared_values(LocalRunOptions):
        add_option(up, LocalRunOptions, name)
    _add_output_and_end(up)
    figures = actions.add_parser(
        "status",
        help=(
            "show the requests, queue time, compute time "
            "and batch size of each model of a local run"
        ),
        description=(
            "Show what the servers of a local run have counted of each model and of each step of "
            "an ensemble. Times are means of a request. "
            "Hits of the response cache are in no batch."
        ),
    )
    status.add_arguments(figures)


def _add_sources(up: argparse.ArgumentParser) -> None:
    """Declare where the endpoints come from, and which of them run."""
    up.add_argument(
        "source",
        nargs="?",
        type=Path,
        metavar="PATH",
        help="folder that `npx cdk synth` wrote, a model repository, or a .tar.gz "
        "(default: cdk.out)",
    )
    up.add_argument(
        "--aws-endpoint-url",
        metavar="URL",
        help="run the endpoints that are deployed at this AWS API, with their archives from S3",
    )
    add_common(up, "--stack")
    up.add_argument(
        "--model",
        metavar="NAME",
        help="model to serve, for a repository or an archive with several models",
    )
    up.add_argument(
        "--multi-model",
        action="store_true",
        help="serve all top-level models of a repository, or all archives of a folder; "
        "callers choose one with TargetModel",
    )
    add_called_models(up)
    up.add_argument(
        "--watch",
        action="store_true",
        help="when files below PATH change, start the endpoints again with the new files; the "
        "previous models serve until the new ones are ready",
    )


def _add_output_and_end(parser: argparse.ArgumentParser) -> None:
    """Declare what is printed, and what ends a run before Ctrl-C."""
    add_common(parser, "--json")
    parser.add_argument(
        "--until-stdin-closes",
        action="store_true",
        help="stop when standard input is closed, for programs that start this command",
    )
    parser.add_argument(
        "--verify",
        type=Path,
        metavar="FILE",
        help=(
            "send these recorded requests when the endpoint is ready, print the differences, and "
            "stop; exit code 1 if a response differs"
        ),
    )
    add_concurrency(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the endpoints until Ctrl-C or a signal, or show what a run has counted."""
    if arguments.action == "status":
        return status.run(arguments)

    from constructs_triton_tools.local.run import LocalRun

    _refuse_two_sources(arguments)
    _refuse_beside_engine(arguments)
    if arguments.uses_stand_ins is False and arguments.stand_ins:
        raise InvalidValueError(
            "--stand-in: cannot be combined with --no-stand-ins; remove one of them"
        )
    chosen = given(arguments, LocalRunOptions)
    if arguments.stand_ins:
        from constructs_triton_tools.local.stand_ins.replaced_models import find_stand_ins

        chosen["stand_ins"] = find_stand_ins(chosen["stand_ins"])
    options = RunOptions(
        source=arguments.source or Path("cdk.out"),
        aws_endpoint_url=arguments.aws_endpoint_url,
        stack=arguments.stack,
        model=arguments.model,
        is_multi_model=arguments.multi_model,
        calls=called_models(arguments),
        until_stdin_closes=arguments.until_stdin_closes,
        watches=arguments.watch,
        **chosen,
    )
    if arguments.verify is not None:
        return _run_and_verify(options, arguments.verify, arguments.concurrency)
    if arguments.concurrency != 1:
        raise InvalidValueError("--concurrency: is about --verify; add --verify FILE, or remove it")
    show = partial(_print_ready, options, as_json=arguments.json)
    try:
        LocalRun(options, _report, show).run()
    except KeyboardInterrupt:
        _report("stopped")
        raise
    _report("stopped")
    return 0


def _run_and_verify(options: RunOptions, file: Path, concurrency: int) -> int:
    from constructs_triton_tools.cli.local_run.verification import LocalVerification
    from constructs_triton_tools.local.run import LocalRun

    verification = LocalVerification(file, concurrency=concurrency)
    LocalRun(options, _report, verification.begin).run()
    return verification.exit_code


def _refuse_beside_engine(arguments: argparse.Namespace) -> None:
    """Reject options of the bundled server together with ``--engine``,
    and ``--image`` without it.
    """
    if arguments.engine is None:
        if arguments.images:
            raise InvalidValueError(
                "--image: applies to containers only; set --engine to docker or podman"
            )
        return
    for name in ("python", "tritonserver", "stand_ins", "uses_private_mounts", "allow_open_ports"):
        if getattr(arguments, name) is not None:
            flag = declared_values(LocalRunOptions)[name].option
            raise InvalidValueError(
                f"{flag}: applies to the Triton server of nvidia-pytriton only; "
                "remove it, or remove --engine"
            )


def _refuse_two_sources(arguments: argparse.Namespace) -> None:
    """Reject options of files on this machine together with ``--aws-endpoint-url``."""
    if arguments.aws_endpoint_url is None:
        return
    for name, value in (
        ("PATH", arguments.source),
        ("--model", arguments.model),
        ("--multi-model", arguments.multi_model or None),
        ("--called-models", called_models(arguments) or None),
        ("--watch", arguments.watch or None),
    ):
        if value is not None:
            raise InvalidValueError(
                f"{name}: cannot be combined with --aws-endpoint-url, "
                f"got {str(value)!r}; remove one of them"
            )


def _report(text: str) -> None:
    print_note(*text.split("\n"))


def _print_ready(
    options: RunOptions, url: str, endpoints: Sequence[RunningEndpoint], *, as_json: bool
) -> None:
    # Imported after the servers have started.
    from constructs_triton_tools.cli.local_run.ready import print_run, print_run_as_json

    page = PAGE_PATH if options.ui else None
    if as_json:
        print_run_as_json(url, endpoints, page=page)
    else:
        print_run(url, endpoints, page=page, bucket_folder=options.bucket_folder)
