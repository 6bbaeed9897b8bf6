"""One provider for each resource type. What no provider knows is not simulated."""

from __future__ import annotations

from ..custom_resources.functions import Answers
from ..services.service_api import ServiceApi
from . import (
    autoscaling,
    cdk,
    functions,
    gateways,
    identity,
    network,
    observability,
    platform,
    sagemaker,
    storage,
)
from .opaque import OpaqueResource, Tolerant
from .provider import Provider

__all__ = ["Providers"]

_FAMILIES = (
    autoscaling,
    cdk,
    functions,
    gateways,
    identity,
    network,
    observability,
    platform,
    sagemaker,
    storage,
)
"""The modules with the providers, which are in ``Provider.by_type``."""


class Providers:
    """The providers of one simulated account."""

    def __init__(self, api: ServiceApi, answers: Answers) -> None:
        self._api = api
        self._answers = answers
        self.others: dict[str, Provider] = {}
        """Further providers by type, which replace those of this package."""

    def of(self, type: str) -> Provider:
        """The provider of a type; raises ``TemplateError`` if CloudFormation does not have it."""
        if type in self.others:
            return Tolerant(self._api, self.others[type])
        if is_custom(type) and type not in Provider.by_type:
            return Tolerant(self._api, functions.CustomResource(self._api, self._answers))
        if type not in Provider.by_type:
            return OpaqueResource(self._api, type)
        return Tolerant(self._api, Provider.by_type[type](self._api))


def is_custom(type: str) -> bool:
    """Whether this is the type of a custom resource."""
    return type.startswith("Custom::") or type == "AWS::CloudFormation::CustomResource"
