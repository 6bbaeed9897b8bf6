"""``constructs-triton tune``: find the configuration of a model that holds the highest rate."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from constructs_triton_core.program.argument_types import add_common
from constructs_triton_core.program.exit_codes import (
    EXIT_INTERRUPTED,
    EXIT_NOT_DONE,
    EXIT_SUCCESS,
    EXIT_WRONG,
    FoundWrongError,
)
from constructs_triton_core.untrusted.terminal import (
    clear_line,
    print_json,
    print_lines,
    print_note,
    show_line,
)
from constructs_triton_tools.cli.flags import add_option, given
from constructs_triton_tools.cli.options import confirm
from constructs_triton_tools.measuring.tuning.options import TuneOptions
from constructs_triton_tools.measuring.tuning.racing import TuneListener

if TYPE_CHECKING:
    from constructs_triton_tools.measuring.load_test.open_loop import LiveFigures
    from constructs_triton_tools.measuring.tuning.candidates import Candidate
    from constructs_triton_tools.measuring.tuning.outcome import TuneResult
    from constructs_triton_tools.measuring.tuning.prepared_search import PreparedSearch
    from constructs_triton_tools.measuring.tuning.racing import Trial
    from constructs_triton_tools.measuring.tuning.schedule import Schedule

#: Options of ``tune`` by the group of ``--help``.
_SEARCH = ("budget_minutes", "step_seconds", "parameters", "calls", "compares_outputs")
_SERVER = (
    "engine",
    "images",
    "python",
    "tritonserver",
    "startup_timeout_seconds",
    "accept_stand_in",
)

_EPILOG = """\
examples:
  constructs-triton tune models --latency-ms 100
  constructs-triton tune models --model digits --latency-ms 50 --requests mix.jsonl \
--budget-minutes 60
  constructs-triton tune models --latency-ms 100 --engine docker --image tune=IMAGE

Searched are batches up to 128, waiting times, and instances: up to the number of CPUs, with their
threads for ONNX Runtime and OpenVINO, or up to 8 on each GPU. TensorRT keeps the max_batch_size of
its plan.

The search starts one configuration after the other and measures whether it holds a little more than
the best so far. At the end, it measures the best ones and the present one in turns. It refuses a
configuration whose outputs differ from those of the present one. The repository is not changed.

Exit codes: 0 success, 1 no rate was held or the present outputs of a batch are wrong, 2 the search
could not be run, 130 Ctrl-C. The same command continues a search that was stopped.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.description = (
        "Search the instances, batch sizes and delays of a model for the highest rate whose "
        "latency stays within a limit, by measuring on this machine. Compares the best with your "
        "configuration, and writes config.pbtxt, a report, and the CSV file that "
        "`constructs-triton plan` reads."
    )
    parser.epilog = _EPILOG
    parser.add_argument("repository", type=Path, metavar="REPOSITORY", help="model repository")
    parser.add_argument(
        "--model",
        metavar="NAME",
        help="model to serve; of an ensemble, every step is searched (default: the only "
        "top-level model)",
    )
    _add_options(parser, "latency_ms", "percentile")
    requests = parser.add_argument_group("requests")
    source = requests.add_mutually_exclusive_group()
    source.add_argument(
        "--random",
        action="append",
        metavar="NAME=DATATYPE[SHAPE]",
        help="random data for an input, as for load-test (default: for every input, with the "
        "shapes of the configuration)",
    )
    source.add_argument(
        "--requests",
        type=Path,
        metavar="FILE",
        help="a file of JSON lines, as for load-test; weights are ignored",
    )
    requests.add_argument(
        "--batch",
        action="store_true",
        help="add a batch axis of size 1 to every input of --requests",
    )
    _add_options(requests, "shapes", "seed")
    _add_options(parser.add_argument_group("search"), *_SEARCH)
    _add_options(parser.add_argument_group("server"), *_SERVER)
    output = parser.add_argument_group("output")
    _add_options(output, "output")
    add_common(output, "--yes", "--json")


def _add_options(group: argparse._ActionsContainer, *names: str) -> None:
    for name in names:
        add_option(group, TuneOptions, name)


def run(arguments: argparse.Namespace) -> int:
    """Print the plan, search, and print what was found."""
    from constructs_triton_tools.measuring.tuning.search import BatchingFaultError, run_search

    prepared = _prepare(arguments)
    print_note(*_plan(prepared))
    confirm(arguments, lambda: "Start, at no cost?")
    try:
        result = run_search(prepared, TuneProgress(prepared, quiet=arguments.json))
    except BatchingFaultError as error:
        raise FoundWrongError(str(error)) from None
    finally:
        clear_line()
    _print(result, as_json=arguments.json)
    if result.is_interrupted:
        return EXIT_INTERRUPTED
    if not result.is_measured:
        return EXIT_NOT_DONE
    return EXIT_SUCCESS if result.rate(result.best) else EXIT_WRONG


