"""What SageMaker refuses in requests for inference components and their endpoint configurations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from constructs_triton_core.cloud_assembly.endpoints import instance_types_of
from constructs_triton_core.facts.inference_components import is_without_zero_instances
from constructs_triton_core.facts.instance_types import InstanceType

from ...moto_account.refusals import ValidationError
from .component import Component, specifications

_NOT_SUPPORTED = (
    "Invalid request provided: Inference Components are not supported in this Endpoint. "
    "Please make sure this endpoint can deploy inference components."
)
_ENVIRONMENT_LIMIT = 16


def check_config(wanted: Mapping[str, Any], region: str) -> None:
    """Check the variants of ``CreateEndpointConfig``."""
    variants = wanted["ProductionVariants"]
    for variant in variants:
        scaling = variant.get("ManagedInstanceScaling")
        if scaling is not None and "ModelName" in variant:
            endpoints = "inference component endpoints"
            raise ValidationError(f"ManagedInstanceScaling is only supported for {endpoints}.")
        minimum = None if scaling is None else scaling.get("MinInstanceCount")
        if minimum == 0 and is_without_zero_instances(region):
            what = "Min instance count needs to be greater"
            raise ValidationError(f"{what} than 0 for enabled managed instance scaling")
    if any("ModelName" not in variant for variant in variants):
        _check_shared_config(wanted)


def _check_shared_config(wanted: Mapping[str, Any]) -> None:
    """Refuse what an endpoint configuration for inference components may not have."""
    if "ExecutionRoleArn" not in wanted:
        raise ValidationError(
            "ExecutionRoleArn is required for endpoints with inference components."
        )
    if len(wanted["ProductionVariants"]) > 1 or "ShadowProductionVariants" in wanted:
        raise ValidationError("An endpoint with inference components has one variant.")
    for member in ("AsyncInferenceConfig", "ExplainerConfig", "DataCaptureConfig"):
        if member in wanted:
            raise ValidationError(
                f"{member} is not supported for endpoints with inference components."
            )
    (variant,) = wanted["ProductionVariants"]
    if "ServerlessConfig" in variant or "InitialVariantWeight" in variant:
        raise ValidationError("A variant for inference components has instances, and no weight.")


def variant_without_model(config: Any, name: str | None) -> Mapping[str, Any]:
    """Return the variant that components may use, unless the endpoint has models of its own."""
    variants = config.production_variants
    if any("ModelName" in variant for variant in variants):
        raise ValidationError(_NOT_SUPPORTED)

    first = variants[0]
    if name is not None and name != first["VariantName"]:
        raise ValidationError(f"Could not find variant {name}")
    found: Mapping[str, Any] = first
    return found


def check_body(body: Mapping[str, Any], variant: Mapping[str, Any]) -> None:
    """Check the specifications of a request against the variant's instance type."""
    if ("Specification" in body) == ("Specifications" in body):
        raise ValidationError("Exactly one of Specification and Specifications has to be given.")
    types = instance_types_of(variant)
    for specification in specifications(body):
        if "InstanceType" not in specification:
            for instance_type in types:
                _check_specification(specification, instance_type)
            continue

        own_type = specification["InstanceType"]
        if own_type not in types:
            raise ValidationError(
                f"InstanceType {own_type} is not in the InstancePools of the variant."
            )
        _check_specification(specification, own_type)


def _check_specification(specification: Mapping[str, Any], instance_type: str) -> None:
    """Refuse what the specification of an inference component may not have."""
    if ("ModelName" in specification) == ("Container" in specification):
        raise ValidationError("Exactly one of ModelName and Container has to be given.")
    if ("ComputeResourceRequirements" in specification) == (
        "BaseInferenceComponentName" in specification
    ):
        raise ValidationError("ComputeResourceRequirements is required, except for adapters.")
    if len(specification.get("Container", {}).get("Environment", {})) > _ENVIRONMENT_LIMIT:
        raise ValidationError(f"We support up to {_ENVIRONMENT_LIMIT} entries in the map.")
    needs = specification.get("ComputeResourceRequirements", {})
    accelerators = needs.get("NumberOfAcceleratorDevicesRequired")
    if accelerators is not None and InstanceType.of(instance_type).gpus == 0:
        raise ValidationError(
            f"NumberOfAcceleratorDevicesRequired is not supported on {instance_type}."
        )


def check_model(model: Any, config: Any) -> None:
    """Check that a model has one container and what its endpoint has: role, VPC and isolation."""
    containers = [model.primary_container, *(model.containers or ())]
    containers = [container for container in containers if container]
    if len(containers) != 1 or containers[0].get("Mode") == "MultiModel":
        raise ValidationError("Each inference component contains one model.")

    of_endpoint = {"EnableNetworkIsolation": False, **config.kept_members}
    of_model = {
        "EnableNetworkIsolation": False,
        **model.kept_members,
        "ExecutionRoleArn": model.execution_role_arn,
        "VpcConfig": model.vpc_config or None,
    }
    shared = ("ExecutionRoleArn", "VpcConfig", "EnableNetworkIsolation")
    different = [name for name in shared if of_endpoint.get(name) != of_model[name]]
    if different:
        raise ValidationError(
            f"Model and endpoint are not compatible: {', '.join(different)} differ."
        )


def expect_stable(component: Component, action: str) -> None:
    """Raise ``ValidationError`` while an operation is in progress."""
    if component.operation is not None:
        raise ValidationError(
            f"Cannot {action} inference component {component.arn} while it is in state "
            f"{component.operation.state}"
        )
