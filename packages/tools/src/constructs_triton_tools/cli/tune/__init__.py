"""``constructs-triton tune``: find the configuration of a model that holds the highest rate."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

from constructs_triton_core.program.exit_codes import (
    EXIT_INTERRUPTED,
    EXIT_NOT_DONE,
    EXIT_SUCCESS,
    EXIT_WRONG,
    FoundWrongError,
)
from constructs_triton_core.program.progress import clear_line
from constructs_triton_core.untrusted.terminal import print_json, print_lines, print_note
from constructs_triton_tools.cli.dialogue import confirm
from constructs_triton_tools.cli.tune.arguments import LOCAL_OPTIONS, add_arguments
from constructs_triton_tools.cli.tune.progress import TuneProgress
from triton_model_check.cli.tensor_options import called_models, read_shapes

if TYPE_CHECKING:
    from constructs_triton_tools.local.options import LocalRunOptions
    from constructs_triton_tools.measuring.tuning.outcome import TuneResult
    from constructs_triton_tools.measuring.tuning.search import Tuning

__all__ = ["add_arguments", "run"]


def run(arguments: argparse.Namespace) -> int:
    """Print the plan, search, and print what was found."""
    from constructs_triton_tools.measuring.tuning.search import BatchingFaultError

    tuning = _prepare(arguments)
    print_note(*_plan(tuning))
    confirm(arguments, lambda: "Start, at no cost?")
    try:
        result = tuning.run(TuneProgress(tuning, quiet=arguments.json))
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


def _prepare(arguments: argparse.Namespace) -> Tuning:
    from constructs_triton_tools.measuring.tuning.search import TuneOptions, Tuning

    options = TuneOptions(
        latency_ms=arguments.latency_ms,
        percentile=arguments.percentile,
        budget_minutes=arguments.budget_minutes,
        output=arguments.output,
        step_seconds=arguments.step_seconds,
        parameters={name: list(filter(None, values.split(","))) for name, values in arguments.parameters},
        calls=called_models(arguments),
        shapes=read_shapes(arguments.shapes),
        accept_stand_in=arguments.accept_stand_in,
        compares_outputs=arguments.compares_outputs,
        seed=arguments.seed,
    )
    local, requests = _local(arguments), _requests(arguments)
    return Tuning(arguments.repository, arguments.model, options, local, requests)


def _requests(arguments: argparse.Namespace) -> Sequence[Any] | None:
    """Return the requests that were given; ``None`` for random values of every input."""
    from constructs_triton_tools.cli.load_test import requests as load_requests

    form, batch = load_requests.BodyForm.BINARY, arguments.batch
    if arguments.requests:
        found = load_requests.read_lines(arguments.requests, {}, with_batch=batch, form=form)
    elif arguments.random:
        found = load_requests.random_invocations(arguments.random, {}, seed=arguments.seed, form=form)
    else:
        return None
    return [invocation for _, invocation in found]


def _local(arguments: argparse.Namespace) -> LocalRunOptions:
    given = {name: getattr(arguments, name) for name in LOCAL_OPTIONS}
    given["images"] = dict(given["images"] or ())
    return cast("LocalRunOptions", {name: value for name, value in given.items() if value})


# --- before the start -------------------------------------------------------------------------------------


def _plan(tuning: Tuning) -> Iterator[str]:
    """Say what will be measured, and for how long."""
    options, facts = tuning.options, tuning.facts
    expected = tuning.schedule.expected_seconds(tuning.count) / 60
    yield (
        f"tune {tuning.model}: the highest rate with p{options.percentile:g} within "
        f"{options.latency_ms:g} ms, on this machine"
    )
    yield f"  machine   {facts.machine}; {facts.server}; no cost"
    for name, space in tuning.spaces.items():
        yield f"  {name:9} {space}"
    yield f"  data      {facts.data}, the same for all configurations"
    yield (
        f"  time      about {expected:.0f} minutes for up to {tuning.count} configurations; at most "
        f"{options.budget_minutes:g} (--budget-minutes)"
    )
    yield f"  output    {options.output}"
    if tuning.stand_in:
        yield f"  warning   {tuning.stand_in}"


def _print(result: TuneResult, *, as_json: bool) -> None:
    if as_json:
        print_json(result.to_dict())
        return
    print_lines("", str(result), *(f"note: {note}" for note in result.notes))
    if result.is_interrupted:
        print_note("interrupted: the same command continues with the results so far")
    patterns = ("**/config.pbtxt", "report.md", "report.svg", "benchmark.csv")
    files = [
        str(path.relative_to(result.folder)) for each in patterns for path in sorted(result.folder.glob(each))
    ]
    print_note(f"wrote {', '.join(files)} to {result.folder}")
    if found := [each for each in files if each.endswith("config.pbtxt")]:
        print_note(f"next: copy {', '.join(found)} from {result.folder} into the model repository")
