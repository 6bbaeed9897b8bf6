"""The article's benchmark: the measurements, the requirement and the resulting plan."""

from __future__ import annotations

from pathlib import Path

from constructs_triton_tools.planning import (
    Plan,
    Requirement,
    cheapest,
    plan_all,
    read_measurements,
)

BENCHMARK = Path(__file__).resolve().parent / "benchmark.csv"
# Price of one instance per hour in the article, in USD: cost divided by count.
PRICES = {"ml.g4dn.xlarge": "0.7364", "ml.g4dn.2xlarge": "0.94", "ml.g4dn.12xlarge": "4.89"}
REQUIREMENT = Requirement(requests_per_second=500, latency_ms=500)


def plans() -> list[Plan]:
    """Return a plan for each of the 24 rows, in the order of the article."""
    return plan_all(read_measurements(BENCHMARK), REQUIREMENT, PRICES)


def plan_for(configuration: str | None = None, instance_type: str | None = None) -> Plan:
    """Return the cheapest plan within the latency, or that of the given configuration and instance
    type.

    Raises:
        InvalidValueError: no configuration is within the latency.
        LookupError: no row has these names.
    """
    chosen = [
        plan
        for plan in plans()
        if configuration in (None, plan.configuration)
        and instance_type in (None, plan.instance_type)
    ]
    if configuration is not None and instance_type is not None:
        if not chosen:
            raise LookupError(f"benchmark.csv: no row for {configuration} on {instance_type}")
        return chosen[0]
    return cheapest(chosen)
