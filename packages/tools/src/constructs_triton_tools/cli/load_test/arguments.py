"""The arguments of ``constructs-triton load-test``."""

from __future__ import annotations

import argparse
from pathlib import Path

from constructs_triton_core.program.argument_types import add_common, number, whole_number
from constructs_triton_tools.cli.connection_options import add_index, add_request_options

_EPILOG = """\
requests:
  --input image=@seven.png --batch         one request, as for `constructs-triton invoke`
  --random --repository models             random values for every input, as for `constructs-triton invoke`
  --random 'ids=INT64[1,128]:0..30521'     random values; numbers without a range are 0 to 100, or 0.0 to 1.0
  --requests mix.jsonl                     one JSON object per line, chosen at random by weight:
      {"input": {"image": "@cat.png"}, "target_model": "cats", "weight": 3}
      {"body": {"inputs": [...]}, "inference_component": "dogs"}
      `constructs-triton capture read --requests mix.jsonl` writes captured traffic

examples:
  constructs-triton load-test decoder --stream --endpoint-url http://127.0.0.1:8080 \\
      --input "text_input=Once upon a time:BYTES" --input max_tokens=40:INT32 \\
      --concurrency 1 2 4 8 --goodput first_token=200ms,between_tokens=80ms -o benchmark.csv
  constructs-triton load-test digits --endpoint-url http://127.0.0.1:8080 --input image=@seven.png --batch \\
      --latency-ms 50 --step-seconds 10 -o benchmark.csv --plot ramp.svg

With --stream, requests are flat JSON of Triton's generate extension: --input and --random give its fields,
and "body" of a line is the whole object.

Exit codes: 0 success, 1 no rate was held, 2 the test could not be run or the generator was the bottleneck.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.description = (
        "Send requests at fixed rates, or search for the highest rate whose latency stays within a limit. "
        "Latency counts from when a request was due, so waiting is part of it. With --stream, measure when "
        "tokens arrive. Writes the CSV file that `constructs-triton plan` reads."
    )
    parser.epilog = _EPILOG
    parser.add_argument(
        "endpoint", metavar="NAME", help="name of the endpoint, or http://HOST:PORT of a container"
    )
    _add_target(parser.add_argument_group("endpoint"))
    _add_requests(parser.add_argument_group("requests"))
    _add_load(parser.add_argument_group("load"))
    _add_streams(parser.add_argument_group("streams"))
    _add_output(parser.add_argument_group("output"))


def _add_target(group: argparse._ArgumentGroup) -> None:
    # fmt: off
    add_common(group, "--endpoint-url", "--region", "--profile", "--yes")
    group.add_argument("--allow-scaling", action="store_true",
                       help="test although Application Auto Scaling may change the instance count")
    # fmt: on


def _add_requests(group: argparse._ArgumentGroup) -> None:
    # fmt: off
    source = group.add_mutually_exclusive_group(required=True)
    source.add_argument("--input", action="append", metavar="NAME=VALUE", dest="inputs",
                        help="an input tensor, see below; repeat it for each input")
    source.add_argument("--random", action="append", nargs="?", const="", metavar="NAME=DATATYPE[SHAPE]",
                        help="random data for every input of the model in --repository, or for the inputs "
                             "that you name, see below")
    source.add_argument("--requests", type=Path, metavar="FILE", help="a file of JSON lines, see below")
    add_request_options(group)
    group.add_argument("--as-json", action="store_true", dest="json_tensors",
                       help="send tensors as JSON (default: binary)")
    add_index(group)
    group.add_argument("--inference-component", metavar="NAME", help="inference component to call")
    # fmt: on


def _add_load(group: argparse._ArgumentGroup) -> None:
    # fmt: off
    group.add_argument("--latency-ms", type=number(), metavar="MS",
                       help="limit of the latency in milliseconds (default: 500; no limit with --stream)")
    group.add_argument("--percentile", type=number(), default=95, metavar="P",
                       help="percentile of the latency that must be within the limit (default: %(default)s)")
    group.add_argument("--rates", type=number(), nargs="+", metavar="N",
                       help="requests per second of each step (default: search for the highest)")
    group.add_argument("--from", type=number(), metavar="N", dest="start",
                       help="first rate of the search (default: 4), or streams (default: 1)")
    group.add_argument("--to", type=number(), default=float("inf"), metavar="N", dest="maximum",
                       help="highest rate or number of streams of the search (default: no maximum)")
    group.add_argument("--step-seconds", type=number(), default=60, metavar="N",
                       help="seconds of a step that are measured; longer, up to 60, if fewer requests are "
                            "due than the percentile needs: 76 for p95, 386 for p99 (default: %(default)s)")
    group.add_argument("--step-requests", type=whole_number(), metavar="N",
                       help="end a step after N requests, if that is before --step-seconds")
    group.add_argument("--warm-up-seconds", type=number(), default=5, metavar="N",
                       help="seconds before the first step that are not measured (default: %(default)s)")
    group.add_argument("--max-in-flight", type=whole_number(), default=256, metavar="N",
                       help="requests without an answer above which no further ones are sent, but counted "
                            "(default: %(default)s)")
    group.add_argument("--constant", action="store_true",
                       help="send at equal intervals (default: random intervals, a Poisson process)")
    group.add_argument("--seed", type=whole_number(), default=0, metavar="N",
                       help="seed of the random intervals and values (default: %(default)s)")
    group.add_argument("--processes", type=whole_number(), default=1, metavar="N",
                       help="processes that share the load (default: %(default)s)")
    # fmt: on


def _add_streams(group: argparse._ArgumentGroup) -> None:
    # fmt: off
    group.add_argument("--stream", action="store_true",
                       help="read responses of models that generate as they arrive, over "
                            "InvokeEndpointWithResponseStream, and measure tokens")
    group.add_argument("--goodput", metavar="LIMITS",
                       help="limits of a stream: first_token and between_tokens, in ms or s (default: "
                            "first_token=500ms,between_tokens=100ms). The goodput is the requests per second "
                            "that meet all of them. A step is held if the percentile of each is within it")
    group.add_argument("--concurrency", type=whole_number(), nargs="*", metavar="N",
                       help="keep N streams open in each step, in place of a rate; without N, search for the "
                            "most")
    group.add_argument("--grace-seconds", type=number(), metavar="N",
                       help="seconds that open streams may take after a step, before they are closed "
                            "(default: 30)")
    # fmt: on


def _add_output(group: argparse._ArgumentGroup) -> None:
    # fmt: off
    group.add_argument("-o", "--output", type=Path, metavar="FILE",
                       help="CSV file for the rates that are held")
    group.add_argument("--append", action="store_true", help="add the rows to the file if it exists")
    group.add_argument("--configuration", metavar="NAME",
                       help="name of what is tested, for the CSV file (default: the endpoint's name, with "
                            "the variant's)")
    group.add_argument("--instance-type", metavar="TYPE",
                       help='instance type for the CSV file (default: that of the endpoint, or "local")')
    group.add_argument("--instances", type=whole_number(), metavar="N",
                       help="instances that share the load (default: those of the endpoint, or 1)")
    group.add_argument("--plot", metavar="FILE", help="write a figure: .svg, .png or .pdf")
    add_common(group, "--json")
    group.add_argument("--export-locust", type=Path, metavar="FILE",
                       help="write the test as a locustfile instead of running it")
    # fmt: on
