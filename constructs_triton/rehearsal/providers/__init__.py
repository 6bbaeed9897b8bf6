"""One provider for each resource type; a type without a provider is an error."""

from __future__ import annotations

from ..custom_resources.answers import Answers
from ..errors import TemplateError
from ..services.service_api import ServiceApi
from . import (
    autoscaling,
    functions,
    identity,
    network,
    observability,
    platform,
    sagemaker,
    storage,
    workflows,
)
from .provider import Provider

__all__ = ["Providers"]

_FAMILIES = (
    autoscaling,
    functions,
    identity,
    network,
    observability,
    platform,
    sagemaker,
    storage,
    workflows,
)
_CLASSES: dict[str, type[Provider]] = {each.type: each for family in _FAMILIES for each in family.PROVIDERS}


class Providers:
    """The providers of one simulated account."""

    def __init__(self, api: ServiceApi, answers: Answers) -> None:
        self._api = api
        self._answers = answers

    def of(self, type: str) -> Provider:
        """The provider of a type; raises ``TemplateError`` for an unknown type."""
        if is_custom(type):
            return functions.CustomResource(self._api, self._answers)
        if type not in _CLASSES:
            raise TemplateError(f"Template format error: Unrecognized resource types: [{type}]")
        return _CLASSES[type](self._api)


def is_custom(type: str) -> bool:
    """Whether this is the type of a custom resource."""
    return type.startswith("Custom::") or type == "AWS::CloudFormation::CustomResource"
