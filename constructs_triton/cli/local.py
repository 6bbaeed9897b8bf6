"""``constructs-triton local up``: run endpoints on this machine with the Triton server."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from constructs_triton.errors import InvalidValueError
from constructs_triton.local.call_example import call_example, invocation_url
from constructs_triton.local.stand_ins.substitutes import read_substitutes

if TYPE_CHECKING:
    from constructs_triton.local.gateway.inference_components import LocalComponent
    from constructs_triton.local.gateway.running_endpoint import RunningEndpoint
    from constructs_triton.local.run import RunOptions
    from constructs_triton.local.sources.specs import ContainerSpec

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``local`` and its only action, ``up``."""
    parser.description = "Run endpoints on this machine with the Triton server of nvidia-pytriton."
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    up = actions.add_parser(
        "up",
        help="start endpoints and serve SageMaker's runtime API on 127.0.0.1",
        description="Start the endpoints of a synthesized app, a model repository or an archive with the "
        "Triton server, and serve SageMaker's runtime API for them on 127.0.0.1. Prints how to call them. "
        "Ctrl-C stops everything.",
    )
    _add_sources(up)
    _add_server(up)
    _add_limits(up)
    # fmt: off
    up.add_argument("--bucket-folder", type=Path, metavar="DIR",
                    help="folder in place of S3, with a subfolder per bucket, for asynchronous endpoints and "
                         "archives of multi-model endpoints")
    up.add_argument("--json", action="store_true",
                    help="print one line of JSON instead of text when the endpoints are ready")
    # fmt: on
    _add_containers(up)
    _add_endings(up)


def _add_sources(up: argparse.ArgumentParser) -> None:
    """Declare where the endpoints come from, and which of them run."""
    # fmt: off
    up.add_argument("source", nargs="?", type=Path, metavar="PATH",
                    help="folder that `npx cdk synth` wrote, a model repository, or a .tar.gz "
                         "(default: cdk.out)")
    up.add_argument("--aws-endpoint-url", metavar="URL",
                    help="run the endpoints that are deployed at this AWS API, with their archives from S3")
    up.add_argument("--stack", metavar="NAME", help="run only the endpoints of this stack")
    up.add_argument("--endpoint", metavar="NAME",
                    help="run only this endpoint; for a repository or an archive, the endpoint's name")
    up.add_argument("--model", metavar="NAME",
                    help="model to serve, for a repository or an archive with several models")
    up.add_argument("--multi-model", action="store_true",
                    help="serve all top-level models of a repository, or all archives of a folder; "
                         "callers choose one with TargetModel")
    # fmt: on


def _add_server(up: argparse.ArgumentParser) -> None:
    """Declare the address, and the programs and files that the models run with."""
    # fmt: off
    up.add_argument("--port", type=_port, default=8080, metavar="PORT",
                    help="port on 127.0.0.1, 0 for any free port (default: 8080)")
    up.add_argument("--python", type=Path, metavar="PATH",
                    help="Python that runs the models, with their packages and NumPy below 2 "
                         "(default: this one)")
    up.add_argument("--tritonserver", type=Path, metavar="PATH",
                    help="tritonserver executable to use instead of the one of nvidia-pytriton, "
                         "for example for other backends")
    up.add_argument("--watch", action="store_true",
                    help="when files below PATH change, start the endpoints again with the new files; the "
                         "previous models serve until the new ones are ready")
    up.add_argument("--substitute", action="append", default=[], metavar="NAME=PATH",
                    help="run an ONNX file, or a folder with a Python model.py, in the place of the model "
                         "NAME, for example of a TensorRT plan; ARCHIVE.tar.gz/NAME chooses the "
                         "archive of a multi-model endpoint; may be repeated")
    up.add_argument("--no-stand-ins", action="store_true",
                    help="refuse models whose backend the server does not have, instead of running them "
                         "with the framework's Python package")
    # fmt: on


