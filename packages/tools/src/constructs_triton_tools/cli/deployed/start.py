"""``constructs-triton start``: create a stopped endpoint again."""

from __future__ import annotations

import argparse
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from constructs_triton_core.program.exit_codes import EXIT_SUCCESS
from constructs_triton_tools.cli.deployed.stop import add_file_arguments, file_of
from constructs_triton_tools.cli.next_command import recommend
from constructs_triton_tools.cli.options import confirm, open_session, show
from constructs_triton_tools.operations.stopping.aws_calls import AwsCalls
from constructs_triton_tools.operations.stopping.saved_endpoint import STARTED, read_saved
from constructs_triton_tools.operations.stopping.stop import start_endpoint
from constructs_triton_tools.planning.prices import cost_per_hour

if TYPE_CHECKING:
    import boto3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.description = (
        "Create an endpoint again that `constructs-triton stop` deleted, wait until it is in "
        "service, and restore its instance counts, weights and scaling. After a failure, for "
        "example without capacity, run the same command again. The exit code is 0 only if the "
        "endpoint is in service."
    )
    add_file_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Start the endpoint, and print what is left to do."""
    session = open_session(arguments)
    aws = AwsCalls(session, arguments.timeout)
    path = file_of(arguments)
    name = arguments.endpoint
    confirm(
        arguments, lambda: f"Create endpoint {name}? It costs {_cost(session, aws, name, path)}."
    )
    notes = start_endpoint(aws, name, path, now=datetime.now(UTC))
    document = {"endpoint": name, "file": str(path), "phase": STARTED, "notes": notes}
    show(arguments, document, *notes, f"endpoint {name} is in service, with the scaling of {path}")
    recommend(f"status {name}")
    return EXIT_SUCCESS


def _cost(session: boto3.Session, aws: AwsCalls, name: str, path: Path) -> str:
    """Return what the endpoint of a file costs, with the instances that it had."""
    saved = read_saved(path)
    saved.require(path, name, aws.region)
    config = aws.require(
        "sagemaker", "describe_endpoint_config", EndpointConfigName=saved.endpoint_config
    )
    counts = {
        capacity["VariantName"]: capacity.get("DesiredInstanceCount")
        for capacity in saved.capacities["DesiredWeightsAndCapacities"]
    }
    instances: Counter[str] = Counter()
    for variant in config["ProductionVariants"]:
        count = counts.get(variant["VariantName"]) or variant.get("InitialInstanceCount", 0)
        instances[variant.get("InstanceType", "")] += count
    return cost_per_hour(session, instances)
