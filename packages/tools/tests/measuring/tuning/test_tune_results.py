"""Sentences and files of a search, from a search on simulated models."""

from __future__ import annotations

import csv
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from simulated_models import LATENCY_MS, Cost, SimulatedModels, fixed_per_batch, per_item

from constructs_triton_tools.measuring.load_test.step import Limits, StepResult, Verdict
from constructs_triton_tools.measuring.tuning.axes import search
from constructs_triton_tools.measuring.tuning.bench import BenchStep
from constructs_triton_tools.measuring.tuning.candidates import (
    Candidate,
    ModelSettings,
    SearchSpace,
)
from constructs_triton_tools.measuring.tuning.outcome import (
    Facts,
    TuneResult,
    choose,
    compare_finalists,
    find_notes,
)
from constructs_triton_tools.measuring.tuning.racing import (
    CandidateRefusedError,
    MeasuredStep,
    Outcome,
    Race,
)
from constructs_triton_tools.measuring.tuning.repositories import TunedRepository
from constructs_triton_tools.measuring.tuning.results import write_tuning
from constructs_triton_tools.measuring.tuning.rounds import choose_finalists, measure_rounds
from constructs_triton_tools.planning import read_measurements
from triton_model_check.model_repository import ModelRepository

PRESENT = Candidate.of(m=ModelSettings())
FACTS = Facts(
    machine="2 CPUs", server="nvidia-pytriton", data="32 random requests", shares_cpus=True
)
CONFIG = 'backend: "python" max_batch_size: 64\n'


class Recorder:
    """Measures simulated models, and keeps each step as the bench does."""

    def __init__(self, models: SimulatedModels) -> None:
        self.models = models
        self.steps: list[BenchStep] = []

    def measure(self, candidate: Candidate, rate: float, seconds: float) -> MeasuredStep:
        """Measure a step, and keep it with the figures of a load test."""
        step = self.models.measure(candidate, rate, seconds)
        count = int(rate * seconds)
        result = StepResult(
            rate=rate,
            seconds=seconds,
            requests=count,
            good=count,
            errors=0,
            shed=0,
            latency_ms=step.latency_ms,
            p50_ms=step.latency_ms / 2,
            p99_ms=None,
            service_ms=step.latency_ms,
            late_p99_ms=1.0,
            cpu=0.1,
            statuses={},
            first_error="",
            verdict=Verdict.HELD if step.is_held else Verdict.NOT_HELD,
            reason="",
        )
        times = {"m": {"queue_ms": 1.0, "compute_ms": 2.0, "batch": 3.0}}
        self.steps.append(BenchStep(candidate, result, times, 0.5, 0))
        return step


def run(models: SimulatedModels, folder: Path, **changes: Any) -> TuneResult:
    """Search and compare; a model without refusals is searched once for all tests."""
    result = search_and_compare(models) if models.refusals else search_once(models.costs["m"])
    return replace(result, folder=folder, **changes)


@cache
def search_once(cost: Cost) -> TuneResult:
    return search_and_compare(SimulatedModels({"m": cost}))


def search_and_compare(models: SimulatedModels) -> TuneResult:
    """Search the settings of a model, then compare the finalists in rounds."""
    recorder = Recorder(models)
    race = Race(recorder.measure, PRESENT)
    race.begin(6.0)
    search(race, {"m": SearchSpace(2, 64, delays_microseconds=(7500,))})

    rates = {candidate: race.trials[candidate].rate for candidate in choose_finalists(race)}
    rounds = list(
        measure_rounds(recorder.measure, rates, latency_ms=LATENCY_MS, seconds=20, rounds=5)
    )
    comparisons = compare_finalists(PRESENT, rounds)
    return TuneResult(
        model="m",
        limits=Limits(latency_ms=LATENCY_MS),
        present=PRESENT,
        trials=race.trials,
        best=choose(PRESENT, race.best, comparisons),
        facts=FACTS,
        rounds=rounds,
        comparisons=comparisons,
        steps=recorder.steps,
        notes=find_notes(PRESENT, race.trials, rounds),
    )


