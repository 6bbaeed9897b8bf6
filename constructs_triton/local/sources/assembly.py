"""Reads the endpoints of a cloud assembly (``cdk.out``), plain JSON that needs neither the CDK nor Node.

Source of the layout: the cloud assembly schema of aws-cdk (manifest.json, ``*.assets.json``).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from constructs_triton.custom_resource_handlers.model_sync import RESOURCE_TYPE
from constructs_triton.custom_resource_handlers.model_sync.manifest import Manifest
from constructs_triton.custom_resource_handlers.model_sync.properties import SyncProperties
from constructs_triton.errors import LocalEndpointError
from constructs_triton.local.sources.components import hosts_components, read_components
from constructs_triton.local.sources.intrinsics import LOCAL_ACCOUNT, LOCAL_REGION, Template
from constructs_triton.local.sources.specs import AsyncInferenceSpec, ContainerSpec, EndpointSpec, VariantSpec
from constructs_triton.local.sources.uncompressed import read_files, uncompressed_url

__all__ = ["read_endpoints"]

_ASSET_MANIFEST, _NESTED_ASSEMBLY, _STACK = (
    "cdk:asset-manifest",
    "cdk:cloud-assembly",
    "aws:cloudformation:stack",
)


def read_endpoints(
    directory: Path, *, stack: str | None = None, endpoint: str | None = None
) -> tuple[EndpointSpec, ...]:
    """Read the endpoints of a cloud assembly, including nested stacks and stages.

    ``stack`` and ``endpoint`` select by name (default: all).

    Raises:
        LocalEndpointError: there is no assembly or no such endpoint, or an archive is missing.
    """
    stacks = list(_stacks(Path(directory)))
    chosen = _keep_named(stacks, stack, directory)
    specs = [spec for each in chosen for spec in _StackReader(each).endpoints(endpoint)]
    if not specs:
        raise LocalEndpointError(_no_endpoint(directory, chosen, endpoint))
    _refuse_duplicates(specs)
    return tuple(specs)


def _no_endpoint(directory: Path, stacks: Sequence[_Stack], endpoint: str | None) -> str:
    names = ", ".join(stack.template.name for stack in stacks) or "none"
    if endpoint is None:
        return (
            f"{directory}: no stack contains an AWS::SageMaker::Endpoint, got stacks {names}; "
            "add an endpoint to the app and run `npx cdk synth`"
        )
    known = ", ".join(name for stack in stacks for name in _StackReader(stack).names()) or "none"
    return f"{directory}: no such endpoint, got {endpoint!r}; set --endpoint to one of {known}"


@dataclass(frozen=True, slots=True)
class _Stack:
    """A template, its names, and the files of its assets."""

    template: Template
    names: frozenset[str]
    assets: Mapping[str, Path]


def _keep_named(stacks: Sequence[_Stack], name: str | None, directory: Path) -> list[_Stack]:
    kept = [stack for stack in stacks if name is None or name in stack.names]
    if name is not None and not kept:
        known = ", ".join(sorted(stack.template.name for stack in stacks)) or "none"
        raise LocalEndpointError(f"{directory}: no such stack, got {name!r}; set --stack to one of {known}")
    return kept


def _refuse_duplicates(specs: Sequence[EndpointSpec]) -> None:
    names = [spec.name for spec in specs]
    for spec in specs:
        if names.count(spec.name) > 1:
            raise LocalEndpointError(
                f"{spec.stack}: two endpoints are called {spec.name!r}; choose one with --stack"
            )


def _read_json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise LocalEndpointError(
            f"{path}: does not exist, so this is not a cloud assembly; run `npx cdk synth`, or pass the path "
            "of a cloud assembly, a model repository or an archive"
        ) from None
    except (OSError, ValueError, RecursionError) as error:
        raise LocalEndpointError(
            f"{path}: cannot be read as JSON ({error}); run `npx cdk synth` again"
        ) from error
    if not isinstance(found, dict):
        raise LocalEndpointError(
            f"{path}: must contain a JSON object, got {type(found).__name__}; run `npx cdk synth` again"
        )
    return found


def _stacks(directory: Path) -> Iterator[_Stack]:
    artifacts = _read_json(directory / "manifest.json").get("artifacts", {})
    assets = {
        key: value
        for artifact in artifacts.values()
        if artifact["type"] == _ASSET_MANIFEST
        for key, value in _read_assets(directory, artifact["properties"]["file"]).items()
    }
    for artifact_id, artifact in artifacts.items():
        if artifact["type"] == _STACK:
            yield from _stack_of(directory, artifact_id, artifact, assets)
        elif artifact["type"] == _NESTED_ASSEMBLY:
            yield from _stacks(directory / artifact["properties"]["directoryName"])


def _read_assets(directory: Path, file: str) -> dict[str, Path]:
    """Return the path of each file asset, by its key in the asset bucket."""
    return {
        destination["objectKey"]: directory / asset["source"]["path"]
        for asset in _read_json(directory / file).get("files", {}).values()
        if "path" in asset.get("source", {})
        for destination in asset.get("destinations", {}).values()
    }


def _stack_of(
    directory: Path, artifact_id: str, artifact: Mapping[str, Any], assets: Mapping[str, Path]
) -> Iterator[_Stack]:
    properties = artifact["properties"]
    account, region = _environment(artifact.get("environment", ""))
    name = properties.get("stackName", artifact_id)
    body = _read_json(directory / properties["templateFile"])
    names = frozenset({name, artifact_id, artifact.get("displayName", name)})
    root = _Stack(Template(name, body, region, account), names, assets)
    yield root
    yield from _nested_stacks(directory, root)


def _environment(text: str) -> tuple[str, str]:
    """Split ``aws://account/region``; an environment-agnostic stack gets the local defaults."""
    account, _, region = text.removeprefix("aws://").partition("/")
    return (
        LOCAL_ACCOUNT if account in ("", "unknown-account") else account,
        LOCAL_REGION if region in ("", "unknown-region") else region,
    )


