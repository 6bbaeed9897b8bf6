"""The endpoints of a stack: from each endpoint to its configuration, its models and their containers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from constructs_triton.cloud_assembly.intrinsics import text_of
from constructs_triton.cloud_assembly.synthesized_stack import SynthesizedStack
from constructs_triton.custom_resource_handlers.model_sync.properties import SyncProperties
from constructs_triton.errors import TemplateError

__all__ = [
    "DeclaredComponent",
    "DeclaredContainer",
    "DeclaredEndpoint",
    "DeclaredVariant",
    "declared_endpoints",
    "endpoint_names",
    "hosts_components",
    "model_syncs",
]

_ENDPOINT, _CONFIG = "AWS::SageMaker::Endpoint", "AWS::SageMaker::EndpointConfig"
_MODEL, _COMPONENT = "AWS::SageMaker::Model", "AWS::SageMaker::InferenceComponent"


@dataclass(frozen=True, slots=True)
class DeclaredContainer:
    """The container of a model or of an inference component.

    ``model`` is the name of the model, or the logical ID of the component. ``properties`` have the form of
    CloudFormation, which is also that of SageMaker's ``DescribeModel``. ``is_isolated`` says whether it has
    network isolation.
    """

    model: str
    properties: Mapping[str, Any]
    is_isolated: bool = False

    @property
    def image(self) -> str:
        """The URI of the image; ``""`` if there is none."""
        return str(self.properties.get("Image", ""))

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables."""
        return {name: text_of(each) for name, each in self.properties.get("Environment", {}).items()}

    @property
    def is_multi_model(self) -> bool:
        """Whether callers choose the model."""
        return self.properties.get("Mode") == "MultiModel"

    @property
    def model_cache_setting(self) -> str:
        """``Disabled`` if a multi-model container unloads a model after each call."""
        setting: str = self.properties.get("MultiModelConfig", {}).get("ModelCacheSetting", "Enabled")
        return setting

    @property
    def files_url(self) -> str | None:
        """The prefix of the files of an uncompressed model; ``None`` if it has an archive."""
        source = self._data_source
        is_prefix = source.get("CompressionType") == "None" and source.get("S3DataType") == "S3Prefix"
        return str(source["S3Uri"]) if is_prefix and "S3Uri" in source else None

    @property
    def archive_url(self) -> str | None:
        """The URL of the archive, or the prefix of the archives of a multi-model container."""
        source = self._data_source
        is_archive = source.get("CompressionType") == "Gzip"
        url = self.properties.get("ModelDataUrl") or (source.get("S3Uri") if is_archive else None)
        return str(url) if url else None

    @property
    def _data_source(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.properties.get("ModelDataSource", {}).get("S3DataSource", {})
        return found


@dataclass(frozen=True, slots=True)
class DeclaredVariant:
    """A production or shadow variant. It has no ``containers`` if inference components run on it."""

    properties: Mapping[str, Any]
    containers: Sequence[DeclaredContainer] = ()

    @property
    def name(self) -> str:
        """``VariantName``."""
        return str(self.properties.get("VariantName"))

    @property
    def weight(self) -> float:
        """Its share of the traffic relative to the others."""
        return float(self.properties.get("InitialVariantWeight", 1))

    @property
    def instance_type(self) -> str | None:
        """The instance type; ``None`` for a serverless variant."""
        found: str | None = self.properties.get("InstanceType")
        return found

    @property
    def startup_timeout_seconds(self) -> int | None:
        """How long its containers may take to start."""
        return _startup_timeout(self.properties)


@dataclass(frozen=True, slots=True)
class DeclaredComponent:
    """An inference component of an endpoint. Of several specifications it has the first."""

    logical_id: str
    name: str
    variant_name: str
    specification: Mapping[str, Any]
    containers: Sequence[DeclaredContainer]

    @property
    def startup_timeout_seconds(self) -> int | None:
        """How long its containers may take to start."""
        return _startup_timeout(self.specification.get("StartupParameters", {}))


@dataclass(frozen=True, slots=True)
class DeclaredEndpoint:
    """An endpoint. ``name`` is its ``EndpointName``, or its logical ID; ``config`` is its configuration."""

    logical_id: str
    name: str
    config: Mapping[str, Any]
    variants: Sequence[DeclaredVariant] = ()
    shadow_variants: Sequence[DeclaredVariant] = ()
    components: Sequence[DeclaredComponent] = ()

    @property
    def containers(self) -> list[DeclaredContainer]:
        """The containers of all production variants and inference components."""
        of_variants = (each for variant in self.variants for each in variant.containers)
        return [*of_variants, *(each for component in self.components for each in component.containers)]


def endpoint_names(stack: SynthesizedStack) -> dict[str, str]:
    """Return the names of the endpoints of a stack by logical ID."""
    return {logical_id: stack.name_of(logical_id) for logical_id in stack.created(_ENDPOINT)}


def declared_endpoints(
    stack: SynthesizedStack, name: str | None = None, *, is_complete: bool
) -> Iterator[DeclaredEndpoint]:
    """Yield the endpoints of a stack, or only those with a name.

    With ``is_complete``, what an endpoint needs must be in the stack and known before a deployment.
    Otherwise values that are known only at deployment are as declared, and other stacks may have the rest.

    Raises:
        TemplateError: something is missing or unknown, and ``is_complete`` is set.
    """
    reader = _Reader(stack, is_complete)
    for logical_id, each in endpoint_names(stack).items():
        if name in (None, each):
            yield reader.endpoint(logical_id, each)


def hosts_components(variants: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether the variants of a configuration have no models of their own."""
    return bool(variants) and not any("ModelName" in variant for variant in variants)


def model_syncs(
    stack: SynthesizedStack, resource_type: str, url: str
) -> Iterator[tuple[str, SyncProperties]]:
    """Yield the custom resources that place models below a prefix of S3, by logical ID."""
    for logical_id in stack.created(resource_type):
        sync = SyncProperties.from_cloudformation(stack.known_properties(logical_id))
        if f"{sync.model_data_url}{sync.folder}" == url:
            yield logical_id, sync


@dataclass(frozen=True)
class _Reader:
    stack: SynthesizedStack
    is_complete: bool

    def endpoint(self, logical_id: str, name: str) -> DeclaredEndpoint:
        config_name = self._properties(logical_id).get("EndpointConfigName")
        config = self._named(_CONFIG, config_name, logical_id) or {}
        variants = config.get("ProductionVariants", [])
        return DeclaredEndpoint(
            logical_id,
            name,
            config,
            [self._variant(each) for each in variants],
            [self._variant(each) for each in config.get("ShadowProductionVariants", [])],
            list(self._components(name, config)) if hosts_components(variants) else [],
        )

    def _variant(self, variant: Mapping[str, Any]) -> DeclaredVariant:
        if "ModelName" not in variant:
            return DeclaredVariant(variant)
        return DeclaredVariant(variant, self._containers(variant["ModelName"], variant["VariantName"]))

    def _components(self, endpoint: str, config: Mapping[str, Any]) -> Iterator[DeclaredComponent]:
        for logical_id in self.stack.created(_COMPONENT):
            properties = self._properties(logical_id)
            if properties.get("EndpointName") != endpoint:
                continue
            specification = properties.get("Specification") or properties.get("Specifications", [{}])[0]
            yield DeclaredComponent(
                logical_id,
                self.stack.name_of(logical_id),
                properties.get("VariantName") or config["ProductionVariants"][0]["VariantName"],
                specification,
                self._containers_of_component(specification, logical_id, _is_isolated(config)),
            )

    def _containers_of_component(
        self, specification: Mapping[str, Any], logical_id: str, is_isolated: bool
    ) -> list[DeclaredContainer]:
        if "ModelName" in specification:
            containers = self._containers(specification["ModelName"], logical_id)
        else:
            given = specification.get("Container", {})
            container = {**given, "ModelDataUrl": given.get("ArtifactUrl")}
            containers = [DeclaredContainer(logical_id, container)]
        return [
            DeclaredContainer(each.model, each.properties, each.is_isolated or is_isolated)
            for each in containers
        ]

    def _containers(self, model: str, wanted_by: str) -> list[DeclaredContainer]:
        properties = self._named(_MODEL, model, wanted_by)
        if properties is None:
            return [DeclaredContainer(model, {})]
        primary = properties.get("PrimaryContainer")
        given = properties.get("Containers", []) if primary is None else [primary]
        return [DeclaredContainer(model, each, _is_isolated(properties)) for each in given]

    def _named(self, resource_type: str, name: Any, wanted_by: str) -> dict[str, Any] | None:
        for logical_id in self.stack.created(resource_type):
            if self.stack.name_of(logical_id) == name:
                return self._properties(logical_id)
        if not self.is_complete:
            return None
        raise TemplateError(
            f"{self.stack.name}/{wanted_by}: no {resource_type} of this stack has the name {name!r}; "
            "define the endpoint, its configuration and its models in the same stack"
        )

    def _properties(self, logical_id: str) -> dict[str, Any]:
        read = self.stack.properties if self.is_complete else self.stack.known_properties
        return read(logical_id)


def _is_isolated(properties: Mapping[str, Any]) -> bool:
    return text_of(properties.get("EnableNetworkIsolation", False)) == "true"


def _startup_timeout(properties: Mapping[str, Any]) -> int | None:
    seconds = properties.get("ContainerStartupHealthCheckTimeoutInSeconds")
    return None if seconds is None else int(seconds)
