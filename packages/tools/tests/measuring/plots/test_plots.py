"""The figures of plans, measurements and load tests."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import pytest

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_tools.measuring.load_test.samples import Recording, Sample, StreamTimes
from constructs_triton_tools.measuring.load_test.step import (
    Limits,
    StepResult,
    StepSettings,
    evaluate,
)
from constructs_triton_tools.measuring.load_test.stream_figures import StreamLimits
from constructs_triton_tools.measuring.plots import plot_measurements, plot_plans
from constructs_triton_tools.measuring.plots.load_test_plot import plot_load_test
from constructs_triton_tools.planning import Measurement, Plan, Requirement, cheapest, plan_all
from constructs_triton_tools.planning.capacity import pareto_front


def measured(name: str, per_minute: float, latency: float) -> Measurement:
    return Measurement(
        configuration=name,
        instance_type="ml.g5.xlarge",
        invocations_per_minute=per_minute,
        latency_ms=latency,
        price_per_hour=1,
    )


def has_labels(path: Path, *labels: str) -> bool:
    """Whether a figure has each of these texts."""
    text = path.read_text()
    return all(f"<!-- {label} -->" in text for label in labels)


def plans(*rows: tuple[str, float, float], **requirement: Any) -> list[Plan]:
    required = Requirement(**{"requests_per_second": 100, **requirement})
    return plan_all([measured(*row) for row in rows], required)


def step(rate: float, latency: float, count: int = 1000, status: int = 200) -> StepResult:
    samples = [Sample(0.0, latency, status)] * count
    return evaluate(rate, StepSettings(seconds=10), Limits(latency_ms=100), [Recording(samples)])


def test_svg_is_readable_on_a_dark_page(tmp_path: Path) -> None:
    """An SVG file has a rule for dark pages."""
    path = tmp_path / "ramp.svg"
    plot_load_test([step(100, 0.02)], path, Limits(latency_ms=100))
    assert path.read_text().count("prefers-color-scheme: dark") == 1


def test_front_has_the_plans_that_no_other_beats() -> None:
    """A plan that costs the same and is slower, or is as fast and costs more,
    is not on the front.
    """
    found = plans(("a", 600, 80), ("b", 600, 90), ("c", 1200, 120), ("d", 300, 80), ("e", 200, 20))
    assert [plan.configuration for plan in pareto_front(found)] == ["c", "a", "e"]
    assert pareto_front([]) == []


def test_plan_figure_names_the_choice_and_the_front(tmp_path: Path) -> None:
    """The title is the choice; the points of the front have the configuration
    and the instance type.
    """
    path = tmp_path / "plan.svg"
    found = plans(("a", 600, 80), ("c", 1200, 120), ("d", 300, 200), latency_ms=100)
    plot_plans(found, path, chosen=cheapest(found))
    choice = "a on ml.g5.xlarge: 10 instances at 10 per hour"
    assert has_labels(path, choice, "limit 100 ms", "Pareto front", "others")
    with pytest.raises(InvalidValueError, match=r"plans: must contain at least one plan"):
        plot_plans([], path)


def test_figure_without_a_limit_or_a_choice(tmp_path: Path) -> None:
    """One plan without a limit has no line for it, and a limit that is not met is the title."""
    (only,) = plans(("a", 600, 80))
    plot_plans([only], tmp_path / "one.svg", chosen=only)
    assert "limit" not in (tmp_path / "one.svg").read_text()
    plot_plans(plans(("a", 600, 80), latency_ms=5), tmp_path / "none.svg")
    assert has_labels(tmp_path / "none.svg", "No configuration is within 5 ms")


def test_names_are_drawn_as_they_are(tmp_path: Path) -> None:
    """A name with dollar signs is no formula, and a long one leaves room for the axes."""
    path = tmp_path / "plan.svg"
    names = ["batch $4_to_$8", r"$\frac{$", "-->&<%s{}", "x" * 5000]
    found = plans(*((name, 600 * (n + 1), 80 + 20 * n) for n, name in enumerate(names)))
    assert pareto_front(found) == sorted(found, key=lambda plan: plan.cost_per_hour)
    plot_plans(found, path, chosen=found[0])
    text = path.read_text()
    assert all(name[0] in text for name in names)
    assert "x" * 100 not in text
    plot_measurements([each.measurement for each in found], path)


def test_few_series_are_named_and_many_have_colors_of_types(tmp_path: Path) -> None:
    """A legend of twenty configurations would be larger than the figure."""
    path = tmp_path / "throughput.svg"
    plot_measurements(
        [measured("a", 600, 80), measured("a", 900, 90), measured("b", 600, 70)], path
    )
    assert has_labels(path, "a on ml.g5.xlarge")
    plot_measurements([measured(str(n), 600 + n, 80 + n) for n in range(9)], path, latency_ms=100)
    assert has_labels(path, "ml.g5.xlarge", "limit 100 ms")
    with pytest.raises(InvalidValueError, match=r"measurements: must contain at least one row"):
        plot_measurements([], path)


STREAM_LIMITS = StreamLimits(first_token_ms=200, between_tokens_ms=40)


def streams(load: float, first: float, *, by_concurrency: bool) -> StepResult:
    """A step of 100 streams of 11 tokens, with 20 ms between them."""
    times = StreamTimes(first, first + 0.02, first + 0.2, events=11, tokens=11, first_tokens=1)
    limits = Limits(latency_ms=inf, stream=STREAM_LIMITS)
    settings = StepSettings(seconds=10, by_concurrency=by_concurrency)
    return evaluate(
        load, settings, limits, [Recording([Sample(0.0, times.last, 200, times)] * 100)]
    )


@pytest.mark.parametrize(
    ("by_concurrency", "title"),
    [(True, "story holds 4 open streams"), (False, "story holds 10.0 streams per second")],
)
def test_load_test_figure_of_streams(tmp_path: Path, *, by_concurrency: bool, title: str) -> None:
    """The lines are the first token and the time between tokens, each with its limit."""
    path = tmp_path / "ramp.svg"
    steps = [
        streams(load, first, by_concurrency=by_concurrency) for load, first in ((4, 0.1), (8, 0.3))
    ]
    plot_load_test(steps, path, Limits(latency_ms=inf, stream=STREAM_LIMITS), title="story")
    labels = (
        "first token p95",
        "between tokens p50",
        "limit 200 ms",
        "limit 40 ms",
        "not held",
        title,
    )
    subtitle = "p95 first token within 200 ms and between tokens within 40 ms, without errors."
    assert has_labels(path, *labels, subtitle)
    plot_load_test(steps, path, Limits(latency_ms=inf, stream=StreamLimits()), title="story")
    assert has_labels(path, "p95 without a limit, without errors.")


def test_plan_figures_of_streams(tmp_path: Path) -> None:
    """The axis is the figure of the first limit; throughput becomes open streams."""
    rows = [
        replace(measured("a", 600, 900), concurrency=4, first_token_ms=150, between_tokens_ms=30),
        replace(measured("a", 900, 950), concurrency=8, first_token_ms=250, between_tokens_ms=35),
    ]
    required = Requirement(concurrent_streams=100, first_token_ms=200, between_tokens_ms=40)
    found = plan_all(rows, required)
    plot_plans(found, tmp_path / "plan.svg", chosen=cheapest(found))
    subtitle = "For 100 open streams, first token at most 200 ms, between tokens at most 40 ms"
    assert has_labels(
        tmp_path / "plan.svg", "time to first token in ms, logarithmic", "limit 200 ms", subtitle
    )
    plot_measurements([*rows, measured("b", 1, 1)], tmp_path / "steps.svg", between_tokens_ms=40)
    axes = ("time between tokens in ms, logarithmic", "open streams of an instance, logarithmic")
    assert has_labels(tmp_path / "steps.svg", *axes, "limit 40 ms")


def test_load_test_figure_shows_verdicts_and_percentiles(tmp_path: Path) -> None:
    """The title has the highest rate that was held."""
    path = tmp_path / "ramp.svg"
    steps = [step(100, 0.02), step(50, 0.01, 500), step(200, 0.3, 2000), step(400, 0.1, status=500)]
    plot_load_test(steps, path, Limits(latency_ms=100), title="digits")
    verdicts = ("p50", "p95", "p99", "held", "not held", "limit")
    assert has_labels(path, "digits holds 100 requests per second", *verdicts)
    plot_load_test([step(200, 0.3)], path, Limits(latency_ms=100))
    assert has_labels(path, "The endpoint holds none of the rates")
    with pytest.raises(InvalidValueError, match=r"steps: no request was answered"):
        plot_load_test([step(400, 0.1, status=500)], path, Limits(latency_ms=100))
