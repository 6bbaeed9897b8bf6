"""A user's mistakes: type checkers report each line that is marked, and no other."""

from __future__ import annotations

import aws_cdk as cdk

from constructs_triton import (
    EndpointOptions,
    InstanceType,
    TritonModelRepository,
    TritonVariant,
)
from constructs_triton import (
    TritonMultiModelEndpoint as MultiModel,  # shorter, so that each mistake fits on a line
)

GPU = InstanceType.of("ml.g5.xlarge")
HOUR = cdk.Duration.hours(1)


def add_endpoints(stack: cdk.Stack, models: TritonModelRepository, shared: EndpointOptions) -> None:
    """One mistake per line."""
    MultiModel(stack, "A", model_repository=models, instance_typ=GPU, **shared)  # misspelt
    MultiModel(stack, "B", model_repository=models, instance_type="ml.g5.xlarge")  # wrong type
    MultiModel(stack, "F", model_repository=models, instance_type=GPU, variants=[3])  # element
    MultiModel(stack, "G", model_repository=models, instance_type=GPU, volume_size=50)  # number
    TritonVariant(variant_name="Blue", initial_instance_count=HOUR)  # a duration for a number
    TritonVariant(variant_name="Blue", model_data_download_timeout=600)  # a number for a duration
    TritonVariant(variant_name="Blue", endpoint_name="digits")  # a property of the endpoint alone
    TritonVariant(variant_name="Blue", routing_strategy="RANDON")  # not one of the literals
