"""The time of failures in a rehearsal: `python benchmarks/rehearsal.py [--resources N ...]`.

Prints, for the first deployment of stacks of 40, 80 and 160 resources, the seconds of CPU without
failures and with a failure at each step. A failure undoes all steps before it, so twice the
resources are four times the undone steps: ``growth`` is the time of an undone step, times that of
half the resources, and must not be more than one. The last line has the memory of the process and
of the largest copy.
"""

from __future__ import annotations

import argparse
import resource

from cdk_rehearse.updates.simulation import simulate
from cdk_rehearse.updates.versions import NONE, Failures, Request, Version, read_version
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
        undone = count * (count + 1) / 2
        each = failures / undone * 1000
        growth = f"; growth {each / former:.2f}" if former else ""
        print(
            f"{count:4} resources: {calm:6.2f} s without failures, {failures:6.2f} s for failures, "
            f"{failures / count * 1000:5.0f} ms each, {each:5.2f} ms for an undone step{growth}",
            flush=True,
        )
        former = each
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


def seconds(new: Version, failures: Failures) -> float:
    """The seconds of CPU of a rehearsal, with those of the copies of this process."""
    start = cpu()
    simulate(Request(NONE, new, failures=failures))
    return cpu() - start


def cpu() -> float:
    """The seconds of CPU of this process and of all that it has started."""
    used = 0.0
    for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
        usage = resource.getrusage(who)
        used += usage.ru_utime + usage.ru_stime
    return used


if __name__ == "__main__":
    main()
