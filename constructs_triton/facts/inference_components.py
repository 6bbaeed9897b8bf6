"""Where CloudFormation creates inference components, and where endpoints may scale to zero instances.

The lists and their sources are in ``inference_components.json``.
"""

from __future__ import annotations

from constructs_triton.facts.published import load

__all__ = ["cloudformation_regions", "is_without_zero_instances"]


def cloudformation_regions() -> tuple[str, ...]:
    """Return the Regions in which CloudFormation has ``AWS::SageMaker::InferenceComponent``."""
    return tuple(load("inference_components")["cloudformation_regions"])


def is_without_zero_instances(region: str) -> bool:
    """Return whether SageMaker is known to refuse a minimum of 0 instances in a Region.

    AWS publishes no list, so other Regions may refuse it too.
    """
    return region in load("inference_components")["without_zero_instances"]
