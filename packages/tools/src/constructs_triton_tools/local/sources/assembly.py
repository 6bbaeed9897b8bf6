"""Reads what runs locally of a cloud assembly (``cdk.out``):
endpoints with the files of their models.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TypeVar

from constructs_triton_core.cloud_assembly.assembly import Assembly
from constructs_triton_core.cloud_assembly.endpoints import (
    DeclaredComponent,
    DeclaredContainer,
    DeclaredEndpoint,
    DeclaredVariant,
    declared_endpoints,
    endpoint_names,
    hosts_components,
    scalable_targets,
)
from constructs_triton_core.cloud_assembly.synthesized_stack import SynthesizedStack
from constructs_triton_core.errors import LocalEndpointError, TemplateError
from constructs_triton_core.untrusted.regular_files import read_regular
from constructs_triton_functions.model_sync import FILES_RESOURCE_TYPE, RESOURCE_TYPE
from constructs_triton_functions.model_sync.manifest import FileManifest, Manifest
from constructs_triton_tools.assembly.model_syncs import model_syncs
from constructs_triton_tools.local.sources.role_permissions import role_permissions
from constructs_triton_tools.local.sources.secret_values import with_secrets
from constructs_triton_tools.local.sources.specs import (
    AsyncInferenceSpec,
    ComponentSpec,
    ContainerSpec,
    EndpointSpec,
    FileContent,
    VariantSpec,
    check_names,
    file_content,
)

ManifestT = TypeVar("ManifestT", Manifest, FileManifest)
_COPIES = "sagemaker:inference-component:DesiredCopyCount"


def read_endpoints(
    directory: Path, *, stack: str | None = None, endpoint: str | None = None
) -> tuple[EndpointSpec, ...]:
    """Read the endpoints of a cloud assembly, including nested stacks and stages.

    ``stack`` and ``endpoint`` select by name (default: all). Other endpoints need not be able to
    run locally.
    """
    try:
        stacks = list(Assembly(Path(directory)).all_stacks())
        chosen = _keep_named(stacks, stack, directory)
        specs: list[EndpointSpec] = []
        for found in chosen:
            reader = _Specs(found, stacks)
            for declared in declared_endpoints(found, endpoint, is_complete=True):
                specs.append(reader.endpoint(declared))
    except TemplateError as error:
        raise LocalEndpointError(str(error)) from error
    if not specs:
        raise LocalEndpointError(_no_endpoint(directory, chosen, endpoint))
    _refuse_duplicates(specs)
    return tuple(specs)


def _no_endpoint(directory: Path, stacks: Sequence[SynthesizedStack], endpoint: str | None) -> str:
    if endpoint is None:
        names = ", ".join(stack.name for stack in stacks) or "none"
        return (
            f"{directory}: no stack contains an AWS::SageMaker::Endpoint, got stacks {names}; "
            "add an endpoint to the app and run `npx cdk synth`"
        )
    endpoints = chain.from_iterable(endpoint_names(stack).values() for stack in stacks)
    known = ", ".join(endpoints) or "none"
    return f"{directory}: no such endpoint, got {endpoint!r}; set --endpoint to one of {known}"


def _keep_named(
    stacks: Sequence[SynthesizedStack], name: str | None, directory: Path
) -> list[SynthesizedStack]:
    kept = [stack for stack in stacks if name is None or name in stack.names]
    if name is not None and not kept:
        known = ", ".join(sorted(stack.name for stack in stacks)) or "none"
        raise LocalEndpointError(
            f"{directory}: no such stack, got {name!r}; set --stack to one of {known}"
        )
    return kept


def _refuse_duplicates(specs: Sequence[EndpointSpec]) -> None:
    names = [spec.name for spec in specs]
    for spec in specs:
        if names.count(spec.name) > 1:
            raise LocalEndpointError(
                f"{spec.stack}: two endpoints are called {spec.name!r}; choose one with --stack"
            )


@dataclass(frozen=True, slots=True)
class _Specs:
    """What runs locally of the endpoints of one stack of an app."""

    stack: SynthesizedStack
    app: Sequence[SynthesizedStack]

    def endpoint(self, endpoint: DeclaredEndpoint) -> EndpointSpec:
        has_components = hosts_components(endpoint.config.get("ProductionVariants", []))
        return EndpointSpec(
            name=endpoint.name,
            stack=self.stack.name,
            variants=() if has_components else tuple(map(self._variant, endpoint.variants)),
            shadow_variants=tuple(map(self._variant, endpoint.shadow_variants)),
            region=self.stack.region,
            account=self.stack.account,
            asynchronous=self._asynchronous(endpoint),
            components=self._components(endpoint) if has_components else (),
            not_run=tuple(
                component.name for component in endpoint.components if not _is_triton(component)
            ),
        )

    def _asynchronous(self, endpoint: DeclaredEndpoint) -> AsyncInferenceSpec | None:
        spec = AsyncInferenceSpec.of(endpoint.config)
        roles = [
            container.execution_role
            for container in endpoint.containers
            if container.execution_role
        ]
        return spec and replace(
            spec, permissions=role_permissions(self.app, roles[0]) if roles else None
        )

    def _variant(self, variant: DeclaredVariant) -> VariantSpec:
        if variant.model_name is None:
            raise LocalEndpointError(
                f"{self.stack.name}: variant {variant.name} has no ModelName beside variants "
                "that have one; give every variant a model, or none"
            )
        return VariantSpec(
            name=variant.name,
            container=self._container(variant.containers, variant.model_name),
            weight=float(variant.weight),
            instance_types=variant.instance_types,
            startup_timeout_seconds=variant.startup_timeout_seconds,
        )

    def _components(self, endpoint: DeclaredEndpoint) -> tuple[ComponentSpec, ...]:
        types = {variant.name: variant.instance_types for variant in endpoint.variants}
        asleep = self._names_with_minimum_zero()
        of_triton = [component for component in endpoint.components if _is_triton(component)]
        found = tuple(self._component(component, types, asleep) for component in of_triton)
        if not endpoint.components:
            raise LocalEndpointError(
                f"{self.stack.name}/{endpoint.name}: the endpoint has variants without a model, "
                "and no inference component of this stack runs on it; define its components in the "
                "same stack, or select other endpoints with --endpoint"
            )
        names = [component.name for component in found]
        for name in names:
            if names.count(name) > 1:
                raise LocalEndpointError(
                    f"{self.stack.name}: two inference components are called {name!r}; change "
                    "InferenceComponentName of one of them"
                )
        return found

    def _component(
        self, component: DeclaredComponent, types: Mapping[str, Sequence[str]], asleep: set[str]
    ) -> ComponentSpec:
        place = f"{self.stack.name}/{component.logical_id}"
        container = self._container(
            component.containers, component.specification.get("ModelName", "")
        )
        if container.is_multi_model:
            raise LocalEndpointError(
                f"{place}: an inference component cannot run a multi-model container; "
                "remove Mode from its model"
            )
        return ComponentSpec(
            name=component.name,
            container=container,
            instance_types=types.get(component.variant_name, ()),
            startup_timeout_seconds=component.startup_timeout_seconds,
            variant_name=component.variant_name,
            starts_at_zero=component.name in asleep,
        )

    def _names_with_minimum_zero(self) -> set[str]:
        """Return the components that Application Auto Scaling may bring down to zero copies."""
        return {
            target.scaled_name
            for target in scalable_targets(self.stack)
            if target.properties.get("ScalableDimension") == _COPIES
            and str(target.properties.get("MinCapacity", 1)) == "0"
        }

    def _container(self, containers: Sequence[DeclaredContainer], model: str) -> ContainerSpec:
        if len(containers) != 1:
            raise LocalEndpointError(
                f"{self.stack.name}/{model}: must have one container, got {len(containers)}; "
                "serial inference pipelines do not run locally, "
                "so select other endpoints with --endpoint"
            )
        (container,) = containers
        if not container.is_triton:
            raise LocalEndpointError(
                f"{self.stack.name}/{container.model}: its container is not Triton, got "
                f"{container.image!r}; select other endpoints with --endpoint"
            )
        url = container.files_url or container.archive_url
        if url is None:
            raise LocalEndpointError(
                f"{self.stack.name}/{container.model}: has no model data; "
                "set ModelDataUrl, or ModelDataSource with an S3Prefix and CompressionType None"
            )
        url = str(url)  # a number is also a string for CloudFormation
        where = f"{self.stack.name}/{container.model}"
        environment, secrets = with_secrets(container.environment, where)
        spec = ContainerSpec(
            model=container.model,
            image=container.image,
            model_data_url=url,
            environment=environment,
            secrets=secrets,
            model_cache_setting=container.model_cache_setting,
            is_isolated=container.is_isolated,
        )
        if container.is_multi_model:
            manifests = self._manifests_below(url)
            return replace(
                spec,
                archives=self._archives_of(manifests),
                indexed={owner: manifest.target_models for owner, manifest in manifests.items()},
            )
        if container.files_url is not None:
            return replace(spec, files=self._files_below(url, container.model))
        return replace(spec, archive=self._asset(_key_of(url), container.model))

    def _manifests_below(self, url: str) -> dict[str, Manifest]:
        """Return what the deployment would copy below the prefix,
        by the resource that copies it.
        """
        return {
            logical_id: self._manifest(Manifest.from_json, sync.manifest_key, logical_id)
            for logical_id, sync in model_syncs(self.stack, RESOURCE_TYPE, url)
        }

    def _archives_of(self, manifests: Mapping[str, Manifest]) -> dict[str, Path]:
        """Return the archives of manifests, by target model."""
        archives: dict[str, Path] = {}
        for manifest in manifests.values():
            for archive in manifest.archives:
                path = self._asset(archive.source_key, archive.target_model)
                archives[archive.target_model] = path
        return archives

    def _files_below(self, url: str, model: str) -> dict[str, FileContent]:
        """Return the files that the deployment would place below the prefix, by their paths."""
        for logical_id, sync in model_syncs(self.stack, FILES_RESOURCE_TYPE, url):
            manifest = self._manifest(FileManifest.from_json, sync.manifest_key, logical_id)
            files = {
                file.path: file_content(file, manifest, self._asset) for file in manifest.files
            }
            check_names(url, files)
            return files
        raise LocalEndpointError(
            f"{self.stack.name}/{model}: the files of its model are not in this assembly, got "
            f"{url!r}; deploy it and run it with --aws-endpoint-url, "
            "or select other endpoints with --endpoint"
        )

    def _manifest(
        self, parse: Callable[[bytes], ManifestT], key: str, logical_id: str
    ) -> ManifestT:
        path = self._asset(key, logical_id)
        try:
            return parse(read_regular(path))
        except (OSError, ValueError) as error:
            raise LocalEndpointError(
                f"{path}: cannot be read as a manifest ({error}); run `npx cdk synth` again"
            ) from error

    def _asset(self, key: str, wanted_by: str) -> Path:
        path = self.stack.asset(key)
        if path is None or not path.is_file():
            where = "the assembly has no such asset" if path is None else f"{path} does not exist"
            raise LocalEndpointError(
                f"{self.stack.name}/{wanted_by}: {where}, got object key {key!r}; run `npx cdk "
                "synth` again, or select an endpoint whose models "
                "are assets of this assembly with --endpoint"
            )
        return path


def _is_triton(component: DeclaredComponent) -> bool:
    is_adapter = "BaseInferenceComponentName" in component.specification
    return not is_adapter and all(container.is_triton for container in component.containers)


def _key_of(url: str) -> str:
    """Return the object key of an ``s3://`` or virtual-hosted-style ``https://`` URL."""
    return url.partition("://")[2].partition("/")[2]
