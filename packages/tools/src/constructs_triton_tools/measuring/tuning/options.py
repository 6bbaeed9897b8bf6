"""The options of ``tune`` and ``compare_repositories``,
declared once for them and for the command.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, TypedDict

from constructs_triton_core.declared_values import Value
from constructs_triton_core.facts.limits import RangeLimit
from constructs_triton_tools.local.options import LocalRunOptions

_STEP_SECONDS = RangeLimit(1, 600)


class _Limit(TypedDict):
    latency_ms: Annotated[
        float,
        Value(
            "limit of the latency in milliseconds, counted from when a request was due",
            example="100",
            metavar="MS",
        ),
    ]


class _Measuring(_Limit, total=False):
    percentile: Annotated[
        float,
        Value(
            "percentile of the latency that must be within the limit",
            default=95,
            limit=RangeLimit(50, 99),
            metavar="P",
        ),
    ]
    accept_stand_in: Annotated[
        bool,
        Value(
            "search with a framework's Python package in place of a backend that the server does "
            "not have; the report says so",
            default=False,
        ),
    ]
    compares_outputs: Annotated[
        bool,
        Value(
            "refuse a configuration whose outputs differ from those of the present one",
            default=True,
            flag="--no-output-check",
        ),
    ]
    seed: Annotated[int, Value("seed of the random arrivals and values", default=0, metavar="N")]


class _Search(_Measuring, total=False):
    budget_minutes: Annotated[
        float,
        Value(
            "minutes after which the search ends",
            default=20,
            limit=RangeLimit(None, 7 * 24 * 60),
            metavar="N",
        ),
    ]
    output: Annotated[
        str | Path,
        Value(
            "folder of the results, and of the journal that continues a search",
            default=Path("tuned"),
            short="-o",
            metavar="DIR",
        ),
    ]
    step_seconds: Annotated[
        float,
        Value(
            "seconds of a short step; longer for less than 80 requests, "
            "and twice as long to confirm a rate",
            default=4,
            limit=_STEP_SECONDS,
            metavar="N",
        ),
    ]
    parameters: Annotated[
        Mapping[str, Sequence[str]],
        Value(
            "values to try of a parameter of the configuration",
            example="threads=1,2",
            flag="--parameter",
            metavar="NAME=VALUE,VALUE",
            read=lambda text: list(filter(None, text.split(","))),
        ),
    ]
    calls: Annotated[
        Mapping[str, Sequence[str]],
        Value(
            "models that a Python model calls and whose names its source does not contain as "
            "strings; as calls in triton-models.toml, which needs no option",
            example="pipeline=scale,score",
            flag="--called-models",
            metavar="CALLER=MODEL,...",
            read=lambda text: list(filter(None, map(str.strip, text.split(",")))),
        ),
    ]
    shapes: Annotated[
        Mapping[str, Sequence[int]],
        Value(
            "dims of an input for random data, without the batch dimension",
            default_text="1 for each variable size",
            example="image=3,224,224",
            flag="--shape",
            metavar="NAME=DIMS",
            read=lambda text: tuple(map(int, text.split(","))),
        ),
    ]


class _Comparison(_Measuring, total=False):
    step_seconds: Annotated[
        float,
        Value(
            "seconds of a step; a round has about six steps",
            default=8,
            limit=_STEP_SECONDS,
            metavar="N",
        ),
    ]


class TuneOptions(_Search, LocalRunOptions, total=False):
    """How a search is run, and on which server. ``None`` means the default."""


class ComparisonOptions(_Comparison, LocalRunOptions, total=False):
    """How two repositories are compared, and on which server. ``None`` means the default."""
