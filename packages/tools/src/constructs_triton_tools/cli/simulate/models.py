"""``constructs-triton simulate models``: simulate how many models a multi-model
endpoint keeps loaded.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypedDict

from constructs_triton_core.declared_values import Value
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts.instance_types import InstanceType
from constructs_triton_core.facts.limits import RangeLimit
from constructs_triton_core.program.argument_types import add_common
from constructs_triton_core.program.exit_codes import EXIT_SUCCESS, EXIT_WRONG
from constructs_triton_core.untrusted.terminal import (
    print_json,
    print_lines,
    print_note,
    print_table,
)
from constructs_triton_tools.cli.options import add_options, add_price_arguments
from constructs_triton_tools.planning.prices import HOURS_PER_MONTH, given_prices

if TYPE_CHECKING:
    from constructs_triton_tools.planning.model_cache import CachedModel, CacheResult

_COLUMNS = (
    ("instances", "right"),
    ("models\nloaded", "right"),
    ("hit rate", "right"),
    ("p50 ms", "right"),
    ("p95 ms", "right"),
    ("p99 ms", "right"),
    ("cold p50\nms", "right"),
    ("loads per\nminute", "right"),
    ("cost\nper month", "right"),
)


class _Fleet(TypedDict):
    instance_type: Annotated[str, Value("for example ml.g5.xlarge", metavar="TYPE")]
    requests_per_second: Annotated[
        float,
        Value("requests to all models together", limit=RangeLimit(0.000001, 1e6), metavar="N"),
    ]


class _Simulated(_Fleet, total=False):
    load_seconds: Annotated[
        float,
        Value(
            "for a folder of models: seconds from the first request of a model until it answers, "
            "with its download",
            limit=RangeLimit(0.001, 3600),
            metavar="SECONDS",
        ),
    ]
    zipf: Annotated[
        float,
        Value(
            "popularity by Zipf's law with this exponent, in the order of the file, in place of "
            "requests_per_minute; 1 is common, 0 is equal",
            limit=RangeLimit(0, 10),
            metavar="S",
        ),
    ]
    memory_fraction: Annotated[
        float,
        Value(
            "part of the memory that models may use",
            default=0.9,
            limit=RangeLimit(0.01, 1),
            metavar="FRACTION",
        ),
    ]
    hit_rate: Annotated[
        float,
        Value(
            "wanted share of requests that find their model loaded",
            default=0.99,
            limit=RangeLimit(0, 1),
            metavar="FRACTION",
        ),
    ]
    max_instances: Annotated[
        int,
        Value(
            "largest number of instances to try", default=20, limit=RangeLimit(1, 100), metavar="N"
        ),
    ]
    seed: Annotated[int, Value("seed of the random requests", default=0, metavar="N")]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.description = (
        "Simulate which models of a multi-model endpoint stay loaded on one, two, three and more "
        "instances, until --hit-rate is reached. Prints the share of requests that find their "
        "model loaded, the latency and the cost. AWS describes the order in which SageMaker "
        "unloads models as similar to least recently used; the simulation uses this order. Exit "
        "code 1 if --max-instances are too few."
    )
    parser.add_argument(
        "models",
        metavar="MODELS",
        help=(
            "CSV file with the columns model, memory_mib, load_seconds, and optionally count "
            "(models like this one), requests_per_minute (of each) and latency_ms; or a folder of "
            "models, whose weights are counted as `constructs-triton memory` does"
        ),
    )
    add_options(parser, _Simulated)
    add_price_arguments(parser)
    add_common(parser, "--json")


def run(arguments: argparse.Namespace) -> int:
    """Print a row for each number of instances; return 1 if the hit rate is not reached."""
    instance_type = InstanceType.of(arguments.instance_type)
    prices = given_prices(arguments.price, arguments.prices)
    price = prices.get(instance_type.name)
    models, memory_mib, kind = _models(arguments, instance_type)
    results = list(_simulated(models, memory_mib, arguments))
    reached = results[-1].hit_rate >= arguments.hit_rate
    if arguments.json:
        rows = [{**asdict(result), "cost_per_month": _cost(result, price)} for result in results]
        currency = prices.currency or None
        print_json(
            {"memory_mib": memory_mib, "models": len(models), "currency": currency, "results": rows}
        )
    else:
        print_lines(
            f"{len(models):,} models; {memory_mib:,.0f} MiB of {kind} for models on each instance"
        )
        chosen = len(results) - 1 if reached else None
        print_table(_COLUMNS, [_row(result, price) for result in results], highlighted=chosen)
        if price is not None:
            print_note(*(prices.notes or [f"Costs are in {prices.currency}."]))
    if not reached:
        print_note(
            f"the hit rate stays below {arguments.hit_rate:g}; use a larger type or --max-instances"
        )
    return EXIT_SUCCESS if reached else EXIT_WRONG


def _models(
    arguments: argparse.Namespace, instance_type: InstanceType
) -> tuple[list[CachedModel], float, str]:
    """Return the models of the file or folder, the MiB for them, and of what memory."""
    from constructs_triton_tools.planning.model_cache import models_of_repository, read_models

    path = Path(arguments.models)
    if not path.is_dir():
        memory_mib = _memory_mib(instance_type) * arguments.memory_fraction
        kind = "GPU memory" if instance_type.gpus else "memory"
        return read_models(path, zipf=arguments.zipf), memory_mib, kind
    if arguments.load_seconds is None:
        raise InvalidValueError(
            f"{path}: a folder does not say how long a load takes; add --load-seconds SECONDS, "
            "which CloudWatch has as ModelDownloadingTime and ModelLoadingTime"
        )
    found = models_of_repository(
        path,
        instance_type,
        arguments.load_seconds,
        memory_fraction=arguments.memory_fraction,
        zipf=arguments.zipf,
    )
    return found.models, found.memory_mib, f"memory of {found.place}"


def _memory_mib(instance_type: InstanceType) -> float:
    """Return the memory that a loaded model uses: that of one GPU,
    since a model is loaded on every GPU.
    """
    if instance_type.gpus and instance_type.gpu_memory_mib is not None:
        return instance_type.gpu_memory_mib
    if instance_type.memory_gib is not None:
        return instance_type.memory_gib * 1024
    raise InvalidValueError(
        f"--instance-type: the memory of {instance_type.name} is not known; use a type that "
        "`constructs-triton facts instance-types` lists"
    )


def _simulated(
    models: Sequence[CachedModel], memory_mib: float, arguments: argparse.Namespace
) -> Iterator[CacheResult]:
    from constructs_triton_tools.planning.model_cache import simulate_cache

    for instances in range(1, arguments.max_instances + 1):
        result = simulate_cache(
            models,
            memory_mib=memory_mib,
            instances=instances,
            requests_per_second=arguments.requests_per_second,
            seed=arguments.seed,
        )
        yield result
        if result.hit_rate >= arguments.hit_rate:
            return


def _row(result: CacheResult, price: Decimal | None) -> list[str]:
    cost = _cost(result, price)
    cold = result.cold_latency_ms
    return [
        str(result.instances),
        f"{result.loaded:,.0f}",
        f"{result.hit_rate:.3f}",
        *(f"{result.latency_ms[percent]:,.0f}" for percent in (50, 95, 99)),
        "" if cold is None else f"{cold:,.0f}",
        f"{result.loads_per_minute:,.1f}",
        "" if cost is None else f"{cost:,.2f}",
    ]


def _cost(result: CacheResult, price: Decimal | None) -> float | None:
    return None if price is None else float(price * result.instances * HOURS_PER_MONTH)
