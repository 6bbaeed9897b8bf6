"""From a local endpoint to the simulation of its scaling,
with the commands of the planning guide.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from local_assembly import AssemblyBuilder, adding_model, below
from triton_server import needs_server

from constructs_triton.cli import main
from constructs_triton_tools.local import LocalEndpoint

BUDGET_MINUTES = 1
pytestmark = needs_server

# No timing is asserted: a busy machine still answers within a minute.
RATES = ("--rates", "40", "50", "60")
STEPS = (*RATES, "--step-seconds", "1", "--warm-up-seconds", "0", "--latency-ms", "60000")


def test_measure_choose_simulate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Rates that the server holds become a plan, and the plan becomes a simulation,
    each with a figure.
    """
    builder = AssemblyBuilder(tmp_path / "cdk.out").serve(
        "Adding", below("m", adding_model(1)), "adding"
    )
    benchmark, ramp, plan, simulation = (
        str(tmp_path / name) for name in ("benchmark.csv", "ramp.svg", "plan.svg", "simulation.svg")
    )
    with LocalEndpoint.from_assembly(builder.write()) as local:
        target = ("adding", "--endpoint-url", local.endpoint_url, "--input", "X=1.0:FP32")
        assert main(["load-test", *target, *STEPS, "-o", benchmark, "--plot", ramp]) == 0
    assert capsys.readouterr().out.count("  held\n") == 3
    load = ("--requests-per-second", "500", "--price", "local=1")
    assert main(["plan", benchmark, *load, "--plot", plan, "--json"]) == 0
    chosen = json.loads(capsys.readouterr().out)["cheapest"]
    assert chosen["instance_type"] == "local"
    bounds = ("--min-capacity", "1", "--max-capacity", str(chosen["max_capacity"]))
    policy = (
        "--target",
        str(chosen["target_invocations_per_minute"]),
        *bounds,
        "--price-per-hour",
        "1",
    )
    throughput = ("--throughput", str(chosen["invocations_per_minute"]))
    traffic = ("--pattern", "diurnal", "--low", "3000", "--high", "30000")
    assert main(["simulate", *traffic, *throughput, *policy, "--plot", simulation, "--json"]) == 0
    peak = json.loads(capsys.readouterr().out)["peak_instances"]
    assert chosen["initial_instance_count"] < peak <= chosen["max_capacity"]
    assert all(Path(figure).stat().st_size for figure in (ramp, plan, simulation))
