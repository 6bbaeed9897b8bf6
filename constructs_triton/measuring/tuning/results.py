"""Writes what a search has found: configuration, benchmark for ``plan``, report and picture."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from constructs_triton.errors import InvalidValueError, MissingDependencyError
from constructs_triton.measuring.load_test.results_file import BenchmarkMetadata, write_results
from constructs_triton.measuring.load_test.step import StepResult, Verdict
from constructs_triton.measuring.plots.tune_plot import plot_tuning
from constructs_triton.measuring.tuning.candidates import Candidate
from constructs_triton.measuring.tuning.outcome import TuneResult
from constructs_triton.measuring.tuning.racing import Outcome
from constructs_triton.measuring.tuning.report import write_report
from constructs_triton.measuring.tuning.repositories import TunedRepository
from constructs_triton.model_config.folder import CONFIG_FILE
from constructs_triton.model_config.text import format_model_config

__all__ = ["write_tuning"]

REPORT, PICTURE, BENCHMARK = "report.md", "report.svg", "benchmark.csv"
_FIRST_WORDS = "Written by `constructs-triton tune`"


def write_tuning(result: TuneResult, repository: TunedRepository) -> None:
    """Write all files to the folder of the result.

    Raises:
        InvalidValueError: a file cannot be written.
    """
    try:
        _write_configs(result, repository)
        write_report(result, repository, result.folder / REPORT)
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
    paths = {folder.name: result.folder / folder.name / CONFIG_FILE for folder in repository.folders}
    for path in paths.values():
        _remove_old(path)
    for folder in repository.changed(result.best):
        reasons = "".join(f"# {line}\n" for line in _reasons(result, folder.name))
        config = format_model_config(repository.config(folder, result.best[folder.name]))
        paths[folder.name].parent.mkdir(parents=True, exist_ok=True)
        paths[folder.name].write_text(reasons + config, encoding="utf-8")


def _remove_old(path: Path) -> None:
    """Delete a file that an earlier search wrote."""
    if path.is_file() and path.read_text(encoding="utf-8", errors="replace").startswith(f"# {_FIRST_WORDS}"):
        path.unlink()


def _reasons(result: TuneResult, model: str) -> Iterator[str]:
    yield f"{_FIRST_WORDS} on {datetime.now(UTC):%Y-%m-%d}."
    yield str(result)
    yield f"Before: {result.present[model]}. Now: {result.best[model]}."
    yield f"Measured on {result.facts.machine}, with {result.facts.server}, {result.facts.data}."
    for trial in result.trials.values():
        if trial.model == model and trial.outcome not in (Outcome.BEST, Outcome.PRESENT):
            yield f"Tried, {trial.outcome}: {trial.candidate[model]}"


# --- the benchmark ----------------------------------------------------------------------------------------


def _write_benchmark(result: TuneResult) -> None:
    """Write a row for the present configuration and one for the best, with the rate of each."""
    path = result.folder / BENCHMARK
    path.unlink(missing_ok=True)
    names = {result.present: "present"}
    names.setdefault(result.best, "tuned")
    for candidate, name in names.items():
        if steps := _confirmed(result, candidate):
            metadata = BenchmarkMetadata(
                configuration=f"{result.model} {name}",
                instance_type=result.facts.instance_type,
                instance_type_source="local" if result.facts.instance_type == "local" else "endpoint",
            )
            write_results(path, metadata, steps, append=path.exists())


def _confirmed(result: TuneResult, candidate: Candidate) -> list[StepResult]:
    """Return the step nearest below the rate of a candidate that was held, and one above that was not."""
    rate = result.rate(candidate)
    steps = [step.result for step in result.steps if step.candidate == candidate]
    held = [each for each in steps if each.verdict is Verdict.HELD and each.rate <= rate * 1.001]
    if not held:
        return []
    best = max(held, key=lambda each: (each.rate, each.seconds))
    missed = [each for each in steps if each.verdict is Verdict.NOT_HELD and each.rate > best.rate]
    return [best, *sorted(missed, key=lambda each: each.rate)[:1]]
