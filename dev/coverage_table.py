"""Where each property of SageMaker's L1 classes is found in the constructs, or why it is not.

A property is named as the L1 class names it in Python: ``role`` of the constructor, or
``ContainerDefinitionProperty.image`` of a structure; a structure that is left out as a whole has
one row. A property whose keyword has its name needs none: ``coverage_keywords`` finds it.
"""

from __future__ import annotations

from coverage_components import COMPONENT_LEFT_OUT, COMPONENT_TYPED, LeftOut
from coverage_keywords import ASYNC, CAPTURE, METRICS, RESERVATION

__all__ = ["LEFT_OUT", "NOT_YET", "TYPED", "LeftOut"]


_VPC = "`vpc`, `vpc_subnets`, `security_groups`"
_PREFIX = "`compression_type`, `ModelSource.from_s3_prefix`"
_DEPLOYMENT = "`deployment=Deployment.{}`"
_SCALE_IN = "`TritonComponentEndpoint(scale_in_{})`"
_TAGS = "`cdk.Tags.of(endpoint).add(...)`"

TYPED: dict[str, dict[str, str]] = {
    "CfnModel": {
        "execution_role_arn": "`role`, or the one that is created",
        "primary_container": "`model_repository`, `image`, `environment`",
        "tags": _TAGS,
        "vpc_config": _VPC,
        "ContainerDefinitionProperty.mode": "`TritonMultiModelEndpoint`, or one of the other two",
        "ContainerDefinitionProperty.model_data_source": _PREFIX,
        "ContainerDefinitionProperty.model_data_url": "`model_repository`",
        "ContainerDefinitionProperty.model_package_name": "`ModelSource.from_model_package`",
        "ContainerDefinitionProperty.multi_model_config": "`model_cache_setting`",
        "ModelDataSourceProperty.s3_data_source": _PREFIX,
        "MultiModelConfigProperty.model_cache_setting": "`model_cache_setting`",
        "S3DataSourceProperty.compression_type": _PREFIX,
        "S3DataSourceProperty.s3_data_type": _PREFIX,
        "S3DataSourceProperty.s3_uri": _PREFIX,
        "VpcConfigProperty.security_group_ids": "`security_groups`, or the one that is created",
        "VpcConfigProperty.subnets": "`vpc_subnets`",
    },
    "CfnEndpointConfig": {
        "async_inference_config": ASYNC.format("..."),
        "ProductionVariantProperty.capacity_reservation_config": RESERVATION.format("..."),
        "data_capture_config": CAPTURE.format("..."),
        "enable_network_isolation": "`TritonComponentEndpoint(enable_network_isolation)`",
        "execution_role_arn": "`TritonComponentEndpoint(role)`, or the one that is created",
        "kms_key_id": "`encryption_key`",
        "metrics_config": METRICS.format("..."),
        "production_variants": "the endpoint's own properties, or `variants=[TritonVariant(...)]`",
        "shadow_production_variants": "`shadow_variant=TritonVariant(...)`",
        "tags": _TAGS,
        "vpc_config": "`TritonComponentEndpoint(vpc, vpc_subnets, security_groups)`",
        "AsyncInferenceConfigProperty.client_config": ASYNC.format(
            "max_concurrent_invocations_per_instance"
        ),
        "AsyncInferenceConfigProperty.output_config": ASYNC.format("bucket"),
        "AsyncInferenceOutputConfigProperty.kms_key_id": ASYNC.format("encryption_key"),
        "AsyncInferenceOutputConfigProperty.notification_config": ASYNC.format(
            "success_topic, error_topic"
        ),
        "AsyncInferenceOutputConfigProperty.s3_failure_path": ASYNC.format("failure_prefix"),
        "AsyncInferenceOutputConfigProperty.s3_output_path": ASYNC.format("output_prefix"),
        "CaptureOptionProperty.capture_mode": CAPTURE.format("capture_modes"),
        "CoreDumpConfigProperty.destination_s3_uri": "`core_dump=CoreDump(bucket, prefix)`",
        "CoreDumpConfigProperty.kms_key_id": "`core_dump=CoreDump(encryption_key)`",
        "DataCaptureConfigProperty.capture_content_type_header": CAPTURE.format(
            "json_content_types, csv_content_types"
        ),
        "DataCaptureConfigProperty.capture_options": CAPTURE.format("capture_modes"),
        "DataCaptureConfigProperty.destination_s3_uri": CAPTURE.format("bucket, prefix"),
        "DataCaptureConfigProperty.kms_key_id": CAPTURE.format("encryption_key"),
        "ManagedInstanceScalingProperty.scale_in_policy": _SCALE_IN.format("strategy"),
        "ScaleInPolicyProperty.strategy": _SCALE_IN.format("strategy"),
        "ScaleInPolicyProperty.cooldown_in_minutes": _SCALE_IN.format("cooldown"),
        "ScaleInPolicyProperty.maximum_step_size": _SCALE_IN.format("maximum_step_size"),
        "ManagedInstanceScalingProperty.status": "always enabled on `TritonComponentEndpoint`",
        "InstancePoolProperty.instance_type": "`instance_pools=[InstancePool(instance_type)]`",
        "InstancePoolProperty.model_name_override": "`InstancePool(model_repository, model)`",
        "InstancePoolProperty.priority": "the position in `instance_pools`",
        "ProductionVariantProperty.core_dump_config": "`core_dump`",
        "ProductionVariantProperty.inference_ami_version": (
            "`inference_ami_version`, or the one that the image needs; `None` leaves it out"
        ),
        "ProductionVariantProperty.managed_instance_scaling": "`TritonComponentEndpoint`",
        "ProductionVariantProperty.model_name": "`model`, `ensemble` or `model_repository`",
        "ProductionVariantProperty.routing_config": "`routing_strategy`",
        "RoutingConfigProperty.prefix_aware_routing_config": (
            "`TritonComponentEndpoint(prefix_length)`"
        ),
        "VpcConfigProperty.security_group_ids": "`TritonComponentEndpoint(security_groups)`",
        "VpcConfigProperty.subnets": "`TritonComponentEndpoint(vpc_subnets)`",
    },
    "CfnEndpoint": {
        "deployment_config": _DEPLOYMENT.format("blue_green_canary(...)")
        + ", `blue_green_linear`, `all_at_once`",
        "endpoint_config_name": "the configuration that is created",
        "exclude_retained_variant_properties": "`auto_scale_instance_count(...)`",
        "retain_all_variant_properties": "`auto_scale_instance_count(...)`",
        "tags": _TAGS,
        "AlarmProperty.alarm_name": "`endpoint.add_rollback_alarms(...)`",
        "AutoRollbackConfigProperty.alarms": "`endpoint.add_rollback_alarms(...)`",
        "BlueGreenUpdatePolicyProperty.maximum_execution_timeout_in_seconds": _DEPLOYMENT.format(
            "all_at_once(maximum_execution_timeout)"
        ),
        "BlueGreenUpdatePolicyProperty.termination_wait_in_seconds": _DEPLOYMENT.format(
            "all_at_once(termination_wait)"
        ),
        "BlueGreenUpdatePolicyProperty.traffic_routing_configuration": _DEPLOYMENT.format(
            "blue_green_canary(...)"
        ),
        "CapacitySizeProperty.type": "`CapacitySize.percent` or `CapacitySize.instances`",
        "CapacitySizeProperty.value": "`CapacitySize.percent` or `CapacitySize.instances`",
        "DeploymentConfigProperty.auto_rollback_configuration": (
            "`endpoint.add_rollback_alarms(...)`"
        ),
        "DeploymentConfigProperty.blue_green_update_policy": _DEPLOYMENT.format(
            "blue_green_canary(...)"
        ),
        "DeploymentConfigProperty.rolling_update_policy": _DEPLOYMENT.format("rolling(...)"),
        "TrafficRoutingConfigProperty.canary_size": _DEPLOYMENT.format(
            "blue_green_canary(canary_size)"
        ),
        "TrafficRoutingConfigProperty.linear_step_size": _DEPLOYMENT.format(
            "blue_green_linear(step_size)"
        ),
        "TrafficRoutingConfigProperty.type": _DEPLOYMENT.format("blue_green_canary(...)")
        + ", `blue_green_linear`, `all_at_once`",
        "TrafficRoutingConfigProperty.wait_interval_in_seconds": _DEPLOYMENT.format(
            "blue_green_canary(wait_interval)"
        ),
        "VariantPropertyProperty.variant_property_type": "`auto_scale_instance_count(...)`",
    },
    "CfnInferenceComponent": COMPONENT_TYPED,
}

