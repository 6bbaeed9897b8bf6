"""``constructs-triton load-test --export-locust`` and ``--export-aiperf``: for other programs."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from constructs_triton_client import Invocation
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.program.exit_codes import EXIT_SUCCESS
from constructs_triton_core.untrusted.terminal import print_lines
from constructs_triton_core.untrusted.written_files import write_whole
from constructs_triton_tools.cli.options import is_container
from constructs_triton_tools.measuring.load_test.aiperf_template import (
    aiperf_command,
    format_aiperf_template,
)
from constructs_triton_tools.measuring.load_test.locust_file import format_locustfile

_SIGNED_URL = "http://127.0.0.1:8080"
"""Where the guide's proxy listens, which signs requests to SageMaker."""


def export_locustfile(
    arguments: argparse.Namespace, invocations: Sequence[tuple[float, Invocation]]
) -> int:
    """Write the test as a locustfile.

    Raises:
        InvalidValueError: it is a test of a container.
    """
    _refuse_container(arguments, "--export-locust")
    text = format_locustfile(
        arguments.endpoint,
        invocations,
        endpoint_url=arguments.endpoint_url,
        region=arguments.region,
    )
    write_whole(arguments.export_locust, text)
    print_lines(
        f"wrote {arguments.export_locust}; run it with `locust -f {arguments.export_locust}`"
    )
    return EXIT_SUCCESS


def export_aiperf_template(
    arguments: argparse.Namespace, invocations: Sequence[tuple[float, Invocation]]
) -> int:
    """Write the request as a template of AIPerf, and print the command that sends it.

    Of random requests it is the first.

    Raises:
        InvalidValueError: it is a test of a container, of several requests, or of chat completions.
    """
    _refuse_container(arguments, "--export-aiperf")
    if arguments.requests and len(invocations) > 1:
        raise InvalidValueError(
            f"--export-aiperf: a template is one request, and {arguments.requests} has "
            f"{len(invocations)}; give one with --input"
        )
    _, invocation = invocations[0]
    write_whole(arguments.export_aiperf, format_aiperf_template(invocation))
    command = aiperf_command(
        str(arguments.export_aiperf),
        arguments.endpoint,
        invocation,
        endpoint_url=arguments.endpoint_url or _SIGNED_URL,
    )
    print_lines(f"wrote {arguments.export_aiperf}; run it with:", command)
    if not arguments.endpoint_url:
        print_lines(
            f"AIPerf does not sign requests. {_SIGNED_URL} is a proxy that signs them: "
            "see the guide about measuring"
        )
    return EXIT_SUCCESS


def _refuse_container(arguments: argparse.Namespace, option: str) -> None:
    if is_container(arguments):
        raise InvalidValueError(f"{option}: calls InvokeEndpoint; give the name of an endpoint")