def _nested_stacks(directory: Path, parent: _Stack) -> Iterator[_Stack]:
    for logical_id, resource in parent.template.resources_of_type("AWS::CloudFormation::Stack").items():
        file = resource.get("Metadata", {}).get("aws:asset:path")
        if file is None:
            continue
        template = replace(
            parent.template,
            name=f"{parent.template.name}/{logical_id}",
            body=_read_json(directory / file),
            parameters=parent.template.properties(logical_id).get("Parameters", {}),
        )
        nested = replace(parent, template=template, names=parent.names | {template.name})
        yield nested
        yield from _nested_stacks(directory, nested)


class _StackReader:
    """Follows Endpoint to EndpointConfig to Model to archive inside one template."""

    def __init__(self, stack: _Stack) -> None:
        self._template = stack.template
        self._assets = stack.assets

    def names(self) -> Iterator[str]:
        for logical_id in self._template.resources_of_type("AWS::SageMaker::Endpoint"):
            yield self._template.properties(logical_id).get("EndpointName", logical_id)

    def endpoints(self, wanted: str | None) -> Iterator[EndpointSpec]:
        """Yield the endpoints with the name ``wanted``, or all. Others need not be able to run locally."""
        for logical_id in self._template.resources_of_type("AWS::SageMaker::Endpoint"):
            properties = self._template.properties(logical_id)
            if wanted not in (None, properties.get("EndpointName", logical_id)):
                continue
            config = self._resource(
                "AWS::SageMaker::EndpointConfig", properties["EndpointConfigName"], logical_id
            )
            yield self._endpoint(properties.get("EndpointName", logical_id), config)

    def _endpoint(self, name: str, config: Mapping[str, Any]) -> EndpointSpec:
        variants = config.get("ProductionVariants", [])
        spec = EndpointSpec(
            name=name,
            stack=self._template.name,
            variants=(),
            shadow_variants=self._variants(config.get("ShadowProductionVariants", [])),
            region=self._template.region,
            account=self._template.account,
            asynchronous=_asynchronous(config.get("AsyncInferenceConfig")),
        )
        if not hosts_components(variants):
            return replace(spec, variants=self._variants(variants))
        components = read_components(self._template, name, variants, self._container_of_component)
        if _text(config.get("EnableNetworkIsolation", False)) == "true":
            components = tuple(
                replace(each, container=replace(each.container, is_isolated=True)) for each in components
            )
        return replace(spec, components=components)

    def _resource(self, type: str, name: str, wanted_by: str) -> dict[str, Any]:
        for logical_id in self._template.resources_of_type(type):
            if self._template.evaluate({"Ref": logical_id}) == name:
                return self._template.properties(logical_id)
        raise LocalEndpointError(
            f"{self._template.name}/{wanted_by}: no {type} of this stack has the name {name!r}; "
            "define the endpoint, its configuration and its models in the same stack"
        )

    def _variants(self, variants: Sequence[Mapping[str, Any]]) -> tuple[VariantSpec, ...]:
        return tuple(
            VariantSpec(
                name=variant["VariantName"],
                container=self._container(variant),
                weight=float(variant.get("InitialVariantWeight", 1.0)),
                instance_type=variant.get("InstanceType"),
                startup_timeout_seconds=variant.get("ContainerStartupHealthCheckTimeoutInSeconds"),
            )
            for variant in variants
        )

    def _container(self, variant: Mapping[str, Any]) -> ContainerSpec:
        if "ModelName" not in variant:
            raise LocalEndpointError(
                f"{self._template.name}: variant {variant['VariantName']} has no ModelName beside variants "
                "that have one; give every variant a model, or none"
            )
        return self._container_of_model(variant["ModelName"], variant["VariantName"])

    def _container_of_component(self, specification: Mapping[str, Any], logical_id: str) -> ContainerSpec:
        if "ModelName" in specification:
            spec = self._container_of_model(specification["ModelName"], logical_id)
        else:
            container = dict(specification.get("Container", {}))
            spec = self._container_spec(
                logical_id, {**container, "ModelDataUrl": container.get("ArtifactUrl")}
            )
        if spec.is_multi_model:
            raise LocalEndpointError(
                f"{self._template.name}/{logical_id}: an inference component cannot run a multi-model "
                "container; remove Mode from its model"
            )
        return spec

    def _container_of_model(self, name: str, wanted_by: str) -> ContainerSpec:
        model = self._resource("AWS::SageMaker::Model", name, wanted_by)
        containers = (
            [model["PrimaryContainer"]] if "PrimaryContainer" in model else model.get("Containers", [])
        )
        if len(containers) != 1:
            raise LocalEndpointError(
                f"{self._template.name}/{name}: must have one container, "
                f"got {len(containers)}; serial inference pipelines do not run locally, so select other "
                "endpoints with --endpoint"
            )
        spec = self._container_spec(name, containers[0])
        return replace(spec, is_isolated=_text(model.get("EnableNetworkIsolation", False)) == "true")

    def _container_spec(self, model: str, container: Mapping[str, Any]) -> ContainerSpec:
        files_url = uncompressed_url(container)
        url = files_url or self._model_data_url(model, container)
        spec = ContainerSpec(
            model=model,
            image=container.get("Image", ""),
            model_data_url=url,
            environment={key: _text(value) for key, value in container.get("Environment", {}).items()},
            model_cache_setting=container.get("MultiModelConfig", {}).get("ModelCacheSetting", "Enabled"),
        )
        if container.get("Mode") == "MultiModel":
            return replace(spec, archives=self._archives_below(url))
        if files_url is not None:
            return replace(spec, files=read_files(self._template, model, files_url, self._asset))
        return replace(spec, archive=self._asset(_key_of(url), model))

    def _model_data_url(self, model: str, container: Mapping[str, Any]) -> str:
        source = container.get("ModelDataSource", {}).get("S3DataSource", {})
        url = container.get("ModelDataUrl") or (
            source.get("S3Uri") if source.get("CompressionType") == "Gzip" else None
        )
        if not url:
            raise LocalEndpointError(
                f"{self._template.name}/{model}: has no model data; "
                "set ModelDataUrl, or ModelDataSource with an S3Prefix and CompressionType None"
            )
        return str(url)

    def _archives_below(self, url: str) -> dict[str, Path]:
        """Return the archives that the deployment would copy below the prefix, by target model."""
        found: dict[str, Path] = {}
        for logical_id in self._template.resources_of_type(RESOURCE_TYPE):
            sync = SyncProperties.from_cloudformation(self._template.properties(logical_id))
            if sync.model_data_url == url:
                manifest = Manifest.from_json(self._asset(sync.manifest_key, logical_id).read_bytes())
                for archive in manifest.archives:
                    found[archive.target_model] = self._asset(archive.source_key, archive.target_model)
        return found

    def _asset(self, key: str, wanted_by: str) -> Path:
        path = self._assets.get(key)
        if path is None or not path.is_file():
            where = "the assembly has no such asset" if path is None else f"{path} does not exist"
            raise LocalEndpointError(
                f"{self._template.name}/{wanted_by}: {where}, got object key {key!r}; run `npx cdk synth` "
                "again, or select an endpoint whose models are assets of this assembly with --endpoint"
            )
        return path


def _key_of(url: str) -> str:
    """Return the object key of an ``s3://`` or virtual-hosted-style ``https://`` URL."""
    return url.partition("://")[2].partition("/")[2]


def _asynchronous(config: Mapping[str, Any] | None) -> AsyncInferenceSpec | None:
    if config is None:
        return None
    output = config.get("OutputConfig", {})
    at_once = config.get("ClientConfig", {}).get("MaxConcurrentInvocationsPerInstance")
    spec = AsyncInferenceSpec(output.get("S3OutputPath", ""), output.get("S3FailurePath"))
    return replace(spec, max_concurrent_invocations=int(at_once)) if at_once else spec


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