def write(result: TuneResult, tmp_path: Path) -> None:
    """Write the files of a result, for a repository with the present configuration."""
    model = tmp_path / "models" / "m"
    (model / "1").mkdir(parents=True, exist_ok=True)
    (model / "1" / "model.py").write_text("")
    (model / "config.pbtxt").write_text(CONFIG)
    result.folder.mkdir(exist_ok=True)
    repository = ModelRepository.from_directory(tmp_path / "models")
    write_tuning(result, TunedRepository(repository, "m", PRESENT))


def test_files_of_a_better_configuration(tmp_path: Path) -> None:
    """The first line of the report says what is better,
    and the configuration has the reasons as comments.
    """
    result = run(SimulatedModels({"m": fixed_per_batch}), tmp_path / "tuned")
    write(result, tmp_path)
    report = (tmp_path / "tuned" / "report.md").read_text()
    assert report.startswith("With 1 instance, batches up to ")
    assert "times your configuration (95% confidence: " in report.splitlines()[0]
    assert "+dynamic_batching {" in report
    config = (tmp_path / "tuned" / "m" / "config.pbtxt").read_text()
    assert "# Before: 1 instance, no dynamic batching. Now: 1 instance, batches up to" in config
    assert "# Tried, below the best: " in config
    settings = result.best["m"]
    assert f"max_batch_size: {settings.batch}\n" in config
    assert b"<svg" in (tmp_path / "tuned" / "report.svg").read_bytes()


def test_benchmark_has_the_rates_that_were_compared(tmp_path: Path) -> None:
    """``plan`` reads the benchmark, and its rates are within 20 percent below those of the
    comparison.

    A longer step at a low rate does not change that.
    """
    result = run(SimulatedModels({"m": fixed_per_batch}), tmp_path / "tuned")
    first, *others = result.steps
    longer = replace(first, result=replace(first.result, seconds=60))
    result = replace(result, steps=[longer, *others])

    write(result, tmp_path)

    path = tmp_path / "tuned" / "benchmark.csv"
    rows = {row["configuration"]: row for row in csv.DictReader(path.read_text().splitlines())}
    for name, candidate in (("m present", PRESENT), ("m tuned", result.best)):
        rate = float(rows[name]["invocations_per_minute"]) / 60
        assert 0.8 * result.rate(candidate) < rate <= result.rate(candidate)
    assert [row.configuration for row in read_measurements(path)] == ["m present", "m tuned"]


def test_a_difference_that_may_be_chance_keeps_the_present(tmp_path: Path) -> None:
    """If the interval of the ratio contains 1, the result is the present configuration."""
    result = run(SimulatedModels({"m": fixed_per_batch}), tmp_path / "tuned")
    rounds = [{PRESENT: 10.0, result.best: 10.0 + noise} for noise in (-1, 1, -0.5, 0.6, 0.2)]
    comparisons = compare_finalists(PRESENT, rounds)
    write(result, tmp_path)
    kept = replace(
        result,
        rounds=rounds,
        comparisons=comparisons,
        best=choose(PRESENT, result.best, comparisons),
    )
    write(kept, tmp_path)
    assert kept.best == PRESENT
    assert str(kept).startswith(
        "Keep your configuration: it holds 10.0 requests per second within 150 ms"
    )
    assert "is not distinguishable from it" in str(kept)
    assert not (tmp_path / "tuned" / "m" / "config.pbtxt").exists()


def test_a_search_that_tried_nothing_else_says_so(tmp_path: Path) -> None:
    """If the budget ends after the present configuration, the sentence does not recommend it."""
    result = run(SimulatedModels({"m": fixed_per_batch}), tmp_path / "tuned")
    ended = replace(
        result, best=PRESENT, rounds=[], comparisons={}, trials={PRESENT: result.trials[PRESENT]}
    )
    assert str(ended).endswith("No other one was tried; raise the budget of time.")
    assert "Keep your configuration" not in str(ended)


