"""The constructs: a checked model repository and the SageMaker endpoints that serve it.

The only part of the package that imports ``aws_cdk``. The public names are also names of
``constructs_triton`` itself, where they resolve on first use.
"""

from __future__ import annotations

from constructs_triton.cdk._archive_assets import ModelArchive
from constructs_triton.cdk._endpoint_props import EndpointOptions
from constructs_triton.cdk.endpoint import (
    ITritonEndpoint,
    TritonEndpoint,
    TritonEnsembleEndpoint,
    TritonMultiModelEndpoint,
)
from constructs_triton.cdk.image import TritonImage
from constructs_triton.cdk.model_repository import TritonModelRepository
from constructs_triton.cdk.model_source import ModelSource
from constructs_triton.cdk.scaling import TritonScalableInstanceCount
from constructs_triton.cdk.variant import EndpointVariant
from constructs_triton.facts.environment import TritonEnvironment
from constructs_triton.facts.inference_ami import InferenceAmi
from constructs_triton.facts.instance_types import InstanceType

__all__ = [
    "EndpointOptions",
    "EndpointVariant",
    "ITritonEndpoint",
    "InferenceAmi",
    "InstanceType",
    "ModelArchive",
    "ModelSource",
    "TritonEndpoint",
    "TritonEnsembleEndpoint",
    "TritonEnvironment",
    "TritonImage",
    "TritonModelRepository",
    "TritonMultiModelEndpoint",
    "TritonScalableInstanceCount",
]
