"""The arguments of ``constructs-triton tune``."""

from __future__ import annotations

import argparse
from pathlib import Path

from constructs_triton_core.program.argument_types import (
    add_common,
    number,
    pair_argument,
    whole_number,
)
from constructs_triton_tools.cli.local import add_run_option
from triton_model_check.cli.tensor_options import add_called_models

__all__ = ["LOCAL_OPTIONS", "add_arguments"]

#: Options of ``local up`` that tune has too.
LOCAL_OPTIONS = ("engine", "images", "python", "tritonserver", "startup_timeout_seconds")

_EPILOG = """\
examples:
  constructs-triton tune models --latency-ms 100
  constructs-triton tune models --model digits --latency-ms 50 --requests mix.jsonl --budget-minutes 60
  constructs-triton tune models --latency-ms 100 --engine docker --image tune=IMAGE

The search starts one configuration after the other and measures whether it holds a little more than the best
so far. At the end, it measures the best ones and the present one in turns. It refuses a configuration whose
outputs differ from those of the present one. The repository is not changed.

Exit codes: 0 success, 1 no rate was held or the present outputs of a batch are wrong, 2 the search could not
be run, 130 Ctrl-C. The same command continues a search that was stopped.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.description = (
        "Search the instances, batch sizes and delays of a model for the highest rate whose latency stays "
        "within a limit, by measuring on this machine. Compares the best with your configuration, and "
        "writes config.pbtxt, a report, and the CSV file that `constructs-triton plan` reads."
    )
    parser.epilog = _EPILOG
    # fmt: off
    parser.add_argument("repository", type=Path, metavar="REPOSITORY", help="model repository")
    parser.add_argument("--model", metavar="NAME",
                        help="model to serve; of an ensemble, every step is searched (default: the only "
                             "top-level model)")
    parser.add_argument("--latency-ms", type=number(), required=True, metavar="MS",
                        help="limit of the latency in milliseconds")
    parser.add_argument("--percentile", type=number(), default=95, metavar="P",
                        help="percentile of the latency that must be within the limit (default: %(default)s)")
    # fmt: on
    _add_requests(parser.add_argument_group("requests"))
    _add_search(parser.add_argument_group("search"))
    server = parser.add_argument_group("server")
    for name in LOCAL_OPTIONS:
        add_run_option(server, name)
    server.add_argument(
        "--accept-stand-in",
        action="store_true",
        help="search with a framework's Python package in place of a backend that the server does not have; "
        "the report says so",
    )
    _add_output(parser.add_argument_group("output"))


def _add_requests(group: argparse._ArgumentGroup) -> None:
    # fmt: off
    source = group.add_mutually_exclusive_group()
    source.add_argument("--random", action="append", metavar="NAME=DATATYPE[SHAPE]",
                        help="random data for an input, as for load-test (default: for every input, with the "
                             "shapes of the configuration)")
    source.add_argument("--requests", type=Path, metavar="FILE",
                        help="a file of JSON lines, as for load-test; weights are ignored")
    group.add_argument("--batch", action="store_true",
                       help="add a batch axis of size 1 to every input of --requests")
    group.add_argument("--shape", action="append", default=[], dest="shapes", metavar="NAME=DIMS",
                       help="dims of an input for random data, without the batch dimension (default: 1 for "
                            "each variable size)")
    group.add_argument("--seed", type=whole_number(), default=0, metavar="N",
                       help="seed of the random arrivals and values (default: %(default)s)")
    # fmt: on


def _add_search(group: argparse._ArgumentGroup) -> None:
    # fmt: off
    group.add_argument("--budget-minutes", type=number(), default=20, metavar="N",
                       help="minutes after which the search ends (default: %(default)s)")
    group.add_argument("--step-seconds", type=number(), default=4, metavar="N",
                       help="seconds of a short step; longer for less than 80 requests, and twice as long to "
                            "confirm a rate (default: %(default)s)")
    group.add_argument("--parameter", action="append", default=[], dest="parameters",
                       type=pair_argument("NAME=VALUE,VALUE", "threads=1,2"), metavar="NAME=VALUE,VALUE",
                       help="values to try of a parameter of the configuration, such as threads=1,2")
    add_called_models(group)
    group.add_argument("--no-output-check", action="store_false", dest="compares_outputs",
                       help="do not compare outputs, for models whose outputs are random")
    # fmt: on


def _add_output(group: argparse._ArgumentGroup) -> None:
    # fmt: off
    group.add_argument("-o", "--output", type=Path, default=Path("tuned"), metavar="DIR",
                       help="folder of the results, and of the journal that continues a search "
                            "(default: %(default)s)")
    add_common(group, "--yes", "--json")
    # fmt: on
