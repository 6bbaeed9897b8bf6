"""How much the stacks can cost at most."""

from __future__ import annotations

from collections.abc import Iterable

from .questions import Question

# US dollars per hour of real-time inference in us-east-1
# (https://aws.amazon.com/sagemaker/ai/pricing/). Other Regions cost up to 60 percent more.
_PRICES = {"ml.m5.large": 0.115, "ml.g4dn.xlarge": 0.7364, "ml.g4dn.12xlarge": 4.89}
_REGION_FACTOR = 1.6


def estimate(questions: Iterable[Question]) -> str:
    """A table of the instances of each stack, with an upper limit of the cost."""
    lines = ["Each stack is destroyed after its question. Upper limit of the cost:"]
    total = 0.0
    for each in questions:
        cost = each.instances * each.minutes / 60 * _PRICES[each.instance_type] * _REGION_FACTOR
        total += cost
        lines.append(
            f"  {each.stack:<30} {each.instances} x {each.instance_type:<15} "
            f"{each.minutes} min  ${cost:.2f}"
        )
    lines.append(f"  total ${total:.2f}. Storage, logs and metrics cost a few cents more.")
    return "\n".join(lines)
