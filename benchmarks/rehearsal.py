"""The time of failures in a rehearsal: `python benchmarks/rehearsal.py [--resources N ...]`.

Prints, for the first deployment of stacks of 40, 80 and 160 resources, the seconds of CPU without
failures and with a failure at each step, and the milliseconds of each failure. A failure takes as
long as its rollback, so twice the resources may take four times as long in all, and not more:
``growth`` is the time of all failures, times that of half the resources.
"""

from __future__ import annotations

import argparse
import resource

from cdk_rehearse.updates.simulation import simulate
from cdk_rehearse.updates.versions import NONE, Request, Version, read_version
from constructs_triton_core.cloud_assembly.template import Template


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--resources", type=int, nargs="+", default=[40, 80, 160])
    arguments = parser.parse_args()
    seconds(stack(1), "each")  # reads the service models
    former = 0.0
    for count in arguments.resources:
        new = stack(count)
        calm = seconds(new, "none")
        failures = seconds(new, "each") - calm
        growth = f"; growth {failures / former:.2f}" if former else ""
        print(
            f"{count:4} resources: {calm:6.2f} s without failures, {failures:6.2f} s for failures, "
            f"{failures / count * 1000:5.0f} ms each{growth}",
            flush=True,
        )
        former = failures
    largest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"memory: {own:.0f} MB, largest copy {largest:.0f} MB, most of it shared")


def stack(count: int) -> Version:
    """A stack of topics, each of which has a name of its own."""
    resources = {
        f"T{number}": {"Type": "AWS::SNS::Topic", "Properties": {"TopicName": f"topic-{number}"}}
        for number in range(count)
    }
    return read_version(Template({"Resources": resources}))


def seconds(new: Version, failures: str) -> float:
    """The seconds of CPU of a rehearsal, with those of the copies of this process."""
    start = cpu()
    simulate(Request(NONE, new, failures="each" if failures == "each" else "none"))
    return cpu() - start


def cpu() -> float:
    both = (resource.getrusage(each) for each in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in both)


if __name__ == "__main__":
    main()
