"""The figure of a simulation."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from constructs_triton_core.errors import InvalidValueError, MissingDependencyError
from constructs_triton_tools.measuring.plots import plot_simulation
from constructs_triton_tools.planning import Fleet, Traffic, simulate
from constructs_triton_tools.planning.scaling import Scaling, TargetTracking
from constructs_triton_tools.planning.simulation_result import Simulation


def simulation(pattern: str = "spike") -> Simulation:
    scaling = Scaling(min_capacity=2, max_capacity=25, policies=(TargetTracking(target=667.5),))
    fleet = Fleet(invocations_per_minute=1335, price_per_hour=0.94)
    return simulate(Traffic.pattern(pattern, low=2000, high=15000), scaling, fleet)


@pytest.mark.parametrize(
    ("ending", "start"), [("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")]
)
def test_ending_sets_the_format(tmp_path: Path, ending: str, start: bytes) -> None:
    """SVG, PNG and PDF."""
    path = tmp_path / f"spike.{ending}"
    plot_simulation(simulation(), path)
    assert path.read_bytes().startswith(start)


def test_same_simulation_has_the_same_bytes(tmp_path: Path) -> None:
    """A figure in a repository changes only when its simulation does.

    By default matplotlib does not promise this:
    https://github.com/matplotlib/matplotlib/issues/23693.
    """
    for name in ("a.svg", "b.svg"):
        plot_simulation(simulation("diurnal"), tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_folder_must_exist(tmp_path: Path) -> None:
    """The message names the folder."""
    with pytest.raises(
        InvalidValueError, match=r"plot: the folder .*absent does not exist; create it"
    ):
        plot_simulation(simulation(), tmp_path / "absent" / "spike.svg")


def test_missing_matplotlib_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message has the command that installs it."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'constructs-triton\[plots\]'"):
        plot_simulation(simulation(), tmp_path / "spike.svg")
