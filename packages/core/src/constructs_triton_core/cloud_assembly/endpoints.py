"""The endpoints of a stack with their configurations, models and containers,
and their scalable targets.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from constructs_triton_core.cloud_assembly.intrinsics import number_of, text_of
from constructs_triton_core.cloud_assembly.shapes import ADOPTED_TYPE
from constructs_triton_core.cloud_assembly.synthesized_stack import SynthesizedStack
from constructs_triton_core.errors import TemplateError

__all__ = [
    "ENDPOINT_TYPES",
    "NOT_TRITON",
    "DeclaredComponent",
    "DeclaredContainer",
    "DeclaredEndpoint",
    "DeclaredTarget",
    "DeclaredVariant",
    "containers_of",
    "declared_endpoints",
    "endpoint_names",
    "hosts_components",
    "instance_types_of",
    "scalable_targets",
]

_CONFIG = "AWS::SageMaker::EndpointConfig"
_MODEL = "AWS::SageMaker::Model"
_COMPONENT = "AWS::SageMaker::InferenceComponent"
#: The second is an endpoint that existed before the stack, with the same properties.
ENDPOINT_TYPES = "AWS::SageMaker::Endpoint", ADOPTED_TYPE
#: Metadata of models whose container is not Triton, which their images may not say.
NOT_TRITON = "constructs-triton:not-triton"
# Names of AWS's images for language models. Deployed models have no metadata.
_OTHER_IMAGE = re.compile(
    r"(?:^|/)(?:(?:huggingface-)?vllm|djl-inference|sglang|llama-cpp)(?:[:@]|$)"
)
# With scaling_guard, custom resources with the same properties replace those of CloudFormation.
_TARGETS = "AWS::ApplicationAutoScaling::ScalableTarget", "Custom::TritonScalableTarget"
_STARTUP_TIMEOUT = "ContainerStartupHealthCheckTimeoutInSeconds"


@dataclass(frozen=True, slots=True)
class DeclaredContainer:
    """The container of a model or of an inference component, whose logical ID is then ``model``.

    ``archive_url`` is the URL of an archive, or the prefix of those of a multi-model container.
    ``files_url`` is the prefix of an uncompressed model.
    """

    model: str
    image: str
    environment: Mapping[str, str]
    archive_url: str | None
    files_url: str | None
    is_multi_model: bool
    model_cache_setting: str
    is_isolated: bool
    execution_role: str | None = None
    #: ``False`` for the containers of others, in which no Triton server runs.
    is_triton: bool = True

    @classmethod
    def of(
        cls,
        model: str,
        properties: Mapping[str, Any],
        *,
        is_isolated: bool = False,
        execution_role: str | None = None,
        is_marked_other: bool = False,
    ) -> DeclaredContainer:
        """Read properties in the form of CloudFormation,
        which is also that of ``DescribeModel``.
        """
        # ModelDataUrl is an archive; S3DataSource says whether it has an archive or files.
        source = (properties.get("ModelDataSource") or {}).get("S3DataSource") or {}
        archive_url = properties.get("ModelDataUrl")
        files_url = None
        if not archive_url and source.get("CompressionType") == "Gzip":
            archive_url = source.get("S3Uri")
        if source.get("CompressionType") == "None" and source.get("S3DataType") == "S3Prefix":
            files_url = source.get("S3Uri")

        image = properties.get("Image", "")
        variables = properties.get("Environment") or {}
        multi_model = properties.get("MultiModelConfig") or {}
        return cls(
            model=model,
            image=str(image),
            environment={name: text_of(value) for name, value in variables.items()},
            archive_url=archive_url or None,
            files_url=files_url,
            is_multi_model=properties.get("Mode") == "MultiModel",
            model_cache_setting=multi_model.get("ModelCacheSetting", "Enabled"),
            is_isolated=is_isolated,
            execution_role=execution_role,
            is_triton=not (is_marked_other or _OTHER_IMAGE.search(text_of(image))),
        )


@dataclass(frozen=True, slots=True)
class DeclaredVariant:
    """A production or shadow variant. Without ``model_name`` inference components run on it.

    ``instance_types`` are in order of priority; a serverless variant has none.
    """

    name: str
    model_name: str | None
    weight: float
    instance_types: Sequence[str]
    startup_timeout_seconds: int | None
    containers: Sequence[DeclaredContainer]

    @property
    def instance_type(self) -> str | None:
        """The instance type, or the first of several."""
        return next(iter(self.instance_types), None)


@dataclass(frozen=True, slots=True)
class DeclaredComponent:
    """An inference component of an endpoint. Of several specifications it has the first."""

    logical_id: str
    name: str
    variant_name: str
    startup_timeout_seconds: int | None
    specification: Mapping[str, Any]
    containers: Sequence[DeclaredContainer]


@dataclass(frozen=True, slots=True)
class DeclaredEndpoint:
    """An endpoint. ``name`` is its ``EndpointName``, or its logical ID;
    ``config`` is its configuration.
    """

    logical_id: str
    name: str
    config: Mapping[str, Any]
    variants: Sequence[DeclaredVariant] = ()
    shadow_variants: Sequence[DeclaredVariant] = ()
    components: Sequence[DeclaredComponent] = ()

    @property
    def containers(self) -> list[DeclaredContainer]:
        """The containers of all production variants and inference components."""
        containers: list[DeclaredContainer] = []
        for variant in self.variants:
            containers += variant.containers
        for component in self.components:
            containers += component.containers
        return containers


@dataclass(frozen=True, slots=True)
class DeclaredTarget:
    """A scalable target."""

    logical_id: str
    properties: Mapping[str, Any]

    @property
    def resource_id(self) -> str:
        """What it scales, such as ``endpoint/digits/variant/AllTraffic``."""
        return str(self.properties.get("ResourceId", self.logical_id))

    @property
    def scaled_name(self) -> str:
        """The name of the variant or of the inference component."""
        return self.resource_id.rpartition("/")[2]


def endpoint_names(stack: SynthesizedStack) -> dict[str, str]:
    """Return the names of the endpoints of a stack by logical ID."""
    return {logical_id: stack.name_of(logical_id) for logical_id in stack.created(*ENDPOINT_TYPES)}


def declared_endpoints(
    stack: SynthesizedStack, name: str | None = None, *, is_complete: bool
) -> Iterator[DeclaredEndpoint]:
    """Yield the endpoints of a stack, or only those with a name.

    With ``is_complete``, what an endpoint needs must be in the stack and known before a deployment.
    Otherwise values that are known only at deployment are as declared, and other stacks may have
    the rest.
    """
    reader = _Reader(stack, is_complete)
    for logical_id, endpoint_name in endpoint_names(stack).items():
        if name is None or name == endpoint_name:
            yield reader.endpoint(logical_id, endpoint_name)


def scalable_targets(stack: SynthesizedStack) -> list[DeclaredTarget]:
    """Return the scalable targets of a stack; values that only a deployment
    decides are as declared.
    """
    return [
        DeclaredTarget(logical_id, stack.known_properties(logical_id))
        for logical_id in stack.created(*_TARGETS)
    ]


def containers_of(model: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the containers of a model, by its properties or by the answer of ``DescribeModel``."""
    primary = model.get("PrimaryContainer")
    return [primary] if primary else list(model.get("Containers") or ())


