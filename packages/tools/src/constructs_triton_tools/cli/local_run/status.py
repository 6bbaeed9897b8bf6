"""``constructs-triton local status``: show what a local run has counted of each model."""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from constructs_triton_core.facts.limits import RangeLimit
from constructs_triton_core.program.argument_types import add_common, whole_number
from constructs_triton_core.untrusted.terminal import print_json, print_lines, print_table
from constructs_triton_tools.local.model_statistics import ModelStatistics
from triton_model_check.artifacts.container_metrics import PUBLISHER

if TYPE_CHECKING:
    from constructs_triton_tools.local.endpoint import Statistics

_DEFAULT_URL = "http://127.0.0.1:8080"
_HOUR = 3600
_COLUMNS = (
    "model",
    ("requests", "right"),
    ("failed", "right"),
    ("queue ms", "right"),
    ("compute ms", "right"),
    ("batch size", "right"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``local status``."""
    add_common(parser, "--endpoint-url", help=f"URL of a local run (default: {_DEFAULT_URL})")
    parser.add_argument(
        "--seconds",
        type=whole_number(RangeLimit(1, _HOUR)),
        metavar="N",
        help="count for N seconds (default: everything since each model was loaded)",
    )
    add_common(parser, "--json")


def run(arguments: argparse.Namespace) -> int:
    """Print the figures of each model of each endpoint."""
    found = _counted(arguments.endpoint_url or _DEFAULT_URL, arguments.seconds)
    if arguments.json:
        print_json({endpoint: _as_json(servers) for endpoint, servers in found.items()})
        return 0
    for endpoint, servers in found.items():
        for name, models in servers.items():
            print_lines("", f"{endpoint}/{name}")
            print_table(_COLUMNS, _rows(models))
    return 0


def _counted(url: str, seconds: int | None) -> Statistics:
    from constructs_triton_tools.local.endpoint import read_statistics

    found = read_statistics(url)
    if seconds is None:
        return found
    time.sleep(seconds)
    return read_statistics(url, since=found)


def _as_json(servers: Mapping[str, Sequence[ModelStatistics]]) -> dict[str, Any]:
    return {name: [model.to_dict() for model in models] for name, models in servers.items()}


def _rows(models: Sequence[ModelStatistics]) -> Iterator[tuple[str, ...]]:
    models = [model for model in models if model.name != PUBLISHER]
    counts = Counter(model.name for model in models)
    for model in models:
        yield (
            f"{model.name} version {model.version}" if counts[model.name] > 1 else model.name,
            str(model.success.count),
            str(model.failure.count),
            f"{model.queue.mean_ms:.2f}",
            f"{model.mean_compute_ms:.2f}",
            f"{model.mean_batch_size:.2f}" if model.executions else "-",
        )
