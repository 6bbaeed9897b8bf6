"""AWS CDK constructs for NVIDIA Triton Inference Server on Amazon SageMaker.

Names resolve on first use (PEP 562), so that the client and the command line start no Node process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from constructs_triton.lazy_names import lazy_names

if TYPE_CHECKING:
    from constructs_triton.cdk import AsyncInference as AsyncInference
    from constructs_triton.cdk import CapacitySize as CapacitySize
    from constructs_triton.cdk import CoreDump as CoreDump
    from constructs_triton.cdk import DataCapture as DataCapture
    from constructs_triton.cdk import Deployment as Deployment
    from constructs_triton.cdk import EndpointVariant as EndpointVariant
    from constructs_triton.cdk import ImportedTritonEndpoint as ImportedTritonEndpoint
    from constructs_triton.cdk import ITritonEndpoint as ITritonEndpoint
    from constructs_triton.cdk import MetricsConfig as MetricsConfig
    from constructs_triton.cdk import ModelArchive as ModelArchive
    from constructs_triton.cdk import ModelSource as ModelSource
    from constructs_triton.cdk import RepositoryCheck as RepositoryCheck
    from constructs_triton.cdk import TargetModel as TargetModel
    from constructs_triton.cdk import TargetModelNaming as TargetModelNaming
    from constructs_triton.cdk import TritonAlarms as TritonAlarms
    from constructs_triton.cdk import TritonDashboard as TritonDashboard
    from constructs_triton.cdk import TritonEndpoint as TritonEndpoint
    from constructs_triton.cdk import TritonEnsembleEndpoint as TritonEnsembleEndpoint
    from constructs_triton.cdk import TritonImage as TritonImage
    from constructs_triton.cdk import TritonModelRepository as TritonModelRepository
    from constructs_triton.cdk import TritonMultiModelEndpoint as TritonMultiModelEndpoint
    from constructs_triton.cdk import TritonScalableInstanceCount as TritonScalableInstanceCount
    from constructs_triton.cdk import TritonVariant as TritonVariant
    from constructs_triton.cdk import TritonVpcEndpoints as TritonVpcEndpoints
    from constructs_triton.client import TritonClient as TritonClient
    from constructs_triton.errors import ConstructsTritonError as ConstructsTritonError
    from constructs_triton.facts.environment import TritonEnvironment as TritonEnvironment
    from constructs_triton.facts.inference_ami import InferenceAmi as InferenceAmi
    from constructs_triton.facts.instance_types import InstanceType as InstanceType
    from constructs_triton.findings import Finding as Finding
    from constructs_triton.findings import Severity as Severity

_MODULE_OF = {
    "AsyncInference": "constructs_triton.cdk",
    "CapacitySize": "constructs_triton.cdk",
    "ConstructsTritonError": "constructs_triton.errors",
    "CoreDump": "constructs_triton.cdk",
    "DataCapture": "constructs_triton.cdk",
    "Deployment": "constructs_triton.cdk",
    "EndpointVariant": "constructs_triton.cdk",
    "Finding": "constructs_triton.findings",
    "ITritonEndpoint": "constructs_triton.cdk",
    "ImportedTritonEndpoint": "constructs_triton.cdk",
    "InferenceAmi": "constructs_triton.facts.inference_ami",
    "InstanceType": "constructs_triton.facts.instance_types",
    "MetricsConfig": "constructs_triton.cdk",
    "ModelArchive": "constructs_triton.cdk",
    "ModelSource": "constructs_triton.cdk",
    "RepositoryCheck": "constructs_triton.cdk",
    "Severity": "constructs_triton.findings",
    "TargetModel": "constructs_triton.cdk",
    "TargetModelNaming": "constructs_triton.cdk",
    "TritonAlarms": "constructs_triton.cdk",
    "TritonClient": "constructs_triton.client",
    "TritonDashboard": "constructs_triton.cdk",
    "TritonEndpoint": "constructs_triton.cdk",
    "TritonEnsembleEndpoint": "constructs_triton.cdk",
    "TritonEnvironment": "constructs_triton.facts.environment",
    "TritonImage": "constructs_triton.cdk",
    "TritonModelRepository": "constructs_triton.cdk",
    "TritonMultiModelEndpoint": "constructs_triton.cdk",
    "TritonScalableInstanceCount": "constructs_triton.cdk",
    "TritonVariant": "constructs_triton.cdk",
    "TritonVpcEndpoints": "constructs_triton.cdk",
}

__all__ = sorted(_MODULE_OF)  # noqa: PLE0605 - a list of names, though not a literal
__getattr__, __dir__ = lazy_names(__name__, _MODULE_OF)
