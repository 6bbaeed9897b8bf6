# The public names. Python imports each on first use, type checkers read this file.

__all__: list[str]

from constructs_triton_core.errors import ConstructsTritonError as ConstructsTritonError
from constructs_triton_core.facts.instance_types import InstanceType as InstanceType
from triton_model_check.facts.inference_ami import InferenceAmi as InferenceAmi

from .cdk.endpoint.endpoint import TritonEndpoint as TritonEndpoint
from .cdk.endpoint.endpoint import TritonEnsembleEndpoint as TritonEnsembleEndpoint
from .cdk.endpoint.endpoint import TritonMultiModelEndpoint as TritonMultiModelEndpoint
from .cdk.endpoint.network import TritonVpcEndpoints as TritonVpcEndpoints
from .cdk.endpoint.properties import EndpointOptions as EndpointOptions
from .cdk.inference_component.adapter import LoraAdapter as LoraAdapter
from .cdk.inference_component.component import TritonInferenceComponent as TritonInferenceComponent
from .cdk.inference_component.component_endpoint import (
    TritonComponentEndpoint as TritonComponentEndpoint,
)
from .cdk.inference_component.component_endpoint_base import (
    ComponentEndpointBase as ComponentEndpointBase,
)
from .cdk.inference_component.container_component import (
    ContainerComponentOptions as ContainerComponentOptions,
)
from .cdk.inference_component.container_component import (
    ContainerInferenceComponent as ContainerInferenceComponent,
)
from .cdk.inference_component.endpoint_properties import (
    ComponentEndpointOptions as ComponentEndpointOptions,
)
from .cdk.inference_component.properties import (
    InferenceComponentOptions as InferenceComponentOptions,
)
from .cdk.metrics.container_metrics import ContainerMetrics as ContainerMetrics
from .cdk.metrics.metrics_config import MetricsConfig as MetricsConfig
from .cdk.model import TritonModel as TritonModel
from .cdk.monitoring.alarms import AlarmThresholds as AlarmThresholds
from .cdk.monitoring.alarms import TritonAlarms as TritonAlarms
from .cdk.monitoring.component_alarms import ComponentAlarmThresholds as ComponentAlarmThresholds
from .cdk.monitoring.component_alarms import TritonComponentAlarms as TritonComponentAlarms
from .cdk.monitoring.dashboard import TritonComponentDashboard as TritonComponentDashboard
from .cdk.monitoring.dashboard import TritonDashboard as TritonDashboard
from .cdk.monitoring.interfaces import IInferenceComponent as IInferenceComponent
from .cdk.monitoring.interfaces import ITritonEndpoint as ITritonEndpoint
from .cdk.options.async_inference import AsyncInferenceConfig as AsyncInferenceConfig
from .cdk.options.capacity_reservation import CapacityReservationConfig as CapacityReservationConfig
from .cdk.options.component_deployment import ComponentDeployment as ComponentDeployment
from .cdk.options.component_deployment import CopySize as CopySize
from .cdk.options.core_dump import CoreDump as CoreDump
from .cdk.options.data_capture import DataCapture as DataCapture
from .cdk.options.deployment import CapacitySize as CapacitySize
from .cdk.options.deployment import Deployment as Deployment
from .cdk.options.environment import TritonEnvironment as TritonEnvironment
from .cdk.options.image import TritonImage as TritonImage
from .cdk.options.instance_pool import InstancePool as InstancePool
from .cdk.options.serving_image import ServingImage as ServingImage
from .cdk.options.variant_options import TritonVariant as TritonVariant
from .cdk.options.variant_options import VariantOptions as VariantOptions
from .cdk.repository.model_repository import TritonModelRepository as TritonModelRepository
from .cdk.repository.model_source import ModelSource as ModelSource
from .cdk.repository.properties import CompressionType as CompressionType
from .cdk.repository.properties import RepositoryCheck as RepositoryCheck
from .cdk.repository.properties import TargetModelNaming as TargetModelNaming
from .cdk.repository.target_model import TargetModel as TargetModel
from .cdk.scaling.endpoint_variant import EndpointVariant as EndpointVariant
from .cdk.scaling.off_switch import OffSwitch as OffSwitch
from .cdk.scaling.scalable_copy_count import TritonScalableCopyCount as TritonScalableCopyCount
from .cdk.scaling.scalable_instance_count import (
    TritonScalableInstanceCount as TritonScalableInstanceCount,
)
