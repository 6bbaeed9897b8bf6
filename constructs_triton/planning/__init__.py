"""Instances, scaling target and cost from a measured benchmark.

::

    measurements = read_measurements("benchmark.csv")
    requirement = Requirement(requests_per_second=500, latency_ms=500)
    plans = plan_all(measurements, requirement, {"ml.g4dn.xlarge": 0.7364})   # one a row
    best = cheapest(plans)                 # refuses with the reason where none meets the bound

Prices are the caller's: none is built in. Numbers are taken as the decimals they are written as, and counts
and costs are computed exactly, so that a quotient that comes out even needs no instance more.
"""

from constructs_triton.planning.capacity import Plan, Requirement, cheapest, plan_all
from constructs_triton.planning.measurements import Measurement, read_measurements
from constructs_triton.planning.prices import read_prices

__all__ = ["Measurement", "Plan", "Requirement", "cheapest", "plan_all", "read_measurements", "read_prices"]