_REGISTRY = "for model packages with several specifications"
_SERIAL = "belongs to serial pipelines, see below"
_PRIVATE = "for images in a private registry of a VPC; Triton's images are in ECR"
_HUB = "for JumpStart's hubs and gated models; a repository has your own models"
_CLARIFY = "Clarify explains tables and text in CSV or JSON Lines, which Triton does not support"
_NAME = (
    "never set, because nearly every change replaces the resource, which a fixed name would prevent"
)
_VARIANT = "ProductionVariants.0."
_CONTAINER = "PrimaryContainer."

LEFT_OUT: dict[str, dict[str, LeftOut]] = {
    "CfnModel": {
        "containers": LeftOut(_SERIAL, "Containers"),
        "inference_execution_config": LeftOut(_SERIAL, "InferenceExecutionConfig"),
        "model_name": LeftOut(_NAME, "ModelName"),
        "ContainerDefinitionProperty.container_hostname": LeftOut(
            _SERIAL, _CONTAINER + "ContainerHostname"
        ),
        "ContainerDefinitionProperty.image_config": LeftOut(_PRIVATE, _CONTAINER + "ImageConfig"),
        "ContainerDefinitionProperty.inference_specification_name": LeftOut(
            _REGISTRY, _CONTAINER + "InferenceSpecificationName"
        ),
        "HubAccessConfigProperty": LeftOut(
            _HUB, _CONTAINER + "ModelDataSource.S3DataSource.HubAccessConfig"
        ),
        "ImageConfigProperty": LeftOut(_PRIVATE, _CONTAINER + "ImageConfig"),
        "InferenceExecutionConfigProperty": LeftOut(_SERIAL, "InferenceExecutionConfig"),
        "ModelAccessConfigProperty": LeftOut(
            _HUB, _CONTAINER + "ModelDataSource.S3DataSource.ModelAccessConfig"
        ),
        "RepositoryAuthConfigProperty": LeftOut(
            _PRIVATE, _CONTAINER + "ImageConfig.RepositoryAuthConfig"
        ),
        "S3DataSourceProperty.hub_access_config": LeftOut(
            _HUB, _CONTAINER + "ModelDataSource.S3DataSource.HubAccessConfig"
        ),
        "S3DataSourceProperty.model_access_config": LeftOut(
            _HUB, _CONTAINER + "ModelDataSource.S3DataSource.ModelAccessConfig"
        ),
    },
    "CfnEndpointConfig": {
        "endpoint_config_name": LeftOut(_NAME, "EndpointConfigName"),
        "explainer_config": LeftOut(_CLARIFY, "ExplainerConfig"),
        "ClarifyExplainerConfigProperty": LeftOut(
            _CLARIFY, "ExplainerConfig.ClarifyExplainerConfig"
        ),
        "ClarifyInferenceConfigProperty": LeftOut(
            _CLARIFY, "ExplainerConfig.ClarifyExplainerConfig.InferenceConfig"
        ),
        "ClarifyShapBaselineConfigProperty": LeftOut(
            _CLARIFY, "ExplainerConfig.ClarifyExplainerConfig.ShapConfig.ShapBaselineConfig"
        ),
        "ClarifyShapConfigProperty": LeftOut(
            _CLARIFY, "ExplainerConfig.ClarifyExplainerConfig.ShapConfig"
        ),
        "ClarifyTextConfigProperty": LeftOut(
            _CLARIFY, "ExplainerConfig.ClarifyExplainerConfig.ShapConfig.TextConfig"
        ),
        "ExplainerConfigProperty": LeftOut(_CLARIFY, "ExplainerConfig"),
        "ProductionVariantProperty.accelerator_type": LeftOut(
            "Elastic Inference has ended, and CloudFormation's schema has lost it", None
        ),
        "ProductionVariantProperty.serverless_config": LeftOut(
            "refused: no GPU, no multi-model mode, no VPC, and 6 GB of memory at most",
            _VARIANT + "ServerlessConfig",
        ),
        "ServerlessConfigProperty": LeftOut(
            "refused: no GPU, no multi-model mode, no VPC, and 6 GB of memory at most",
            _VARIANT + "ServerlessConfig",
        ),
    },
    "CfnEndpoint": {
        "retain_deployment_config": LeftOut(
            "a deployment uses the values of the template, and not those of an earlier deployment",
            "RetainDeploymentConfig",
        ),
    },
    "CfnInferenceComponent": COMPONENT_LEFT_OUT,
}

NOT_YET: dict[str, str] = {
    "Partitions of GPUs (MIG)": (
        "several components on one GPU. CloudFormation has no property for this. Put several "
        "models into one repository, or use `TritonMultiModelEndpoint`"
    ),
    "Serial pipelines and direct multi-container endpoints": (
        "several containers; each passes its response to the next, or is called by name. One "
        "Triton server serves several models: use an ensemble or a model that calls others instead "
        "of a pipeline, and `TritonMultiModelEndpoint` instead of direct calls"
    ),
    "Batch transform": (
        "a job over files in S3, not an endpoint. `TritonModel` is its model; "
        "[Batch jobs](../../docs/guides/batch.md) compares it with an asynchronous endpoint"
    ),
}
