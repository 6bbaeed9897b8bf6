"""Where inference components exist and may scale to zero instances, and how calls of them are
refused.

The lists and their sources are in ``inference_components.json``. Sources of the header and the
messages: botocore's service model of sagemaker-runtime; messages that the service has been seen to
send (aws-samples/sagemaker-genai-hosting-examples, BerriAI/litellm#37766,
aws-samples/amazon-kendra-langchain-extensions#64).
"""

from __future__ import annotations

from constructs_triton_core.facts import load

__all__ = [
    "COMPONENT_HEADER",
    "HEADER_NOT_ALLOWED",
    "HEADER_REQUIRED",
    "NO_CAPACITY",
    "cloudformation_regions",
    "is_without_zero_instances",
]

COMPONENT_HEADER = "X-Amzn-SageMaker-Inference-Component"
HEADER_REQUIRED = (
    "Inference Component Name header is required for endpoints to which you plan to deploy "
    "inference components. Please include Inference Component "
    "Name header or consider using SageMaker models."
)
HEADER_NOT_ALLOWED = (
    "Inference Component Name header is not allowed for endpoints to which you dont plan to deploy "
    "inference components. Please remove the Inference Component Name header and try again."
)
NO_CAPACITY = (
    "Inference Component has no capacity to process this request. ApplicationAutoScaling may be "
    "in-progress (if configured) or try to increase the capacity by invoking "
    "UpdateInferenceComponentRuntimeConfig API."
)


def cloudformation_regions() -> tuple[str, ...]:
    """Return the Regions in which CloudFormation has ``AWS::SageMaker::InferenceComponent``."""
    return tuple(load("inference_components")["cloudformation_regions"])


def is_without_zero_instances(region: str) -> bool:
    """Return whether SageMaker is known to refuse a minimum of 0 instances in a Region.

    AWS publishes no list, so other Regions may refuse it too.
    """
    return region in load("inference_components")["without_zero_instances"]
