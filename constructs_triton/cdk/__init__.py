"""The constructs: a checked model repository and the SageMaker endpoints that serve it.

The only part of the package that imports ``aws_cdk``. The public names are also names of
``constructs_triton`` itself, where they resolve on first use.
"""

from __future__ import annotations

from constructs_triton.cdk._archive_assets import ModelArchive
from constructs_triton.cdk._endpoint_props import EndpointOptions
from constructs_triton.cdk.alarms import AlarmThresholds, TritonAlarms
from constructs_triton.cdk.async_inference import AsyncInference
from constructs_triton.cdk.core_dump import CoreDump
from constructs_triton.cdk.dashboard import TritonDashboard
from constructs_triton.cdk.data_capture import DataCapture
from constructs_triton.cdk.deployment import CapacitySize, Deployment
from constructs_triton.cdk.endpoint import (
    ITritonEndpoint,
    TritonEndpoint,
    TritonEnsembleEndpoint,
    TritonMultiModelEndpoint,
)
from constructs_triton.cdk.image import TritonImage
from constructs_triton.cdk.imported_endpoint import ImportedTritonEndpoint
from constructs_triton.cdk.metrics_config import MetricsConfig
from constructs_triton.cdk.model_repository import TritonModelRepository
from constructs_triton.cdk.model_source import ModelSource
from constructs_triton.cdk.production_variant import TritonVariant
from constructs_triton.cdk.repository_check import RepositoryCheck
from constructs_triton.cdk.scaling import TritonScalableInstanceCount
from constructs_triton.cdk.target_model import TargetModel, TargetModelNaming
from constructs_triton.cdk.variant import EndpointVariant
from constructs_triton.cdk.vpc_endpoints import TritonVpcEndpoints
from constructs_triton.facts.environment import TritonEnvironment
from constructs_triton.facts.inference_ami import InferenceAmi
from constructs_triton.facts.instance_types import InstanceType

__all__ = [
    "AlarmThresholds",
    "AsyncInference",
    "CapacitySize",
    "CoreDump",
    "DataCapture",
    "Deployment",
    "EndpointOptions",
    "EndpointVariant",
    "ITritonEndpoint",
    "ImportedTritonEndpoint",
    "InferenceAmi",
    "InstanceType",
    "MetricsConfig",
    "ModelArchive",
    "ModelSource",
    "RepositoryCheck",
    "TargetModel",
    "TargetModelNaming",
    "TritonAlarms",
    "TritonDashboard",
    "TritonEndpoint",
    "TritonEnsembleEndpoint",
    "TritonEnvironment",
    "TritonImage",
    "TritonModelRepository",
    "TritonMultiModelEndpoint",
    "TritonScalableInstanceCount",
    "TritonVariant",
    "TritonVpcEndpoints",
]
