"""The arguments of ``constructs-triton load-test``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, TypedDict

from constructs_triton_core.declared_values import Value
from constructs_triton_core.program.argument_types import add_common, number, whole_number
from constructs_triton_tools.cli.options import (
    Body,
    Connection,
    Requests,
    add_called_endpoint,
    add_options,
)
from constructs_triton_tools.measuring.load_test.step import Limits, StepSettings

_EPILOG = """\
requests:
  --body '{"messages": [...]}'             a whole request, such as a chat completion, \
or @FILE with it
  --input image=@seven.png --batch         one request, as for `constructs-triton invoke`
  --random --repository models             random values for every input, \
as for `constructs-triton invoke`
  --random 'ids=INT64[1,128]:0..30521'     random values; numbers without a range are 0 to 100, \
or 0.0 to 1.0
  --requests mix.jsonl                     one JSON object per line, chosen at random by weight:
      {"input": {"image": "@cat.png"}, "target_model": "cats", "weight": 3}
      {"body": {"messages": [...], "stream": true}, "inference_component": "chat"}
      `constructs-triton capture read --requests mix.jsonl` writes captured traffic

examples:
  constructs-triton load-test decoder --stream --endpoint-url http://127.0.0.1:8080 \\
      --input "text_input=Once upon a time:BYTES" --input max_tokens=40:INT32 \\
      --concurrency 1 2 4 8 --goodput first_token=200ms,between_tokens=80ms -o benchmark.csv
  constructs-triton load-test digits --endpoint-url http://127.0.0.1:8080 \
--input image=@seven.png --batch \\
      --latency-ms 50 --step-seconds 10 -o benchmark.csv --plot ramp.svg

With --stream, --input and --random give the fields of Triton's generate extension. Other
containers, such as vLLM and LMI, get whole requests: --body, or "body" of a line. They stream if
the request has "stream": true, and report tokens if it has "stream_options":
{"include_usage": true}.

Exit codes: 0 success, 1 no rate was held, 2 the test could not be run or the generator was the
bottleneck.
"""


class _Target(TypedDict, total=False):
    allow_scaling: Annotated[
        bool,
        Value(
            "test although Application Auto Scaling may change the instance count", default=False
        ),
    ]


class _Source(TypedDict, total=False):
    inputs: Annotated[
        Sequence[str], Value("an input tensor, see below", flag="--input", metavar="NAME=VALUE")
    ]
    requests: Annotated[Path, Value("a file of JSON lines, see below", metavar="FILE")]


class _Form(TypedDict, total=False):
    json_tensors: Annotated[
        bool, Value("send tensors as JSON", default=False, default_text="binary", flag="--as-json")
    ]


class _Load(TypedDict, total=False):
    latency_ms: Annotated[
        float,
        Value(
            "limit of the latency in milliseconds",
            default_text="500; no limit with --stream",
            metavar="MS",
        ),
    ]
    rates: Annotated[
        tuple[float, ...] | None,
        Value(
            "requests per second of each step",
            default_text="search for the highest",
            metavar="N",
            read=number(),
        ),
    ]
    start: Annotated[
        float,
        Value(
            "first rate or number of streams of the search",
            default_text="4 requests per second, or 1 stream",
            flag="--from",
            metavar="N",
        ),
    ]
    maximum: Annotated[
        float,
        Value(
            "highest rate or number of streams of the search",
            default_text="no maximum",
            flag="--to",
            metavar="N",
        ),
    ]
    processes: Annotated[int, Value("processes that share the load", default=1, metavar="N")]


class _Streams(TypedDict, total=False):
    stream: Annotated[
        bool,
        Value(
            "read responses of models that generate as they arrive, over "
            "InvokeEndpointWithResponseStream, and measure tokens",
            default=False,
        ),
    ]
    goodput: Annotated[
        str,
        Value(
            "limits of a stream: first_token and between_tokens, in ms or s. The goodput is the "
            "requests per second that meet all of them. "
            "A step is held if the percentile of each is within it",
            default_text="first_token=500ms,between_tokens=100ms",
            metavar="LIMITS",
        ),
    ]


class _Output(TypedDict, total=False):
    output: Annotated[
        Path, Value("CSV file for the rates that are held", short="-o", metavar="FILE")
    ]
    append: Annotated[bool, Value("add the rows to the file if it exists", default=False)]
    configuration: Annotated[
        str,
        Value(
            "name of what is tested, for the CSV file",
            default_text="the endpoint's name, with the variant's",
            metavar="NAME",
        ),
    ]
    instance_type: Annotated[
        str,
        Value(
            "instance type for the CSV file",
            default_text='that of the endpoint, or "local"',
            metavar="TYPE",
        ),
    ]
    instances: Annotated[
        int,
        Value(
            "instances that share the load", default_text="those of the endpoint, or 1", metavar="N"
        ),
    ]
    plot: Annotated[str, Value("write a figure: .svg, .png or .pdf", metavar="FILE")]
    export_locust: Annotated[
        Path, Value("write the test as a locustfile instead of running it", metavar="FILE")
    ]
    export_aiperf: Annotated[
        Path,
        Value(
            "write the request as a template of NVIDIA AIPerf, and print its command",
            metavar="FILE",
        ),
    ]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.description = (
        "Send requests at fixed rates, or search for the highest rate whose latency stays within a "
        "limit. Latency counts from when a request was due, so waiting is part of it. With "
        "--stream, measure when tokens arrive. "
        "Writes the CSV file that `constructs-triton plan` reads."
    )
    parser.epilog = _EPILOG
    add_called_endpoint(parser)
    target = parser.add_argument_group("endpoint")
    add_common(target, "--endpoint-url", "--region", "--profile", "--yes")
    add_options(target, _Target)
    _add_requests(parser.add_argument_group("requests"))
    load = parser.add_argument_group("load")
    add_options(load, _Load)
    add_options(load, Limits)
    add_options(load, StepSettings, without=["grace_seconds"])
    _add_streams(parser.add_argument_group("streams"))
    output = parser.add_argument_group("output")
    add_options(output, _Output)
    add_common(output, "--json")


def _add_requests(group: argparse._ArgumentGroup) -> None:
    source = group.add_mutually_exclusive_group(required=True)
    add_options(source, _Source)
    add_options(source, Body)
    source.add_argument(
        "--random",
        action="append",
        nargs="?",
        const="",
        metavar="NAME=DATATYPE[SHAPE]",
        help="random data for every input of the model in --repository, or for the inputs "
        "that you name, see below",
    )
    add_options(group, Requests)
    add_options(group, _Form)
    add_options(group, Connection, "index", "inference_component")


def _add_streams(group: argparse._ArgumentGroup) -> None:
    add_options(group, _Streams)
    group.add_argument(
        "--concurrency",
        type=whole_number(),
        nargs="*",
        metavar="N",
        help="keep N streams open in each step, in place of a rate; without N, search for the most",
    )
    add_options(group, StepSettings, "grace_seconds")
