"""Reads the endpoints of a synthesized stack: what assertions compare."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from constructs_triton.custom_resource_handlers.model_sync import RESOURCE_TYPE
from constructs_triton.custom_resource_handlers.model_sync.manifest import Manifest
from constructs_triton.custom_resource_handlers.model_sync.properties import SyncProperties
from constructs_triton.errors import LocalEndpointError
from constructs_triton.local.sources.intrinsics import Template
from constructs_triton.testing.synthesized_stack import SynthesizedStack

__all__ = ["DeclaredContainer", "DeclaredEndpoint", "DeclaredVariant", "EndpointReader"]

_DEFAULT_MODEL = "SAGEMAKER_TRITON_DEFAULT_MODEL_NAME"
_MULTI_MODEL = "MultiModel"
# The CDK appends 8 digits to the path of a construct.
_LOGICAL_ID = re.compile(r"(.*?)([0-9A-F]{8})?")


@dataclass(frozen=True)
class DeclaredContainer:
    """The container of a variant or of an inference component.

    ``models`` are the models that a request can reach; ``None`` if the template does not say them.
    """

    image: str
    environment: Mapping[str, str]
    models: frozenset[str] | None

    @property
    def image_version(self) -> str:
        """The tag of the image without its suffix: ``26.05`` of ``sagemaker-tritonserver:26.05-py3``."""
        return self.image.rpartition(":")[2].partition("-")[0]


@dataclass(frozen=True)
class DeclaredVariant:
    """A variant. It has several containers if the endpoint has inference components."""

    name: str
    instance_type: str
    weight: float
    containers: Sequence[DeclaredContainer]


@dataclass(frozen=True)
class DeclaredEndpoint:
    """An endpoint of a template. ``name`` is its ``EndpointName``, or its logical ID."""

    logical_id: str
    name: str
    variants: Sequence[DeclaredVariant]
    shadow_variants: Sequence[DeclaredVariant]

    def is_called(self, name: str) -> bool:
        """Return whether ``name`` is its name, its logical ID, or the path of its construct in the stack."""
        readable = _LOGICAL_ID.fullmatch(self.logical_id)
        return name in (self.name, self.logical_id) or (
            readable is not None and re.sub(r"[^A-Za-z0-9]", "", name) == readable[1]
        )

    @property
    def containers(self) -> list[DeclaredContainer]:
        """The containers of all production variants."""
        return [container for variant in self.variants for container in variant.containers]


@dataclass(frozen=True)
class EndpointReader:
    """Follows an endpoint to its configuration, its models and their archives."""

    stack: SynthesizedStack
    template: Template

    @classmethod
    def of(cls, stack: SynthesizedStack) -> EndpointReader:
        """Return a reader of a stack's template."""
        return cls(stack, Template(stack.name, stack.template))

    def endpoints(self) -> list[DeclaredEndpoint]:
        """Return the endpoints of the stack."""
        return [self._endpoint(each) for each in self.stack.resources("AWS::SageMaker::Endpoint")]

    def value(self, value: Any) -> Any:
        """Return a value without intrinsic functions, or as it is if it is known only when it is deployed."""
        try:
            return self.template.evaluate(value)
        except (LocalEndpointError, KeyError, ValueError):
            return value

    def properties(self, logical_id: str) -> dict[str, Any]:
        """Return the properties of a resource without intrinsic functions, as far as they are known."""
        given = self.template.resources[logical_id].get("Properties", {})
        return {name: self.value(each) for name, each in given.items()}

    def _endpoint(self, logical_id: str) -> DeclaredEndpoint:
        properties = self.properties(logical_id)
        config = self._named("AWS::SageMaker::EndpointConfig", properties.get("EndpointConfigName"))
        name = properties.get("EndpointName", logical_id)
        return DeclaredEndpoint(
            logical_id,
            name,
            [self._variant(each, name) for each in config.get("ProductionVariants", ())],
            [self._variant(each, name) for each in config.get("ShadowProductionVariants", ())],
        )

    def _variant(self, variant: Mapping[str, Any], endpoint: str) -> DeclaredVariant:
        name = str(variant.get("VariantName"))
        if "ModelName" in variant:
            containers = self._containers(variant["ModelName"])
        else:
            containers = list(self._containers_of_components(endpoint, name))
        return DeclaredVariant(
            name,
            str(variant.get("InstanceType", "serverless")),
            float(variant.get("InitialVariantWeight", 1)),
            containers,
        )

    def _containers_of_components(self, endpoint: str, variant: str) -> Iterator[DeclaredContainer]:
        for logical_id in self.stack.resources("AWS::SageMaker::InferenceComponent"):
            component = self.properties(logical_id)
            if component.get("EndpointName") != endpoint or component.get("VariantName", variant) != variant:
                continue
            specification = component.get("Specification") or component.get("Specifications", [{}])[0]
            if "ModelName" in specification:
                yield from self._containers(specification["ModelName"])
            else:
                yield self._container(specification.get("Container", {}))

    def _containers(self, model: Any) -> list[DeclaredContainer]:
        properties = self._named("AWS::SageMaker::Model", model)
        given = properties.get("Containers") or [properties.get("PrimaryContainer", {})]
        return [self._container(each) for each in given]

    def _container(self, container: Mapping[str, Any]) -> DeclaredContainer:
        environment = {name: _text(value) for name, value in container.get("Environment", {}).items()}
        url = str(container.get("ModelDataUrl", ""))
        if container.get("Mode") == _MULTI_MODEL:
            models = self._models_below(url)
        elif _DEFAULT_MODEL in environment:
            models = frozenset({environment[_DEFAULT_MODEL]})
        else:
            models = None
        return DeclaredContainer(str(container.get("Image", "")), environment, models)

    def _models_below(self, url: str) -> frozenset[str] | None:
        """Return the models whose archives the deployment copies below a prefix, if it copies any."""
        for logical_id in self.stack.resources(RESOURCE_TYPE):
            sync = SyncProperties.from_cloudformation(self.properties(logical_id))
            manifest = self._asset(sync.manifest_key)
            if sync.model_data_url == url and manifest is not None:
                return frozenset(each.name for each in Manifest.from_json(manifest.read_bytes()).archives)
        return None

    def _asset(self, key: str) -> Path | None:
        for asset in self.stack.file_assets():
            if key in asset.destinations.values() and asset.path.is_file():
                return asset.path
        return None

    def _named(self, resource_type: str, name: Any) -> dict[str, Any]:
        for logical_id in self.stack.resources(resource_type):
            if self.value({"Ref": logical_id}) == name:
                return self.properties(logical_id)
        return {}


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, str) else json.dumps(value)
