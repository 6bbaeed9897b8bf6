"""Writes what a search has found: configuration, benchmark for ``plan``, report and picture."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from constructs_triton.errors import InvalidValueError, MissingDependencyError
from constructs_triton.measuring.load_test.results_file import BenchmarkMetadata, write_results
from constructs_triton.measuring.load_test.step import StepResult, Verdict
from constructs_triton.measuring.plots.tune_plot import plot_tuning
from constructs_triton.measuring.tuning.candidates import Candidate
from constructs_triton.measuring.tuning.model_settings import describe_changes
from constructs_triton.measuring.tuning.outcome import TuneResult
from constructs_triton.measuring.tuning.racing import Outcome
from constructs_triton.measuring.tuning.report import Facts, write_report
from constructs_triton.measuring.tuning.repositories import TunedRepository
from constructs_triton.model_config.folder import CONFIG_FILE

__all__ = ["BENCHMARK", "PICTURE", "REPORT", "write_tuning"]

REPORT, PICTURE, BENCHMARK = "report.md", "report.svg", "benchmark.csv"
_FIRST_WORDS = "# Written by `constructs-triton tune`"


def write_tuning(result: TuneResult, repository: TunedRepository, facts: Facts) -> None:
    """Write all files to the folder of the result.

    Raises:
        InvalidValueError: a file cannot be written.
    """
    try:
        _write_configs(result, repository, facts)
        write_report(result, repository, facts, result.folder / REPORT)
    except OSError as error:
        raise InvalidValueError(
            f"{result.folder}: cannot be written ({error.strerror}); give another folder with -o"
        ) from None
    _write_benchmark(result, facts)
    if result.steps:
        try:
            plot_tuning(result, result.folder / PICTURE)
        except MissingDependencyError:
            (result.folder / PICTURE).unlink(missing_ok=True)


def _write_configs(result: TuneResult, repository: TunedRepository, facts: Facts) -> None:
    for folder in repository.folders:
        path = result.folder / folder.name / CONFIG_FILE
        _remove_old(path)
        if folder.name not in dict(result.best.models):
            continue
        settings, present = result.best[folder.name], result.present[folder.name]
        if settings != present:
            path.parent.mkdir(parents=True, exist_ok=True)
            reasons = _reasons(result, folder.name, facts)
            text = describe_changes(repository.config(folder, settings), reasons)
            path.write_text(text, encoding="utf-8")


def _remove_old(path: Path) -> None:
    """Delete a file that an earlier search wrote."""
    if path.is_file() and path.read_text(encoding="utf-8", errors="replace").startswith(_FIRST_WORDS):
        path.unlink()


def _reasons(result: TuneResult, model: str, facts: Facts) -> list[str]:
    settings, present = result.best[model], result.present[model]
    lines = [
        f"{_FIRST_WORDS.removeprefix('# ')} on {datetime.now(UTC):%Y-%m-%d}.",
        str(result),
        f"Before: {present}. Now: {settings}.",
        f"Measured on {facts.machine}, with {facts.server}, {facts.data}.",
    ]
    rejected = [
        f"Tried, {trial.outcome}: {trial.candidate[model]}"
        for trial in result.trials.values()
        if trial.model == model and trial.outcome not in (Outcome.BEST, Outcome.PRESENT)
    ]
    return [*lines, *rejected]


# --- the benchmark ----------------------------------------------------------------------------------------


def _write_benchmark(result: TuneResult, facts: Facts) -> None:
    """Write a row for the present configuration and one for the best, with the rate of each."""
    path, is_first = result.folder / BENCHMARK, True
    path.unlink(missing_ok=True)
    for name, candidate in (("present", result.present), ("tuned", result.best)):
        steps = _confirmed(result, candidate)
        if steps and (name == "present" or candidate != result.present):
            metadata = BenchmarkMetadata(
                configuration=f"{result.model} {name}",
                instance_type=facts.instance_type,
                instance_type_source="local" if facts.instance_type == "local" else "endpoint",
            )
            write_results(path, metadata, steps, append=not is_first)
            is_first = False


def _confirmed(result: TuneResult, candidate: Candidate) -> list[StepResult]:
    """Return the longest step below the rate of a candidate that was held, and one above that was not."""
    rate = result.rate(candidate)
    steps = [step.result for step in result.steps if step.candidate == candidate]
    held = [each for each in steps if each.verdict is Verdict.HELD and each.rate <= rate * 1.001]
    if not held:
        return []
    best = max(held, key=lambda each: (round(each.seconds), each.rate))
    missed = [each for each in steps if each.verdict is Verdict.NOT_HELD and each.rate > best.rate]
    return [best, *sorted(missed, key=lambda each: each.rate)[:1]]