def _add_limits(up: argparse.ArgumentParser) -> None:
    """Declare the memory, and how long starting and answering may take."""
    # fmt: off
    up.add_argument("--memory-limit", type=_mebibytes, metavar="MIB",
                    help="memory of each multi-model endpoint in MiB; above it, the least recently used "
                         "model is unloaded (default: 70 percent of the free memory, shared equally)")
    up.add_argument("--startup-timeout", type=_seconds, metavar="SECONDS",
                    help="how long a server may take to start (default: the template's timeout, else 120; "
                         "with --engine 480)")
    up.add_argument("--invocation-timeout", type=_seconds, default=60.0, metavar="SECONDS",
                    help="how long a container may take to answer (default: 60, as on SageMaker)")
    up.add_argument("--wake-delay", type=_seconds_or_zero, default=5.0, metavar="SECONDS",
                    help="how long an inference component whose scaling starts at zero copies has no "
                         "capacity after its first call; 0 for not at all (default: 5; in AWS minutes)")
    # fmt: on


def _add_containers(up: argparse.ArgumentParser) -> None:
    """Declare what runs a container, and how it is kept apart from this machine."""
    # fmt: off
    up.add_argument("--engine", choices=("docker", "podman"),
                    help="run the template's images in containers instead of the Triton server of "
                         "nvidia-pytriton; needs no Linux")
    up.add_argument("--image", type=_image, action="append", default=[], metavar="NAME=IMAGE", dest="images",
                    help="with --engine, the image for an endpoint, for ENDPOINT/VARIANT, for "
                         "ENDPOINT/COMPONENT, or in place of another image; may be repeated")
    up.add_argument("--no-private-mounts", action="store_true",
                    help="do not mount each server's models at /opt/ml")
    up.add_argument("--allow-open-ports", action="store_true",
                    help="if the platform has no private addresses, let the servers listen on all network "
                         "interfaces; anyone who can reach the machine can then load code into them")
    # fmt: on


def _add_endings(parser: argparse.ArgumentParser) -> None:
    """Declare what ends a run before Ctrl-C."""
    parser.add_argument(
        "--until-stdin-closes",
        action="store_true",
        help="stop when standard input is closed, for programs that start this command",
    )
    parser.add_argument(
        "--verify",
        type=Path,
        metavar="FILE",
        help="send these recorded requests when the endpoint is ready, print the differences, and stop; "
        "exit code 1 if a response differs",
    )


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"must be a port from 1 to 65535, or 0 for a free one, got {text!r}")
    return int(text)


def _mebibytes(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"must be a whole number of MiB above 0, got {text!r}")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise argparse.ArgumentTypeError(f"must be a number of seconds above 0, got {text!r}")
    return seconds


def _seconds_or_zero(text: str) -> float:
    return 0.0 if text in ("0", "0.0") else _seconds(text)


def run(arguments: argparse.Namespace) -> int:
    """Run the endpoints until the command is interrupted."""
    from constructs_triton.local.run import LocalRun, RunOptions

    _refuse_two_sources(arguments)
    _refuse_beside_engine(arguments)
    if arguments.no_stand_ins and arguments.substitute:
        raise InvalidValueError("--substitute: cannot be combined with --no-stand-ins; remove one of them")
    options = RunOptions(
        source=arguments.source or Path("cdk.out"),
        aws_endpoint_url=arguments.aws_endpoint_url,
        stack=arguments.stack,
        endpoint=arguments.endpoint,
        model=arguments.model,
        is_multi_model=arguments.multi_model,
        port=arguments.port,
        python=arguments.python,
        tritonserver=arguments.tritonserver,
        memory_limit_bytes=arguments.memory_limit * 2**20 if arguments.memory_limit else None,
        startup_timeout_seconds=arguments.startup_timeout,
        invocation_timeout_seconds=arguments.invocation_timeout,
        wake_seconds=arguments.wake_delay,
        bucket_folder=arguments.bucket_folder,
        uses_private_mounts=not arguments.no_private_mounts,
        allows_open_ports=arguments.allow_open_ports,
        until_stdin_closes=arguments.until_stdin_closes,
        watches=arguments.watch,
        uses_stand_ins=not arguments.no_stand_ins,
        substitutes=read_substitutes(arguments.substitute),
        engine=arguments.engine,
        images=dict(arguments.images),
    )
    if arguments.verify is not None:
        return _run_and_verify(options, arguments.verify)
    LocalRun(options, _report, _print_json if arguments.json else _print_ready).run()
    return 0


