"""Endpoints that a version adopts: they exist before the stacks, so a rehearsal creates them first.

Nothing is known of them but the name. They are assumed to have the variants, the instance types and the
numbers of instances of the version, and a model that every deployment may read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from constructs_triton_core.cloud_assembly.endpoints import DeclaredEndpoint, declared_endpoints
from constructs_triton_core.cloud_assembly.intrinsics import number_of
from constructs_triton_core.cloud_assembly.shapes import ADOPTED_TYPE
from constructs_triton_core.cloud_assembly.synthesized_stack import SynthesizedStack

from ..existing import assume_role
from ..services.service_api import ServiceApi
from .versions import StackVersion

_ASSUMED = "existing"


def assume_adopted(api: ServiceApi, stacks: Iterable[StackVersion]) -> None:
    """Create the endpoints that the stacks adopt."""
    created: set[str] = set()
    for stack in stacks:
        for endpoint in _adopted(stack, api):
            if endpoint.name not in created:
                created.add(endpoint.name)
                _create(api, endpoint)


def _adopted(stack: StackVersion, api: ServiceApi) -> Iterator[DeclaredEndpoint]:
    read = SynthesizedStack(
        stack.name, stack.template, region=api.region, account=api.account, parameters=stack.parameters
    )
    adopted = read.created(ADOPTED_TYPE)
    yield from (each for each in declared_endpoints(read, is_complete=False) if each.logical_id in adopted)


def _create(api: ServiceApi, endpoint: DeclaredEndpoint) -> None:
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
