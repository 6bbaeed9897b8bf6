"""What a load test measures, and whether it is safe to send load to it."""

from __future__ import annotations

import argparse
from typing import Any
from urllib.parse import urlsplit

from constructs_triton_client.transports.sagemaker_transport import LOOPBACK_HOSTS
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.untrusted.terminal import print_lines, print_note
from constructs_triton_tools.cli.options import confirm, is_container, open_session
from constructs_triton_tools.measuring.load_test.results_file import BenchmarkMetadata
from constructs_triton_tools.measuring.load_test.target import describe_target, find_stand_ins
from constructs_triton_tools.planning.csv_table import parse_measured_type
from constructs_triton_tools.planning.prices import cost_per_hour


def describe_test(arguments: argparse.Namespace, transport: Any) -> BenchmarkMetadata:
    """Check that the test is safe, and name what it measures.

    Raises:
        InvalidValueError: the load would reach others, or scaling would change the instances
            during the test.
    """
    url = arguments.endpoint if is_container(arguments) else arguments.endpoint_url
    type_ = "local"
    source = "local"
    count = 1
    if not _is_on_this_machine(url):
        type_, source, count = _describe(arguments, transport, url)
    if arguments.instance_type:
        type_ = parse_measured_type("--instance-type", arguments.instance_type)
        source = "given"
    return BenchmarkMetadata(
        configuration=arguments.configuration or _name(arguments),
        instance_type=type_,
        instance_type_source=source,
        instance_count=arguments.instances or count,
    )


def _name(arguments: argparse.Namespace) -> str:
    name = urlsplit(arguments.endpoint).netloc or arguments.endpoint
    return "/".join(filter(None, [name, arguments.target_variant]))


def _describe(
    arguments: argparse.Namespace, transport: Any, url: str | None
) -> tuple[str, str, int]:
    if url is not None:
        confirm(
            arguments,
            lambda: f"Send load to {url}, which may cost money and disturb other callers?",
        )
        return _unknown(arguments)

    target = describe_target(transport, variant=arguments.target_variant)
    for note in target.notes:
        print_note(f"warning: {note}")
    if target.is_scaled and not arguments.allow_scaling:
        raise InvalidValueError(
            f"{arguments.endpoint}: Application Auto Scaling may change the instance count during "
            "the test; suspend it (`count.suspend()` in the app), or add --allow-scaling"
        )
    type_ = target.instance_type
    count = target.instance_count
    confirm(arguments, lambda: _question(arguments, {type_: count} if type_ and count else {}))
    return _unknown(arguments) if type_ is None or count is None else (type_, "endpoint", count)


def _question(arguments: argparse.Namespace, instances: dict[str, int]) -> str:
    cost = cost_per_hour(open_session(arguments), instances)
    return (
        f"Send load to {arguments.endpoint}, "
        f"whose instances cost {cost}? It may disturb other callers."
    )


def _unknown(arguments: argparse.Namespace) -> tuple[str, str, int]:
    if arguments.output and not (arguments.instance_type and arguments.instances):
        raise InvalidValueError(
            f"{arguments.endpoint}: its instances are unknown; set --instance-type and --instances"
        )
    return "local", "given", 1


def find_measured_stand_ins(arguments: argparse.Namespace) -> dict[str, str]:
    """Return the models of a local run that stand-ins run, and print first what this means."""
    if is_container(arguments) or not _is_on_this_machine(arguments.endpoint_url):
        return {}
    server = arguments.inference_component or arguments.target_variant
    found = find_stand_ins(arguments.endpoint_url, arguments.endpoint, variant=server)
    if found and not arguments.json:
        what = ", ".join(f"{model} ({stand_in})" for model, stand_in in sorted(found.items()))
        print_lines(
            f"stand-ins run {what}: these figures are theirs and not those of the models' "
            "backends. Do not size instances with them; measure in AWS, "
            "or with `local up --engine docker`"
        )
    return found


def _is_on_this_machine(url: str | None) -> bool:
    return url is not None and urlsplit(url).hostname in LOOPBACK_HOSTS