def instance_types_of(variant: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the instance types of a variant of a configuration, in order of priority;
    none if serverless.
    """
    pools = sorted(variant.get("InstancePools") or (), key=lambda pool: int(pool["Priority"]))
    if pools:
        return tuple(pool["InstanceType"] for pool in pools)
    return (variant["InstanceType"],) if "InstanceType" in variant else ()


def hosts_components(variants: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether the variants of a configuration have no models of their own."""
    return bool(variants) and not any("ModelName" in variant for variant in variants)


@dataclass(frozen=True)
class _Reader:
    stack: SynthesizedStack
    is_complete: bool

    def endpoint(self, logical_id: str, name: str) -> DeclaredEndpoint:
        config_name = self._properties(logical_id).get("EndpointConfigName")
        config = self._named(_CONFIG, config_name, logical_id)
        variants = config.get("ProductionVariants", [])
        shadows = config.get("ShadowProductionVariants", [])
        return DeclaredEndpoint(
            logical_id,
            name,
            config,
            [self._variant(variant) for variant in variants],
            [self._variant(variant) for variant in shadows],
            list(self._components(name, config)) if hosts_components(variants) else [],
        )

    def _variant(self, variant: Mapping[str, Any]) -> DeclaredVariant:
        name = str(variant.get("VariantName"))
        model = variant.get("ModelName")
        return DeclaredVariant(
            name=name,
            model_name=model,
            weight=number_of(variant.get("InitialVariantWeight", 1)),
            instance_types=instance_types_of(variant),
            startup_timeout_seconds=number_of(variant.get(_STARTUP_TIMEOUT)),
            containers=[] if model is None else self._containers(model, name),
        )

    def _components(self, endpoint: str, config: Mapping[str, Any]) -> Iterator[DeclaredComponent]:
        for logical_id in self.stack.created(_COMPONENT):
            properties = self._properties(logical_id)
            if properties.get("EndpointName") == endpoint:
                yield self._component(logical_id, properties, config)

    def _component(
        self, logical_id: str, properties: Mapping[str, Any], config: Mapping[str, Any]
    ) -> DeclaredComponent:
        # A component has one specification, or one for each instance type.
        several: Sequence[Mapping[str, Any]] = [*properties.get("Specifications", ()), {}]
        specification = properties.get("Specification") or several[0]

        isolated = _is_isolated(config)
        if "ModelName" in specification:
            containers = self._containers(specification["ModelName"], logical_id, isolated)
        else:
            given = specification.get("Container") or {}
            container = {**given, "ModelDataUrl": given.get("ArtifactUrl")}
            containers = [DeclaredContainer.of(logical_id, container, is_isolated=isolated)]

        variant = properties.get("VariantName") or config["ProductionVariants"][0]["VariantName"]
        startup = specification.get("StartupParameters") or {}
        return DeclaredComponent(
            logical_id,
            self.stack.name_of(logical_id),
            variant,
            number_of(startup.get(_STARTUP_TIMEOUT)),
            specification,
            containers,
        )

    def _containers(
        self, model: str, wanted_by: str, is_isolated: bool = False
    ) -> list[DeclaredContainer]:
        properties = self._named(_MODEL, model, wanted_by)
        isolated = is_isolated or _is_isolated(properties)
        role = properties.get("ExecutionRoleArn")
        return [
            DeclaredContainer.of(
                model,
                container,
                is_isolated=isolated,
                execution_role=role,
                is_marked_other=self._is_marked_other(model),
            )
            for container in containers_of(properties) or [{}]
        ]

    def _is_marked_other(self, model: str) -> bool:
        resources = self.stack.template.resources
        return any(
            resources[logical_id].metadata.get(NOT_TRITON) is True
            for logical_id in self.stack.created(_MODEL)
            if self.stack.name_of(logical_id) == model
        )

    def _named(self, resource_type: str, name: Any, wanted_by: str) -> dict[str, Any]:
        for logical_id in self.stack.created(resource_type):
            if self.stack.name_of(logical_id) == name:
                return self._properties(logical_id)
        if not self.is_complete:
            return {}
        raise TemplateError(
            f"{self.stack.name}/{wanted_by}: no {resource_type} of this stack has the name "
            f"{name!r}; define the endpoint, its configuration and its models in the same stack"
        )

    def _properties(self, logical_id: str) -> dict[str, Any]:
        read = self.stack.properties if self.is_complete else self.stack.known_properties
        return read(logical_id)


def _is_isolated(properties: Mapping[str, Any]) -> bool:
    return text_of(properties.get("EnableNetworkIsolation", False)) == "true"
