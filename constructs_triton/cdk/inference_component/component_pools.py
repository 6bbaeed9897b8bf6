"""A component on every instance type of its endpoint: its checks,
and its specification for each type.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from constructs_triton.cdk.endpoint.container import SettledContainer, settle_container
from constructs_triton.cdk.endpoint.endpoint_config import ModelContainer, bind_container
from constructs_triton.cdk.endpoint.served_models import SingleModel, check_kept_models
from constructs_triton.cdk.endpoint.sizing import Sizing
from constructs_triton.cdk.inference_component.component_host import ComponentHost
from constructs_triton.cdk.inference_component.compute_requirements import ComputeRequirements
from constructs_triton.cdk.inference_component.properties import InferenceComponentOptions
from constructs_triton.cdk.options.image import TritonImage
from constructs_triton.cdk.options.instance_pool import (
    InstancePool,
    has_own_models,
    merged_findings,
    raise_pool_errors,
)
from constructs_triton.cdk.options.variant_options import ContainerOptions
from constructs_triton.cdk.repository.model_repository import TritonModelRepository
from constructs_triton.cdk.repository.properties import CompressionType
from constructs_triton.cdk.validation.property_types import check_type
from constructs_triton_core.errors import ConstructsTritonError, InvalidValueError, RepositoryError
from constructs_triton_core.facts.instance_types import InstanceType
from constructs_triton_core.findings import Finding


def component_models(
    repository: TritonModelRepository,
    model: str | None,
    ensemble: str | None,
    compression_type: CompressionType | None,
) -> SingleModel:
    """Return the model or the ensemble of a component.

    Raises:
        InvalidValueError: both are given, or the repository has no such model.
    """
    check_type("compression_type", compression_type, (CompressionType, "CompressionType.NONE"))
    if model is not None and ensemble is not None:
        raise InvalidValueError(
            "model: cannot be combined with ensemble, "
            f'got "{model}" and "{ensemble}"; remove one of them'
        )
    if ensemble is not None:
        return SingleModel.of_ensemble(repository, ensemble, compression_type)
    return SingleModel.of_model(repository, model, compression_type)


def settle_component(
    scope: Construct,
    models: SingleModel,
    options: InferenceComponentOptions,
    *,
    image: TritonImage,
    instance_type: InstanceType,
    enable_network_isolation: bool | None,
    shared_with: Sequence[InstanceType] = (),
    max_memory_mib: float | None = None,
) -> SettledContainer:
    """Check models, image and variables of a component as those of an endpoint's variant.

    ``instance_type`` has the GPUs of one copy. ``shared_with`` are all types that load the same
    models.
    """
    check_kept_models(models, options["removal_policy"])
    return settle_container(
        scope,
        models,
        instance_type,
        image=None if models.contents.is_model_package else image,
        environment=options["environment"],
        inference_ami_version=None,  # the endpoint chooses it for all components
        enable_network_isolation=enable_network_isolation,
        shared_with=shared_with,
        max_memory_mib=max_memory_mib,
    )


_Component = sagemaker.CfnInferenceComponent
_Settled = tuple[ComputeRequirements, SettledContainer]


@dataclass(frozen=True, slots=True)
class SettledComponent:
    """What a component reserves, its container, and those of types with
    their own models, by type.
    """

    requirements: ComputeRequirements
    container: SettledContainer
    overrides: Mapping[str, SettledContainer] = field(default_factory=dict)

    @property
    def used_memory_mib(self) -> float:
        """What a copy takes of the main memory of any type, at least."""
        containers = (self.container, *self.overrides.values())
        return min(_used_memory_mib(container) for container in containers)


def settle_on_host(
    scope: Construct, models: SingleModel, options: InferenceComponentOptions, host: ComponentHost
) -> SettledComponent:
    """Check a component for every instance type of its endpoint.

    Raises:
        InvalidValueError: an instance type does not have what a copy reserves, or SageMaker would
            refuse a value.
        RepositoryError: Triton would not load the models.
    """
    host.check_image(options["image"] or host.image)
    if len(host.types) == 1 and options["instance_pools"] is None:
        return SettledComponent(*_settle(scope, models, options, host, host.instance_type))

    pools = _own_pools(options["instance_pools"] or (), host.types)
    sharing = [instance_type for instance_type in host.types if instance_type.name not in pools]

    # The errors of all types are reported together.
    settled: dict[InstanceType, _Settled] = {}
    errors: dict[InstanceType, ConstructsTritonError] = {}
    for instance_type in host.types:
        pool = pools.get(instance_type.name)
        loaded = models
        loaded_by = sharing
        if pool is not None:
            loaded = models.of_variant(pool.model_repository, pool.model)
            loaded_by = [instance_type]
        try:
            settled[instance_type] = _settle(
                scope, loaded, options, host, instance_type, shared_with=loaded_by
            )
        except (InvalidValueError, RepositoryError) as error:
            errors[instance_type] = error
    raise_pool_errors(errors)

    requirements, container = settled[sharing[0]]
    found = {}
    overrides = {}
    for instance_type, (_, of_type) in settled.items():
        found[instance_type] = of_type.findings
        if instance_type.name in pools:
            # Its findings are among those of the component.
            overrides[instance_type.name] = replace(of_type, findings=())
    container = replace(container, findings=merged_findings(found))
    return SettledComponent(requirements, container, overrides)


def _settle(
    scope: Construct,
    models: SingleModel,
    options: InferenceComponentOptions,
    host: ComponentHost,
    instance_type: InstanceType,
    *,
    shared_with: Sequence[InstanceType] = (),
) -> _Settled:
    """Return what a component needs on an instance type, and its container there."""
    requirements = ComputeRequirements.of(options, instance_type)
    container = settle_component(
        scope,
        models,
        options,
        image=options["image"] or host.image,
        instance_type=requirements.part_of(instance_type),
        enable_network_isolation=host.enable_network_isolation,
        shared_with=shared_with,
        max_memory_mib=requirements.known_max_memory_mib,
    )
    warnings: list[Finding] = requirements.warnings(instance_type)
    return requirements, replace(container, findings=(*warnings, *container.findings))


def _used_memory_mib(container: SettledContainer) -> float:
    models = container.models
    if not isinstance(models, SingleModel):
        return 0
    return models.contents.host_bytes(models.model, container.target) / 2**20


def _own_pools(
    pools: Sequence[InstancePool], types: Sequence[InstanceType]
) -> dict[str, InstancePool]:
    """Return the pools of a component by instance type: each has models of its own.

    Raises:
        InvalidValueError: a pool is not one of the endpoint's, or has no models.
    """
    names = [instance_type.name for instance_type in types]
    found: dict[str, InstancePool] = {}
    for pool in pools:
        name = pool.instance_type.name
        if name in found:
            raise InvalidValueError(f'instance_pools: must be unique, got "{name}"; remove it')
        if name not in names:
            raise InvalidValueError(
                "instance_pools: must be one of the endpoint's instance_pools, "
                f'got "{name}"; remove it'
            )
        if not has_own_models(pool):
            raise InvalidValueError(
                f'instance_pools: "{name}" has no models of its own; '
                "set model_repository or model on it, or remove it"
            )
        found[name] = pool
    if len(found) == len(names):
        raise InvalidValueError(
            "instance_pools: no instance type uses the model_repository of the component; set the "
            f"component's model_repository to that of {names[0]}, "
            f"and remove {names[0]} from the list"
        )
    return found


def bind_component(
    scope: Construct, settled: SettledComponent, options: ContainerOptions
) -> tuple[ModelContainer, dict[str, ModelContainer]]:
    """Add what the container needs to the stack, and what types with their own models need, by
    type.

    The timeouts are the longest of all.
    """
    location = settled.container.models.bind(scope)
    locations = {}
    sizings = [Sizing.of(location, settled.container.instance_type, options)]
    for name, override in settled.overrides.items():
        locations[name] = override.models.bind(scope)
        sizings.append(Sizing.of(locations[name], override.instance_type, options))

    sizing = Sizing.of_pools(sizings)
    container = bind_container(settled.container, scope, location, sizing)
    overrides = {
        name: bind_container(override, Construct(scope, f"{name}Pool"), locations[name], sizing)
        for name, override in settled.overrides.items()
    }
    return container, overrides


def render_specifications(
    types: Sequence[InstanceType],
    specification: sagemaker.CfnInferenceComponent.InferenceComponentSpecificationProperty,
    models: Mapping[str, sagemaker.CfnModel],
) -> list[sagemaker.CfnInferenceComponent.InferenceComponentSpecificationForInstanceTypeProperty]:
    """Return the specification for each type, which differs in its model only.

    ``models`` are by type.
    """
    return [
        _Component.InferenceComponentSpecificationForInstanceTypeProperty(
            instance_type=instance_type.name,
            model_name=models[instance_type.name].attr_model_name
            if instance_type.name in models
            else specification.model_name,
            compute_resource_requirements=specification.compute_resource_requirements,
            startup_parameters=specification.startup_parameters,
            data_cache_config=specification.data_cache_config,
            scheduling_config=specification.scheduling_config,
        )
        for instance_type in types
    ]
