"""The rows of ``AWS::SageMaker::InferenceComponent`` in the table of ``coverage_table``."""

from __future__ import annotations

from dataclasses import dataclass

from coverage_keywords import COPIES


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Why a property is not a keyword, and the path by which CloudFormation knows it,
    where it still does.
    """

    reason: str
    path: str | None


_READ_ONLY = "read-only"
_INLINE_OF_TYPE = "Specifications.0.Container"
_MODEL = "`cfn_model` has the container, with 100 variables in place of 16, and files in S3"
_METRICS_PORT = "Triton's port for SageMaker serves no metrics"
_INLINE = "Specification.Container."

COMPONENT_TYPED: dict[str, str] = {
    "deployment_config": COPIES.format("..."),
    "endpoint_name": "`endpoint`",
    "runtime_config": "`copy_count`",
    "specification": "the component's own properties",
    "specifications": "`instance_pools` of the component",
    **{
        f"InferenceComponentSpecificationForInstanceTypeProperty.{name}": "as for all types"
        for name in (
            "compute_resource_requirements",
            "data_cache_config",
            "scheduling_config",
            "startup_parameters",
        )
    },
    "InferenceComponentSpecificationForInstanceTypeProperty.instance_type": (
        "`instance_pools` of the `TritonComponentEndpoint`"
    ),
    "InferenceComponentSpecificationForInstanceTypeProperty.model_name": (
        "`InstancePool(model_repository, model)` of the component"
    ),
    "InferenceComponentSpecificationProperty.base_inference_component_name": (
        "an adapter of a `ContainerInferenceComponent`"
    ),
    "tags": "`cdk.Tags.of(component).add(...)`",
    "variant_name": "`TritonComponentEndpoint(variant_name)`",
    "AlarmProperty.alarm_name": "`component.add_rollback_alarms(...)`",
    "AutoRollbackConfigurationProperty.alarms": "`component.add_rollback_alarms(...)`",
    "InferenceComponentAvailabilityZoneBalanceProperty.enforcement_mode": "`placement_strategy`",
    "InferenceComponentAvailabilityZoneBalanceProperty.max_imbalance": "`max_zone_imbalance`",
    "InferenceComponentCapacitySizeProperty.type": "`CopySize.percent` or `CopySize.copies`",
    "InferenceComponentCapacitySizeProperty.value": "`CopySize.percent` or `CopySize.copies`",
    "InferenceComponentDeploymentConfigProperty.auto_rollback_configuration": (
        "`component.add_rollback_alarms(...)`"
    ),
    "InferenceComponentDeploymentConfigProperty.rolling_update_policy": COPIES.format("..."),
    "InferenceComponentSchedulingConfigProperty.availability_zone_balance": "`max_zone_imbalance`",
    "InferenceComponentSpecificationProperty.compute_resource_requirements": (
        "`min_memory` and others"
    ),
    "InferenceComponentSpecificationProperty.data_cache_config": "`enable_caching`",
    "InferenceComponentSpecificationProperty.model_name": (
        "`model`, `ensemble` or `model_repository`"
    ),
    "InferenceComponentSpecificationProperty.scheduling_config": "`placement_strategy`",
    "InferenceComponentSpecificationProperty.startup_parameters": (
        "`container_startup_health_check_timeout`, `model_data_download_timeout`"
    ),
}

COMPONENT_LEFT_OUT: dict[str, LeftOut] = {
    "endpoint_arn": LeftOut("the endpoint's name is enough", "EndpointArn"),
    "ContainerMetricsConfigProperty": LeftOut(_METRICS_PORT, _INLINE + "ContainerMetricsConfig"),
    "DeployedImageProperty": LeftOut(_READ_ONLY, None),
    "InferenceComponentContainerSpecificationForInstanceTypeProperty": LeftOut(
        _MODEL, _INLINE_OF_TYPE
    ),
    "InferenceComponentContainerSpecificationProperty": LeftOut(_MODEL, "Specification.Container"),
    "InferenceComponentPlacementStatusProperty": LeftOut(_READ_ONLY, None),
    "InferenceComponentRuntimeConfigProperty.current_copy_count": LeftOut(_READ_ONLY, None),
    "InferenceComponentRuntimeConfigProperty.desired_copy_count": LeftOut(_READ_ONLY, None),
    "InferenceComponentRuntimeConfigProperty.placement_status": LeftOut(_READ_ONLY, None),
    "InferenceComponentSpecificationForInstanceTypeProperty.current_data_cache_config": LeftOut(
        _READ_ONLY, None
    ),
    "InferenceComponentSpecificationForInstanceTypeProperty.container": LeftOut(
        _MODEL, _INLINE_OF_TYPE
    ),
    "InferenceComponentSpecificationProperty.container": LeftOut(_MODEL, "Specification.Container"),
    "InferenceComponentSpecificationProperty.current_data_cache_config": LeftOut(_READ_ONLY, None),
    "MetricsEndpointProperty": LeftOut(
        _METRICS_PORT, _INLINE + "ContainerMetricsConfig.MetricsEndpoints"
    ),
}