def test_simplest_of_equals_is_chosen() -> None:
    """Of two configurations within 3 percent of each other,
    the one with fewer instances is chosen.
    """
    one = Candidate.of(m=ModelSettings(1, 8))
    two = Candidate.of(m=ModelSettings(2, 8))
    rounds = [{PRESENT: 10.0 + n, one: 19.8 + 2 * n, two: 20.0 + 2 * n} for n in (0.0, 0.1, 0.2)]
    assert choose(PRESENT, two, compare_finalists(PRESENT, rounds)) == one


def test_interrupted_search_says_that_nothing_is_confirmed(tmp_path: Path) -> None:
    """Without a comparison, the sentence says that the best is not confirmed,
    and the files are written.
    """
    full = run(SimulatedModels({"m": fixed_per_batch}), tmp_path / "tuned")
    result = replace(full, rounds=full.rounds[:1], comparisons={}, is_interrupted=True)
    write(result, tmp_path)
    assert result.rate(result.best) == result.trials[result.best].rate
    assert str(result).startswith("Not confirmed: with 1 instance, batches up to ")
    assert (tmp_path / "tuned" / "m" / "config.pbtxt").exists()


def test_stand_in_is_in_the_first_line(tmp_path: Path) -> None:
    """A result of a stand-in says so before anything else."""
    sentence = "Figures of a Python stand-in, not of the backend onnxruntime."
    result = run(SimulatedModels({"m": per_item}), tmp_path / "tuned", stand_in=sentence)
    write(result, tmp_path)
    assert (tmp_path / "tuned" / "report.md").read_text().startswith(f"{sentence} With 2 instances")


def test_model_that_mixes_a_batch_is_named(tmp_path: Path) -> None:
    """A batch that changes the outputs is named in a note and in the table."""
    wrong = Candidate.of(m=ModelSettings(1, 2))
    refusals = {wrong: CandidateRefusedError("output Y: 4 of 4 values differ", is_wrong=True)}
    result = run(SimulatedModels({"m": fixed_per_batch}, refusals=refusals), tmp_path / "tuned")
    write(result, tmp_path)
    assert result.notes[0].startswith("m: its outputs change with 1 instance, batches up to 2")
    assert f"| {Outcome.WRONG}: output Y: 4 of 4" in (tmp_path / "tuned" / "report.md").read_text()


@pytest.mark.parametrize(("factor", "is_noted"), [(1.0, False), (0.7, True)])
def test_machine_that_changed_is_noted(tmp_path: Path, factor: float, is_noted: bool) -> None:
    """If the present configuration is slower in the comparison than in the search,
    the report says so.
    """
    result = run(SimulatedModels({"m": per_item}), tmp_path / "tuned")
    rate = factor * result.trials[PRESENT].rate
    notes = find_notes(PRESENT, result.trials, [{PRESENT: rate, result.best: 2 * rate}])
    assert any("the machine changed in between" in note for note in notes) is is_noted


def test_json_has_the_sentence_and_every_candidate(tmp_path: Path) -> None:
    """The JSON form has the sentence of the report, the ratio and each candidate that was tried."""
    result = run(SimulatedModels({"m": per_item}), tmp_path / "tuned")
    values = result.to_dict()
    assert values["sentence"] == str(result)
    comparison = values["comparison"]
    assert comparison["low"] <= comparison["ratio"] <= comparison["high"]
    assert len(values["tried"]) == len(result.trials)


def test_search_that_ends_before_the_first_rate_says_so(tmp_path: Path) -> None:
    """Without a rate of the present configuration,
    the sentence does not claim that it holds none.
    """
    full = run(SimulatedModels({"m": per_item}), tmp_path / "tuned")
    result = replace(full, rounds=[], comparisons={}, best=PRESENT, trials={}, steps=full.steps[:2])
    write(result, tmp_path)
    sentence, _, rest = str(result).partition("; so far it held ")
    assert sentence == "m: the search ended before the rate of your configuration was known"
    assert float(rest.split()[0]) > 0
    nothing = str(replace(result, steps=()))
    assert "so far it held no rate. Run the command again with a larger --budget-minutes" in nothing
    assert not (tmp_path / "tuned" / "benchmark.csv").exists()
