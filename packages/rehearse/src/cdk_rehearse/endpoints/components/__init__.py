"""Inference components as SageMaker treats them.

Sources: botocore's service model of SageMaker; SageMaker developer guide, "Deploy models for
real-time inference" and "Scale an endpoint to zero instances"; messages that the service has been
seen to send. What no source settles is refused, so that no rehearsal depends on a guess.
"""

from .api import InferenceComponents
from .rules import check_config
from .runtime import Runtime
from .scaling import CopyScaling

__all__ = ["CopyScaling", "InferenceComponents", "Runtime", "check_config"]
