"""The options of ``tune`` and ``compare_repositories``, declared once for them and for the command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, TypedDict

from constructs_triton_core.facts.limits import RangeLimit
from constructs_triton_tools.declared_options import Option
from constructs_triton_tools.local.options import LocalRunOptions

_STEP_SECONDS = RangeLimit(1, 600)


# fmt: off
class _Limit(TypedDict):
    latency_ms: Annotated[float, Option(
        "--latency-ms", "MS", "limit of the latency in milliseconds, counted from when a request was due")]


class _Measuring(_Limit, total=False):
    percentile: Annotated[float, Option(
        "--percentile", "P", "percentile of the latency that must be within the limit",
        limit=RangeLimit(50, 99), value=95)]
    accept_stand_in: Annotated[bool, Option(
        "--accept-stand-in", "", "search with a framework's Python package in place of a backend that the "
        "server does not have; the report says so", value=False)]
    compares_outputs: Annotated[bool, Option(
        "--no-output-check", "", "refuse a configuration whose outputs differ from those of the present one",
        value=True)]
    seed: Annotated[int, Option("--seed", "N", "seed of the random arrivals and values", value=0)]


class _Search(_Measuring, total=False):
    budget_minutes: Annotated[float, Option(
        "--budget-minutes", "N", "minutes after which the search ends",
        limit=RangeLimit(1, 7 * 24 * 60), value=20)]
    output: Annotated[str | Path, Option(
        "--output", "DIR", "folder of the results, and of the journal that continues a search",
        value=Path("tuned"), short="-o")]
    step_seconds: Annotated[float, Option(
        "--step-seconds", "N", "seconds of a short step; longer for less than 80 requests, and twice as long "
        "to confirm a rate", limit=_STEP_SECONDS, value=4)]
    parameters: Annotated[Mapping[str, Sequence[str]], Option(
        "--parameter", "NAME=VALUE,VALUE", "values to try of a parameter of the configuration",
        example="threads=1,2", read=lambda text: list(filter(None, text.split(","))))]
    calls: Annotated[Mapping[str, Sequence[str]], Option(
        "--called-models", "CALLER=MODEL,...", "models that a Python model calls and whose names its source "
        "does not contain as strings; as calls in triton-models.toml, which needs no option",
        example="pipeline=scale,score",
        read=lambda text: list(filter(None, map(str.strip, text.split(",")))))]
    shapes: Annotated[Mapping[str, Sequence[int]], Option(
        "--shape", "NAME=DIMS", "dims of an input for random data, without the batch dimension",
        "1 for each variable size", example="image=3,224,224",
        read=lambda text: tuple(map(int, text.split(","))))]


class _Comparison(_Measuring, total=False):
    step_seconds: Annotated[float, Option(
        "--step-seconds", "N", "seconds of a step; a round has about six steps",
        limit=_STEP_SECONDS, value=8)]
# fmt: on


class TuneOptions(_Search, LocalRunOptions, total=False):
    """How a search is run, and on which server. ``None`` means the default."""


class ComparisonOptions(_Comparison, LocalRunOptions, total=False):
    """How two repositories are compared, and on which server. ``None`` means the default."""
