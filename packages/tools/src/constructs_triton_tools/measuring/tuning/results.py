"""Writes what a search has found: configuration, benchmark for ``plan``, report and picture."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from difflib import unified_diff
from pathlib import Path

from constructs_triton_core.errors import InvalidValueError, MissingDependencyError
from constructs_triton_core.untrusted.written_files import new_folder, write_whole
from constructs_triton_tools.measuring.load_test.results_file import (
    BenchmarkMetadata,
    write_results,
)
from constructs_triton_tools.measuring.load_test.step import StepResult, Verdict
from constructs_triton_tools.measuring.plots.tune_plot import plot_tuning
from constructs_triton_tools.measuring.tuning.bench import BenchStep
from constructs_triton_tools.measuring.tuning.candidates import Candidate
from constructs_triton_tools.measuring.tuning.outcome import TuneResult
from constructs_triton_tools.measuring.tuning.racing import Outcome
from constructs_triton_tools.measuring.tuning.repositories import TunedRepository
from triton_model_check.model.folder import CONFIG_FILE
from triton_model_check.model_config.text import format_model_config

REPORT = "report.md"
PICTURE = "report.svg"
BENCHMARK = "benchmark.csv"
_FIRST_WORDS = "Written by `constructs-triton tune`"
_LIMITS = (
    (
        "The rates are those of this machine. Use them to compare configurations, and measure the "
        "winner on the instance type that you deploy with `constructs-triton load-test`."
    ),
    (
        "The requests were independent of each other (a Poisson process), one item each unless "
        "your own requests have more. "
        "Callers that send larger batches than `max_batch_size` get an error."
    ),
    (
        "Not searched: the model itself, its precision, accelerators, "
        "the response cache and priorities."
    ),
)
_SHARES_CPUS = (
    "The load generator and the model shared the CPUs: compare the rates, do not size with them."
)


def write_tuning(result: TuneResult, repository: TunedRepository) -> None:
    """Write all files to the folder of the result."""
    try:
        _write_configs(result, repository)
        _write_report(result, repository, result.folder / REPORT)
    except OSError as error:
        raise InvalidValueError(
            f"{result.folder}: cannot be written ({error.strerror}); give another folder with -o"
        ) from None
    _write_benchmark(result)
    if result.steps:
        try:
            plot_tuning(result, result.folder / PICTURE)
        except MissingDependencyError:
            (result.folder / PICTURE).unlink(missing_ok=True)


def _write_configs(result: TuneResult, repository: TunedRepository) -> None:
    paths = {
        folder.name: result.folder / folder.name / CONFIG_FILE for folder in repository.folders
    }
    for path in paths.values():
        if path.is_file() and path.read_text("utf-8", "replace").startswith(f"# {_FIRST_WORDS}"):
            path.unlink()  # an earlier search wrote it
    for folder in repository.changed(result.best):
        reasons = "".join(f"# {line}\n" for line in _reasons(result, folder.name))
        config = format_model_config(repository.config(folder, result.best[folder.name]))
        new_folder(paths[folder.name].parent)
        write_whole(paths[folder.name], reasons + config)


def _reasons(result: TuneResult, model: str) -> Iterator[str]:
    yield f"{_FIRST_WORDS} on {datetime.now(UTC):%Y-%m-%d}."
    yield str(result)
    yield f"Before: {result.present[model]}. Now: {result.best[model]}."
    yield f"Measured on {result.facts.machine}, with {result.facts.server}, {result.facts.data}."
    for trial in result.trials.values():
        if trial.model == model and trial.outcome not in (Outcome.BEST, Outcome.PRESENT):
            yield f"Tried, {trial.outcome}: {trial.candidate[model]}"


# --- the benchmark --------------------------------------------------------------------------------


def _write_benchmark(result: TuneResult) -> None:
    """Write a row for the present configuration and one for the best, with the rate of each."""
    path = result.folder / BENCHMARK
    path.unlink(missing_ok=True)
    names = {result.present: "present"}
    names.setdefault(result.best, "tuned")
    for candidate, name in names.items():
        if steps := _confirmed(result, candidate):
            metadata = BenchmarkMetadata(configuration=f"{result.model} {name}")
            write_results(path, metadata, steps, append=path.exists())


def _confirmed(result: TuneResult, candidate: Candidate) -> list[StepResult]:
    """Return the step nearest below the rate of a candidate that was held,
    and one above that was not.
    """
    highest_rate = result.rate(candidate) * 1.001  # as good as the same rate
    steps = [step.result for step in result.steps if step.candidate == candidate]
    held = [step for step in steps if step.verdict is Verdict.HELD and step.rate <= highest_rate]
    if not held:
        return []

    # Of several steps with the same rate, the longest is the most certain.
    best = max(held, key=lambda step: (step.rate, step.seconds))
    missed = [step for step in steps if step.verdict is Verdict.NOT_HELD and step.rate > best.rate]
    if not missed:
        return [best]
    return [best, min(missed, key=lambda step: step.rate)]


# --- the report -----------------------------------------------------------------------------------


def _write_report(result: TuneResult, repository: TunedRepository, path: Path) -> None:
    """Write the report as Markdown; its first line is one sentence about the result."""
    limits = (_SHARES_CPUS, *_LIMITS) if result.facts.shares_cpus else _LIMITS
    parts = [
        [str(result), "", *(f"- {note}" for note in result.notes)],
        _changes(result, repository),
        _comparison(result),
        _tried(result),
        _times(result),
        _method(result),
        ["## Limits", "", *(f"- {text}" for text in limits)],
    ]
    lines: list[str] = []
    for part in parts:
        if part:
            lines += [*part, ""]
    write_whole(path, "\n".join(lines).rstrip() + "\n")


def _changes(result: TuneResult, repository: TunedRepository) -> list[str]:
    lines = []
    for folder in repository.changed(result.best):
        before, after = (
            format_model_config(repository.config(folder, candidate[folder.name])).splitlines()
            for candidate in (result.present, result.best)
        )
        name = f"{folder.name}/{CONFIG_FILE}"
        diff = unified_diff(before, after, f"present/{name}", f"tuned/{name}", n=1, lineterm="")
        lines += ["", "```diff", *diff, "```"]
    return lines and ["## What to change", *lines]


def _section(
    title: str, text: str, headings: Sequence[str], rows: Iterable[Sequence[str]]
) -> list[str]:
    """Return a heading, a text and a table."""
    table = [f"| {' | '.join(row)} |" for row in (headings, ["---"] * len(headings), *rows)]
    return [f"## {title}", "", *([text, ""] if text else []), *table]


def _comparison(result: TuneResult) -> list[str]:
    if not result.comparisons:
        return []
    rows = [
        [
            result.present.describe(result.present),
            f"{result.rate(result.present):.1f}",
            "1",
            "your configuration",
        ]
    ]
    for candidate, found in result.comparisons.items():
        ratio = f"{found.ratio:.2f} ({found.low:.2f} to {found.high:.2f})"
        name = candidate.describe(result.present)
        rows.append([name, f"{result.rate(candidate):.1f}", ratio, str(found.verdict)])
    return _section(
        f"Comparison in {len(result.rounds)} rounds",
        "Each round measured each configuration, in random order. "
        "Its rate is where the latency crosses the limit.",
        ("configuration", "requests per second", "times your configuration (95%)", "verdict"),
        rows,
    )


def _tried(result: TuneResult) -> list[str]:
    rows = []
    for trial in result.trials.values():
        reason = f": {trial.reason}" if trial.reason else ""
        outcome = f"{trial.outcome}{reason}".replace("|", "\\|")
        rows.append([trial.candidate.describe(result.present), trial.rate_text, outcome])
    return _section("What was tried", "", ("configuration", "requests per second", "result"), rows)


def _times(result: TuneResult) -> list[str]:
    """The time in queue and compute of each model,
    at the highest rate that each configuration held.
    """
    rows: list[list[str]] = []
    for candidate in dict.fromkeys([result.present, result.best]):
        rows += _time_rows(candidate, result)
    if not rows:
        return []
    return _section(
        "Where the time goes",
        "Means of the server's statistics, in the step with the highest rate that was held.",
        ("configuration", "model", "rate", "queue ms", "compute ms", "mean batch"),
        rows,
    )


def _time_rows(candidate: Candidate, result: TuneResult) -> Iterator[list[str]]:
    """Yield a row for each model of a candidate: its times at the highest rate that was held."""
    held = []
    for step in result.steps:
        is_held = step.candidate == candidate and step.result.verdict == "held"
        if is_held and step.models:
            held.append(step)
    if not held:
        return
    step = max(held, key=lambda held_step: held_step.result.rate)
    name = "your configuration" if candidate == result.present else "best"
    for model, values in sorted(step.models.items()):
        figures = [f"{values[key]:.1f}" for key in ("queue_ms", "compute_ms", "batch")]
        yield [name, model, f"{step.result.rate:.1f}", *figures]


def _method(result: TuneResult) -> list[str]:
    return [
        "## How it was measured",
        "",
        f"- Machine: {result.facts.machine}",
        f"- Server: {result.facts.server}",
        f"- Data: {result.facts.data}",
        (
            f"- Limit: p{result.limits.percentile:g} within {result.limits.latency_ms:g} ms, "
            "without errors; latency counts from when a request was due"
        ),
        *_load(result.steps),
    ]


def _load(steps: Sequence[BenchStep]) -> list[str]:
    if not steps:
        return []
    late = max(step.result.late_p99_ms for step in steps)
    return [
        (
            f"- Steps: {len(steps)}, "
            f"and {sum(step.voids for step in steps)} that were void on a busy machine"
        ),
        (
            f"- The generator used at most {max(step.result.cpu for step in steps):.0%} of a CPU "
            f"and was at most {late:.0f} ms late (p99); load average up to "
            f"{max(step.load for step in steps):.1f}"
        ),
    ]
