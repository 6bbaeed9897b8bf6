"""An endpoint that exists already, or that another stack makes."""

from __future__ import annotations

from collections.abc import Mapping

import jsii
from aws_cdk import ArnFormat, Stack
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from constructs_triton.cdk.endpoint.endpoint_base import EndpointBase
from constructs_triton.cdk.scaling.endpoint_variant import EndpointVariant, VariantOwner
from constructs_triton.cdk.validation.limit_checks import check_name
from constructs_triton.cdk.validation.tokens import is_concrete
from constructs_triton.errors import InvalidValueError
from constructs_triton.facts import limits
from constructs_triton.facts.instance_types import InstanceType

__all__ = ["ImportableEndpoint", "ImportedTritonEndpoint"]

_DEFAULT_VARIANTS: Mapping[str, InstanceType | None] = {"AllTraffic": None}


@jsii.implements(sagemaker.IEndpoint)
class ImportedTritonEndpoint(EndpointBase):
    """An endpoint by its name and ARN: grants, metrics and scaling work as on one that was made here.

    Made by ``TritonEndpoint.from_endpoint_name`` and its siblings.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        endpoint_name: str,
        endpoint_arn: str,
        variants: Mapping[str, InstanceType | None],
        serves_many: bool | None,
        is_asynchronous: bool | None,
    ) -> None:
        check_name("endpoint_name", endpoint_name, limits.ENDPOINT_NAME)
        for name in variants:
            check_name("variants", name, limits.VARIANT_NAME)
        super().__init__(scope, id, environment_from_arn=endpoint_arn)
        self._endpoint_name = endpoint_name
        self._endpoint_arn = endpoint_arn
        self._serves_many = serves_many
        self._async_inference = None
        self._is_asynchronous = is_asynchronous
        self._repository = None
        owner = VariantOwner(self, endpoint_name, None, bool(is_asynchronous))
        self._variants = tuple(
            EndpointVariant(
                owner,
                variant_name=name,
                instance_type=_UNKNOWN if instance_type is None else instance_type,
                construct_name=name if is_concrete(name) else f"Variant{position}",
            )
            for position, (name, instance_type) in enumerate(variants.items())
        )


_UNKNOWN = InstanceType("not known of an imported endpoint", is_known=False)


class ImportableEndpoint:
    """The ways to refer to an endpoint that exists already."""

    _imported_serves_many: bool | None = None

    @classmethod
    def from_endpoint_name(cls, scope: Construct, id: str, endpoint_name: str) -> ImportedTritonEndpoint:
        """An endpoint of this account and Region, with the one variant ``"AllTraffic"``."""
        return cls.from_endpoint_attributes(scope, id, endpoint_name=endpoint_name)

    @classmethod
    def from_endpoint_arn(cls, scope: Construct, id: str, endpoint_arn: str) -> ImportedTritonEndpoint:
        """An endpoint by its ARN, also one of another account or Region."""
        return cls.from_endpoint_attributes(scope, id, endpoint_arn=endpoint_arn)

    @classmethod
    def from_endpoint_attributes(
        cls,
        scope: Construct,
        id: str,
        *,
        endpoint_name: str | None = None,
        endpoint_arn: str | None = None,
        variants: Mapping[str, InstanceType | None] | None = None,
        is_asynchronous: bool | None = None,
    ) -> ImportedTritonEndpoint:
        """An endpoint by its name or ARN, and what else is known of it.

        ``variants`` maps the names of its variants to their instance types, ``None`` where a type is not
        known: scaling on GPU utilisation then needs ``gpu_count``. By default there is one, ``"AllTraffic"``.
        """
        if (endpoint_name is None) == (endpoint_arn is None):
            given = "neither" if endpoint_name is None else "both"
            raise InvalidValueError(
                f"endpoint_name: exactly one of it and endpoint_arn says which endpoint, "
                f"got {given}; give one"
            )
        name, arn = _name_and_arn(scope, endpoint_name, endpoint_arn)
        return ImportedTritonEndpoint(
            scope,
            id,
            endpoint_name=name,
            endpoint_arn=arn,
            variants=_DEFAULT_VARIANTS if variants is None else variants,
            serves_many=cls._imported_serves_many,
            is_asynchronous=is_asynchronous,
        )


def _name_and_arn(scope: Construct, name: str | None, arn: str | None) -> tuple[str, str]:
    stack = Stack.of(scope)
    if name is not None:
        return name, stack.format_arn(service="sagemaker", resource="endpoint", resource_name=name)
    assert arn is not None
    if is_concrete(arn) and ":endpoint/" not in arn:
        raise InvalidValueError(
            f'endpoint_arn: must be the ARN of an endpoint, got "{arn}"; '
            'write it as "arn:aws:sagemaker:eu-west-1:123456789012:endpoint/digits"'
        )
    found = stack.split_arn(arn, ArnFormat.SLASH_RESOURCE_NAME).resource_name
    assert found is not None  # the format says that there is one
    return found, arn
