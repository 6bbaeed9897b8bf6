"""Computes instance counts, scaling targets and cost from a measured benchmark, and simulates
scaling.

::

    measurements = read_measurements("benchmark.csv")
    requirement = Requirement(requests_per_second=500, latency_ms=500)
    plans = plan_all(measurements, requirement, {"ml.g4dn.xlarge": 0.7364})   # one for each row
    best = cheapest(plans)   # raises InvalidValueError if none meets the latency limit

    scaling = read_scaling("cdk.out/Stack.template.json")
    result = simulate(Traffic.pattern("spike", low=2000, high=15000), scaling, best.fleet())
    result.failed, result.cost, result.advice

You provide the prices: none are built in. Counts and costs are computed exactly, with numbers taken
as the decimals they are written as, so rounding never adds an instance.
"""

from constructs_triton_core.keywords import check_names
from constructs_triton_tools.planning.capacity import Plan, cheapest, plan_all
from constructs_triton_tools.planning.measurements import Measurement, read_measurements
from constructs_triton_tools.planning.prices import read_prices
from constructs_triton_tools.planning.requirement import Requirement
from constructs_triton_tools.planning.scaling import Assumptions, Fleet
from constructs_triton_tools.planning.simulation import simulate
from constructs_triton_tools.planning.template_scaling import read_scaling
from constructs_triton_tools.planning.traffic import Traffic, read_traffic

__all__ = [
    "Assumptions",
    "Fleet",
    "Measurement",
    "Plan",
    "Requirement",
    "Traffic",
    "cheapest",
    "plan_all",
    "read_measurements",
    "read_prices",
    "read_scaling",
    "read_traffic",
    "simulate",
]

check_names(globals(), __all__)
