"""The figures that ``make bench AGAINST=<commit>`` compares."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from benchmarking import page
from benchmarking.figures import RUNS, Figure, Run, cell
from benchmarking.versions import PROJECT, Outcome, Version

TIMES = Figure("time against another", r"^ours +<n> ms\ntheirs +<n> ms")


OUTCOMES = {
    "old": Outcome("", "old has no simulation.py"),
    "now": Outcome("24 hours, one policy                     6.1 ms of CPU; cost 236.11"),
}


def test_a_value_is_a_number_or_the_quotient_of_two() -> None:
    """Separators of thousands are read, and each line that fits gives a value."""
    assert Figure("rate", r"^rate +<n>/s").find("rate  1,200/s\nrate  800/s") == [1200, 800]
    assert TIMES.find("ours   30.0 ms\ntheirs  120.0 ms") == [0.25]


@pytest.mark.parametrize(
    ("values", "shown"),
    [([0.25], "0.25"), ([1.31, 1.2, 1.5], "1.31 (1.2 to 1.5)"), ([4563, 6875], "5,719 (4,563 to 6,875)")],
)
def test_a_cell_has_the_median_and_the_spread(values: list[float], shown: str) -> None:
    """A single value has no spread."""
    assert cell(values) == shown


def test_a_figure_that_is_missing_has_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """The table has the values of one commit beside the reason why the other has none."""
    monkeypatch.setattr(Version, "run", lambda version, *_, **__: OUTCOMES[version.name])
    now, old = (Version(name, PROJECT, Path()) for name in ("now", "old"))
    section, failed = page.compare("simulation", now, old, rounds=2)
    assert "| none: old has no simulation.py | 6.1 (6.1 to 6.1) |" in section
    assert failed == ""


def test_a_version_names_a_benchmark_that_it_lacks(tmp_path: Path) -> None:
    """Nothing is run then."""
    assert Version("144ffc7", tmp_path, tmp_path).run("waits").reason == "144ffc7 has no waits.py"


@pytest.mark.parametrize("run", RUNS, ids=lambda run: f"{run.script} {' '.join(run.arguments)}")
def test_every_figure_belongs_to_a_benchmark(run: Run) -> None:
    """The script exists, and has the option --project if it measures another checkout."""
    source = (PROJECT / "benchmarks" / f"{run.script}.py").read_text(encoding="utf-8")
    options = {node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant)}
    assert {each for each in run.arguments if each.startswith("--")} <= options
    assert run.is_shared == ("--project" in options)