def _prepare(arguments: argparse.Namespace) -> PreparedSearch:
    from constructs_triton_tools.measuring.tuning.prepared_search import prepare_search

    options = cast("TuneOptions", given(arguments, TuneOptions))
    return prepare_search(arguments.repository, arguments.model, options, _requests(arguments))


def _requests(arguments: argparse.Namespace) -> Sequence[Any] | None:
    """Return the requests that were given; ``None`` for random values of every input."""
    from constructs_triton_tools.cli.load_test import requests as load_requests

    form = load_requests.BodyForm.BINARY
    batch = arguments.batch
    if arguments.requests:
        found = load_requests.read_lines(arguments.requests, {}, with_batch=batch, form=form)
    elif arguments.random:
        found = load_requests.random_invocations(
            arguments.random, {}, seed=arguments.seed, form=form
        )
    else:
        return None
    return [invocation for _, invocation in found]


# --- before the start -----------------------------------------------------------------------------


def _plan(prepared: PreparedSearch) -> Iterator[str]:
    """Yield what will be measured, and for how long."""
    limits = prepared.limits
    facts = prepared.facts
    yield (
        f"tune {prepared.model}: the highest rate with p{limits.percentile:g} within "
        f"{limits.latency_ms:g} ms, on this machine"
    )
    yield f"  machine   {facts.machine}; {facts.server}; no cost"
    for name, space in prepared.spaces.items():
        yield f"  {name:9} {space}"
    yield f"  data      {facts.data}, the same for all configurations"
    yield f"  time      {_time(prepared.schedule, prepared.count)}"
    yield f"  output    {prepared.folder}"
    if prepared.stand_in:
        yield f"  warning   {prepared.stand_in}"


def _time(schedule: Schedule, candidates: int) -> str:
    """Return how long the search takes, or how far it usually comes on an idle machine."""
    limit = f"{schedule.budget_seconds / 60:g} (--budget-minutes)"
    fitting = schedule.fitting_candidates
    if fitting < candidates:
        return f"at most {limit}, usually enough for {fitting} of up to {candidates} configurations"
    expected = schedule.expected_seconds(candidates) / 60
    return f"about {expected:.0f} minutes for up to {candidates} configurations; at most {limit}"


def _print(result: TuneResult, *, as_json: bool) -> None:
    if as_json:
        print_json(result.to_dict())
        return
    print_lines("", str(result), *(f"note: {note}" for note in result.notes))
    if result.is_interrupted:
        print_note("interrupted: the same command continues with the results so far")
    patterns = ("**/config.pbtxt", "report.md", "report.svg", "benchmark.csv")
    files: list[str] = []
    for pattern in patterns:
        found = sorted(result.folder.glob(pattern))
        files += (str(path.relative_to(result.folder)) for path in found)
    print_note(f"wrote {', '.join(files)} to {result.folder}")

    changed = ", ".join(file for file in files if file.endswith("config.pbtxt"))
    if changed:
        print_note(f"next: copy {changed} from {result.folder} into the model repository")


class TuneProgress(TuneListener):
    """A row for each configuration on standard output,
    and on a terminal a line about the running step.
    """

    def __init__(self, prepared: PreparedSearch, *, quiet: bool) -> None:
        self._present = prepared.repository.present
        self._percentile = prepared.limits.percentile
        self._budget_minutes = prepared.schedule.budget_seconds / 60
        self._quiet = quiet
        self._begin = time.monotonic()
        self._doing = "search"
        self.shows_steps = sys.stderr.isatty()

    def _print(self, *lines: str) -> None:
        clear_line()
        if not self._quiet:
            print_lines(*lines)

    def on_begin(self, known: int) -> None:
        """Print the headings, and how many results are used again."""
        if known:
            print_note(f"{known} results of an earlier run are used again")
        self._print(f"{'rate/s':>8}  {'result':23}  configuration")

    def on_trial(self, trial: Trial) -> None:
        """Print the row of a configuration."""
        reason = f" ({trial.reason})" if trial.reason else ""
        name = trial.candidate.describe(self._present)
        self._print(f"{trial.rate_text:>8}  {trial.outcome:23}  {name}{reason}")

    def on_compare(self, finalists: Sequence[Candidate], rounds: int) -> None:
        """Print that the comparison begins."""
        self._doing = "comparison"
        self._print(f"comparison of {len(finalists)} configurations in {rounds} rounds")

    def on_round(self, number: int, candidate: Candidate, rate: float) -> None:
        """Print the rate of a configuration in a round."""
        self._print(f"{rate:8.1f}  {f'round {number + 1}':23}  {candidate.describe(self._present)}")

    def show(self, rate: float, seconds: float, live: LiveFigures) -> None:
        """Update the line about the running step."""
        minutes = (time.monotonic() - self._begin) / 60
        percentile = self._percentile
        show_line(
            f"{self._doing}, {minutes:.0f} of {self._budget_minutes:g} minutes: {rate:.1f}/s for "
            f"{seconds:.0f} s, p{percentile:g} {live.percentile_ms(percentile):.0f} ms"
        )