def _run_and_verify(options: RunOptions, file: Path) -> int:
    from constructs_triton.cli.local_verification import LocalVerification
    from constructs_triton.local.run import LocalRun

    verification = LocalVerification(file)
    LocalRun(options, _report, verification.begin).run()
    return 0 if verification.is_equal else 1


def _image(text: str) -> tuple[str, str]:
    name, _, image = text.partition("=")
    if not name or not image:
        raise argparse.ArgumentTypeError(f"must be NAME=IMAGE, got {text!r}")
    return name, image


def _refuse_beside_engine(arguments: argparse.Namespace) -> None:
    """Reject options of the bundled server together with ``--engine``, and ``--image`` without it."""
    if arguments.engine is None:
        if arguments.images:
            raise InvalidValueError("--image: applies to containers only; set --engine to docker or podman")
        return
    for name, is_given in (
        ("--python", arguments.python),
        ("--tritonserver", arguments.tritonserver),
        ("--substitute", arguments.substitute),
        ("--no-private-mounts", arguments.no_private_mounts),
        ("--allow-open-ports", arguments.allow_open_ports),
    ):
        if is_given:
            raise InvalidValueError(
                f"{name}: applies to the Triton server of nvidia-pytriton only; remove it, or remove --engine"
            )


def _refuse_two_sources(arguments: argparse.Namespace) -> None:
    """Reject options of a synthesized app together with ``--aws-endpoint-url``."""
    if arguments.aws_endpoint_url is None:
        return
    for name, value in (
        ("PATH", arguments.source),
        ("--stack", arguments.stack),
        ("--model", arguments.model),
        ("--multi-model", arguments.multi_model or None),
        ("--watch", arguments.watch or None),
    ):
        if value is not None:
            raise InvalidValueError(
                f"{name}: cannot be combined with --aws-endpoint-url, got {str(value)!r}; remove one of them"
            )


def _report(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _print_json(url: str, endpoints: Sequence[RunningEndpoint]) -> None:
    print(json.dumps({"url": url, "endpoints": [_describe(endpoint) for endpoint in endpoints]}), flush=True)


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
                "model_directory": str(variant.multi_model.prefix) if variant.multi_model else None,
                **variant.server.identity(),
                "log": str(variant.server.log),
            }
            for name, variant in endpoint.variants.items()
        },
    }


def _print_ready(url: str, endpoints: Sequence[RunningEndpoint]) -> None:
    for endpoint in endpoints:
        print(f"\n{endpoint.spec.name}  {invocation_url(url, endpoint)}")
        targets = [line for name in endpoint.variants for line in _variant_lines(name, endpoint)]
        components = [_component_line(each) for each in endpoint.components.values()]
        print("\n".join([*targets, *components]))
        print(call_example(url, endpoint))
    print("ready (press Ctrl-C to stop)", flush=True)


def _variant_lines(name: str, endpoint: RunningEndpoint) -> list[str]:
    variant = endpoint.variants[name]
    container = variant.spec.container
    if variant.multi_model is None:
        return [f"  variant {name}: {_model_of(container)}"]
    models = ", ".join(sorted(container.archives)) or "no archives yet"
    if container.fetch_archive is not None:
        return [
            f"  variant {name}: the archives below {container.model_data_url}, downloaded on the first call"
        ]
    return [
        f"  variant {name}: {models}",
        f"  archives that you copy into {variant.multi_model.prefix} can be called at once",
    ]


def _component_line(component: LocalComponent) -> str:
    start = "; starts at zero copies, its first call wakes it" if component.copies.are_zero else ""
    return f"  inference component {component.spec.name}: {_model_of(component.spec.container)}{start}"


def _model_of(container: ContainerSpec) -> str:
    return container.environment.get("SAGEMAKER_TRITON_DEFAULT_MODEL_NAME", "the archive's only model")
