"""Endpoints that a stack adopts: they exist before it, so a rehearsal creates them first.

Nothing is known of them but the name. They are assumed to have the variants, the instance types and
the numbers of instances of the version, and a model that every deployment may read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from constructs_triton_core.cloud_assembly.endpoints import DeclaredEndpoint, declared_endpoints
from constructs_triton_core.cloud_assembly.intrinsics import number_of
from constructs_triton_core.cloud_assembly.shapes import ADOPTED_TYPE
from constructs_triton_core.cloud_assembly.synthesized_stack import SynthesizedStack

_ASSUMED = "existing"


class _Account(Protocol):
    """The services of a simulated account."""

    account: str
    region: str

    def call(self, service: str, operation: str, **request: Any) -> Any: ...

    def backend(self, service: str) -> Any: ...


def assume_adopted(
    stack: SynthesizedStack, api: _Account, assume_role: Callable[[str], None]
) -> None:
    """Create the endpoints that a stack adopts, unless another version did.

    ``assume_role`` creates a role, given by its ARN, that may do everything.
    """
    adopted = stack.created(ADOPTED_TYPE)
    for endpoint in declared_endpoints(stack, is_complete=False):
        if endpoint.logical_id not in adopted:
            continue
        if endpoint.name in api.backend("sagemaker").endpoints:
            continue
        role = f"arn:aws:iam::{api.account}:role/{_ASSUMED}-{endpoint.name}"
        assume_role(role)
        _create(endpoint, api, role)


def _create(endpoint: DeclaredEndpoint, api: _Account, role: str) -> None:
    """Create an endpoint as it is declared, with a model of its own."""
    name = f"{_ASSUMED}-{endpoint.name}"[:63]
    api.call(
        "sagemaker",
        "CreateModel",
        ModelName=name,
        ExecutionRoleArn=role,
        PrimaryContainer={
            "Image": f"{api.account}.dkr.ecr.{api.region}.amazonaws.com/existing:latest"
        },
    )
    declared = endpoint.config.get("ProductionVariants", [])
    api.call(
        "sagemaker",
        "CreateEndpointConfig",
        EndpointConfigName=name,
        ProductionVariants=[_variant(variant, name) for variant in declared],
        **_present(endpoint.config, "AsyncInferenceConfig"),
    )
    api.call("sagemaker", "CreateEndpoint", EndpointName=endpoint.name, EndpointConfigName=name)


def _variant(declared: Mapping[str, Any], model: str) -> dict[str, Any]:
    """Return the variant to create for a declared one, with at least one instance."""
    count = number_of(declared.get("InitialInstanceCount", 1)) or 1
    return {
        "VariantName": declared["VariantName"],
        "ModelName": model,
        "InitialVariantWeight": 1,
        "InitialInstanceCount": max(1, int(count)),
        **_present(declared, "InstanceType", "InstancePools"),
    }


def _present(properties: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Return those of the named properties that are set."""
    return {name: properties[name] for name in names if name in properties}
