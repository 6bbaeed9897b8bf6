"""The time of a simulation: ``python benchmarks/simulation.py [--rounds N]``.

Prints the seconds of CPU for 24 hours of traffic, minute by minute, with one target tracking policy
and with two policies and a schedule.
"""

from __future__ import annotations

import argparse
import time

from constructs_triton_tools.planning import Fleet, Traffic, simulate
from constructs_triton_tools.planning.scaling import Scaling, ScheduledAction, TargetTracking

ONE = Scaling(min_capacity=2, max_capacity=25, policies=(TargetTracking(target=667.5),))
SEVERAL = Scaling(
    min_capacity=2,
    max_capacity=25,
    policies=(TargetTracking(target=667.5), TargetTracking(target=60, metric="GPUUtilization")),
    schedules=(ScheduledAction(schedule="cron(0 8 ? * MON-FRI *)", min_capacity=6),),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--rounds", type=int, default=20, help="simulations of each kind (default: 20)"
    )
    arguments = parser.parse_args()
    day = Traffic.pattern("diurnal", low=835, high=12200)
    fleet = Fleet(invocations_per_minute=1335, price_per_hour=0.94)
    for name, scaling in (("one policy", ONE), ("two policies and a schedule", SEVERAL)):
        seconds = []
        for _ in range(arguments.rounds):
            start = time.process_time()
            result = simulate(day, scaling, fleet)
            seconds.append(time.process_time() - start)
        print(f"24 hours, {name:27} {min(seconds) * 1000:6.1f} ms of CPU; cost {result.cost}")


if __name__ == "__main__":
    main()
