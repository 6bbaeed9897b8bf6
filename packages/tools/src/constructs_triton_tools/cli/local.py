"""``constructs-triton local``: run endpoints on this machine with the Triton server."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from constructs_triton_core.declared_values import declared_values
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.model_index import ModelIndex, some_of
from constructs_triton_core.program.argument_types import (
    add_common,
)
from constructs_triton_core.untrusted.terminal import print_json, print_lines, print_note
from constructs_triton_tools.cli.flags import add_option, given
from constructs_triton_tools.cli.local_run import status
from constructs_triton_tools.cli.verify import add_concurrency
from constructs_triton_tools.local.call_example import call_example, index_url, invocation_url
from constructs_triton_tools.local.gateway.model_names import list_command
from constructs_triton_tools.local.options import PAGE_PATH, LocalRunOptions, RunOptions
from constructs_triton_tools.local.stand_ins.replaced_models import find_stand_ins
from triton_model_check.cli.tensor_options import add_called_models, called_models

if TYPE_CHECKING:
    from constructs_triton_tools.local.gateway.inference_components import LocalComponent
    from constructs_triton_tools.local.gateway.multi_model import MultiModelContainer
    from constructs_triton_tools.local.gateway.running_endpoint import RunningEndpoint
    from constructs_triton_tools.local.sources.specs import ContainerSpec


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
    chosen["stand_ins"] = find_stand_ins(chosen.get("stand_ins", {}))
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
    page = PAGE_PATH if options.ui else None
    show = partial(_print_json, page=page)
    if not arguments.json:
        show = partial(_print_ready, page=page, bucket_folder=options.bucket_folder)
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


def _print_json(url: str, endpoints: Sequence[RunningEndpoint], *, page: str | None = None) -> None:
    address = {} if page is None else {"page": f"{url}{page}"}
    described = [_describe(endpoint) for endpoint in endpoints]
    print_json({"url": url, **address, "endpoints": described}, indent=None)


def _describe(endpoint: RunningEndpoint) -> dict[str, object]:
    return {
        "name": endpoint.spec.name,
        "stack": endpoint.spec.stack,
        "inference_components": {
            name: {
                "variant": component.invoked_variant,
                "starts_at_zero": component.spec.starts_at_zero,
                **component.server.identity(),
                "log": str(component.server.log),
            }
            for name, component in endpoint.components.items()
        },
        "variants": {
            name: {
                "target_models": sorted(variant.spec.container.archives),
                "model_directory": str(variant.multi_model.folder) if variant.multi_model else None,
                **variant.server.identity(),
                "log": str(variant.server.log),
            }
            for name, variant in endpoint.variants.items()
        },
    }


def _print_ready(
    url: str,
    endpoints: Sequence[RunningEndpoint],
    *,
    page: str | None = None,
    bucket_folder: Path | None = None,
) -> None:
    regions: set[str] = set()
    for endpoint in endpoints:
        print_lines("", f"{endpoint.spec.name}  {invocation_url(url, endpoint)}")
        for name in endpoint.variants:
            print_lines(*_variant_lines(url, name, endpoint))
        print_lines(*(_component_line(component) for component in endpoint.components.values()))

        # The calls of further endpoints in a Region have the same client.
        is_first = endpoint.spec.region not in regions
        example = call_example(url, endpoint, bucket_folder, has_client=is_first)
        print_lines(*example.split("\n"))
        regions.add(endpoint.spec.region)
    if page is not None:
        print_lines(f"look at it: {url}{page}", "")
    print_lines("ready (press Ctrl-C to stop)")


def _variant_lines(url: str, name: str, endpoint: RunningEndpoint) -> list[str]:
    variant = endpoint.variants[name]
    container = variant.spec.container
    if variant.multi_model is None:
        return [f"  variant {name}: {_model_of(container)}"]
    models = _models_of(variant.multi_model, index_url(url, endpoint))
    if container.fetch_archive is not None:
        archives = f"the archives below {container.model_data_url}, downloaded on the first call"
        if not models:
            return [f"  variant {name}: {archives}"]
        return [f"  variant {name}: {models}", f"  {archives}"]
    return [
        f"  variant {name}: {models or 'no archives yet'}",
        f"  archives that you copy into {variant.multi_model.folder} can be called immediately",
    ]


def _models_of(container: MultiModelContainer, url: str) -> str:
    """Return how many models or archives there are, and a few of them,
    as there may be thousands.
    """
    index = container.index()
    if index is not None and index.target_models:
        named = ModelIndex(index.target_models, url)
        return (
            f"{_counted(len(named.target_models), 'model')} by name: "
            f"{some_of(named.target_models, named.listing)}"
        )
    archives = container.archive_names()
    if not archives:
        return ""
    shown = some_of(archives, list_command(container.folder))
    return f"{_counted(len(archives), 'archive')}: {shown}"


def _counted(count: int, word: str) -> str:
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"


def _component_line(component: LocalComponent) -> str:
    start = "; starts at zero copies, its first call wakes it" if component.copies.are_zero else ""
    return (
        f"  inference component {component.spec.name}: {_model_of(component.spec.container)}{start}"
    )


def _model_of(container: ContainerSpec) -> str:
    return container.environment.get(
        "SAGEMAKER_TRITON_DEFAULT_MODEL_NAME", "the archive's only model"
    )
