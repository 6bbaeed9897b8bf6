"""Endpoints that a stack adopts: they exist before it, so a rehearsal creates them first.

Nothing is known of them but the name. They are assumed to have the variants, the instance types and the
numbers of instances of the version, and a model that every deployment may read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from constructs_triton_core.cloud_assembly.endpoints import DeclaredEndpoint, declared_endpoints
from constructs_triton_core.cloud_assembly.intrinsics import number_of
from constructs_triton_core.cloud_assembly.shapes import ADOPTED_TYPE
from constructs_triton_core.cloud_assembly.synthesized_stack import SynthesizedStack

if TYPE_CHECKING:
    from cdk_rehearse.services.service_api import ServiceApi

_ASSUMED = "existing"


def assume_adopted(stack: SynthesizedStack, api: ServiceApi) -> None:
    """Create the endpoints that a stack adopts, unless another version did."""
    adopted = stack.created(ADOPTED_TYPE)
    for endpoint in declared_endpoints(stack, is_complete=False):
        if endpoint.logical_id in adopted and endpoint.name not in api.backend("sagemaker").endpoints:
            _create(endpoint, api)


def _create(endpoint: DeclaredEndpoint, api: ServiceApi) -> None:
    from cdk_rehearse.existing import assume_role

    role = f"arn:aws:iam::{api.account}:role/{_ASSUMED}-{endpoint.name}"
    assume_role(api, role)
    name = f"{_ASSUMED}-{endpoint.name}"[:63]
    api.call(
        "sagemaker",
        "CreateModel",
        ModelName=name,
        ExecutionRoleArn=role,
        PrimaryContainer={"Image": f"{api.account}.dkr.ecr.{api.region}.amazonaws.com/existing:latest"},
    )
    variants = [
        {
            "VariantName": each["VariantName"],
            "ModelName": name,
            "InitialVariantWeight": 1,
            "InitialInstanceCount": max(1, int(number_of(each.get("InitialInstanceCount", 1)) or 1)),
            **{kind: each[kind] for kind in ("InstanceType", "InstancePools") if kind in each},
        }
        for each in endpoint.config.get("ProductionVariants", [])
    ]
    others = {kind: endpoint.config[kind] for kind in ("AsyncInferenceConfig",) if kind in endpoint.config}
    api.call(
        "sagemaker", "CreateEndpointConfig", EndpointConfigName=name, ProductionVariants=variants, **others
    )
    api.call("sagemaker", "CreateEndpoint", EndpointName=endpoint.name, EndpointConfigName=name)
