"""Properties of other endpoints that component endpoints do not have, and what to use in their place."""

from __future__ import annotations

from collections.abc import Mapping

from constructs_triton_core.errors import InvalidValueError

_OTHER_ENDPOINT = "use TritonEndpoint"
_ON_THE_COMPONENT = "set it on the TritonInferenceComponent"

# For each property: why a component endpoint does not have it, and what to do instead.
_OF_ENDPOINT: Mapping[str, tuple[str, str]] = {
    "async_inference": (
        "a queued request cannot name a component",
        f"{_OTHER_ENDPOINT} with async_inference, which scales to zero as well",
    ),
    "serverless_config": (
        "components need instances",
        "use min_instance_count=0, and auto_scale_copy_count(min_capacity=0) on each component",
    ),
    "explainer_config": ("AWS documents it for endpoints with a model only", _OTHER_ENDPOINT),
    "data_capture": (
        "AWS documents it for endpoints with a model only",
        f"{_OTHER_ENDPOINT} for the models whose requests you record",
    ),
    "variants": (
        "a component names one variant",
        "add a TritonInferenceComponent for each model",
    ),
    "shadow_variant": (
        "a component names one variant",
        f"{_OTHER_ENDPOINT}, or send the copies to a second component yourself",
    ),
    "deployment": (
        "each component has its own rolling update",
        "set deployment=ComponentDeployment.rolling() on the TritonInferenceComponent",
    ),
    "scaling_guard": (
        "SageMaker scales the instances itself",
        "remove it",
    ),
    "off_switch": (
        "a component endpoint can have zero instances",
        "use min_instance_count=0, and scale_on_schedule of auto_scale_copy_count(min_capacity=0)",
    ),
    "verify_update": ("it checks the configuration of endpoints with a model", "remove it"),
    "verify_responses": (
        "its requests cannot name a component",
        "send them with TritonClient.for_endpoint(..., inference_component=...) after the deployment",
    ),
    "initial_variant_weight": ("the only variant receives all requests", "remove it"),
    "capacity_reservation": ("AWS does not document it for components", _OTHER_ENDPOINT),
    "core_dump": ("AWS does not document it for components", _OTHER_ENDPOINT),
    "enable_ssm_access": ("AWS does not document it for components", _OTHER_ENDPOINT),
    "container_metrics": (
        "its components have the containers, and copies on one instance may share a network",
        f"{_OTHER_ENDPOINT} for the models whose queue you watch",
    ),
    "log_retention": ("the containers write to a log group of their component", _ON_THE_COMPONENT),
    "model_repository": ("SageMaker refuses components on an endpoint with a model", _ON_THE_COMPONENT),
    "model": ("SageMaker refuses components on an endpoint with a model", _ON_THE_COMPONENT),
    "ensemble": ("SageMaker refuses components on an endpoint with a model", _ON_THE_COMPONENT),
    "environment": ("each component has its own container", _ON_THE_COMPONENT),
    "container_startup_health_check_timeout": ("each component has its own container", _ON_THE_COMPONENT),
    "model_data_download_timeout": ("each component has its own container", _ON_THE_COMPONENT),
    "accelerator_partition_layouts": (
        "CloudFormation has no partitions of GPUs",
        "put several models into one repository, or use TritonMultiModelEndpoint",
    ),
}

_OF_COMPONENT: Mapping[str, tuple[str, str]] = {
    "model_cache_setting": (
        "a component contains one model",
        "use TritonMultiModelEndpoint for many models in one container",
    ),
    "containers": (
        "a component contains one container",
        "use an ensemble, or a component for each container",
    ),
    "accelerator_partition_type": (
        "CloudFormation has no partitions of GPUs",
        "put several models into one repository, or use TritonMultiModelEndpoint",
    ),
    "base_inference_component_name": (
        "adapters are for containers of language models",
        "deploy the model as a separate component",
    ),
    "specifications": (
        "instance_pools has the models of each instance type",
        "set instance_pools",
    ),
    "container_metrics": (
        "AWS does not say whether copies on one instance share a network, in which only the first server "
        "could open the port of its metrics",
        "use the component's metrics in CloudWatch, or TritonEndpoint with container_metrics=True",
    ),
    "container_metrics_config": (
        "Triton's port for SageMaker does not serve /metrics",
        "use the component's metrics in CloudWatch",
    ),
    "instance_type": ("the instances belong to the endpoint", "set it on the TritonComponentEndpoint"),
    "role": ("the model must have the role of its endpoint", "set it on the TritonComponentEndpoint"),
    "vpc": ("the model must have the VPC of its endpoint", "set it on the TritonComponentEndpoint"),
    "enable_network_isolation": (
        "the model must have the isolation of its endpoint",
        "set it on the TritonComponentEndpoint",
    ),
    "inference_ami_version": (
        "all components of an instance have its AMI",
        "set it on the TritonComponentEndpoint",
    ),
}


def refuse_of_endpoint(given: Mapping[str, object]) -> None:
    """Raise for a property that component endpoints do not have."""
    _refuse(given, _OF_ENDPOINT, "component endpoints")


def refuse_of_component(given: Mapping[str, object]) -> None:
    """Raise for a property that inference components do not have."""
    _refuse(given, _OF_COMPONENT, "inference components")


def _refuse(given: Mapping[str, object], refused: Mapping[str, tuple[str, str]], what: str) -> None:
    for name, (reason, instead) in refused.items():
        if given.get(name) is not None:
            raise InvalidValueError(f"{name}: not supported on {what}, because {reason}; {instead}")
