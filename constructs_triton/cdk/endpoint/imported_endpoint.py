"""An endpoint that another stack or another tool has created."""

from __future__ import annotations

from collections.abc import Mapping

import jsii
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from constructs_triton.cdk.endpoint.endpoint_base import EndpointBase
from constructs_triton.cdk.scaling.endpoint_variant import EndpointVariant, VariantOwner
from constructs_triton.cdk.validation.arguments import check_flag
from constructs_triton.cdk.validation.property_types import check_type
from constructs_triton_core.facts import limits
from constructs_triton_core.facts.instance_types import InstanceType
from constructs_triton_core.limit_checks import check_name
from constructs_triton_core.tokens import is_token

_DEFAULT_VARIANTS: Mapping[str, InstanceType | None] = {"AllTraffic": None}


class _UnknownType(InstanceType):
    """The type of an imported endpoint. Its name is a description, which nothing looks up."""

    def __post_init__(self) -> None: ...


_UNKNOWN = _UnknownType("the unknown type of an imported endpoint")


@jsii.implements(sagemaker.IEndpoint)
class ImportedTritonEndpoint(EndpointBase):
    """An endpoint that exists already, with grants, metrics and scaling.

    ``TritonEndpoint.from_endpoint_name``, ``from_endpoint_arn`` and ``from_endpoint_attributes``
    return it.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        endpoint_name: str | None,
        endpoint_arn: str,
        has_arn_of_token: bool,
        variants: Mapping[str, InstanceType | None] | None,
        serves_many: bool | None,
        is_asynchronous: bool | None,
    ) -> None:
        variants = _DEFAULT_VARIANTS if variants is None else variants
        check_type("variants", variants, (Mapping, '{"AllTraffic": None}'))
        if is_asynchronous is not None:
            check_flag("is_asynchronous", is_asynchronous)
        for name in variants:
            check_name("variants", name, limits.VARIANT_NAME)
        super().__init__(scope, id, environment_from_arn=endpoint_arn)
        self._known_endpoint_name = endpoint_name
        self._endpoint_arn = endpoint_arn
        self._has_arn_of_token = has_arn_of_token
        self._serves_many = serves_many
        self._async_inference = None
        self._is_asynchronous = is_asynchronous
        self._contents = None
        owner = VariantOwner(
            self, endpoint_name, None, bool(is_asynchronous), serves_many=bool(serves_many)
        )
        self._variants = tuple(
            _variant(owner, position, name, instance_type)
            for position, (name, instance_type) in enumerate(variants.items())
        )


def _variant(
    owner: VariantOwner, position: int, name: str, instance_type: InstanceType | None
) -> EndpointVariant:
    return EndpointVariant(
        owner,
        variant_name=name,
        instance_types=[_UNKNOWN if instance_type is None else instance_type],
        construct_name=name if not is_token(name) else f"Variant{position}",
    )
