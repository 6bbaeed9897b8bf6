"""Reads deployed endpoints: their definitions from SageMaker, their archives from S3, as archives
or files.

Calls ListEndpoints, ListStackResources for a stack, DescribeEndpoint, DescribeEndpointConfig,
DescribeModel, ListInferenceComponents and DescribeInferenceComponent, and downloads the archives.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from constructs_triton_core.aws_reader import AwsError, AwsReader, make_session, reaching_aws
from constructs_triton_core.cloud_assembly.endpoints import (
    DeclaredContainer,
    hosts_components,
    instance_types_of,
)
from constructs_triton_core.errors import LocalEndpointError
from constructs_triton_tools.aws.stack_resources import stack_resources
from constructs_triton_tools.local.sources.specs import (
    AsyncInferenceSpec,
    ComponentSpec,
    ContainerSpec,
    EndpointSpec,
    FileContent,
    VariantSpec,
    check_names,
)
from constructs_triton_tools.operations.stack_endpoints import endpoints_among


def read_deployed_endpoints(
    endpoint_url: str, directory: Path, *, endpoint: str | None = None, stack: str | None = None
) -> tuple[EndpointSpec, ...]:
    """Read the endpoints of the account behind ``endpoint_url``; download archives into
    ``directory``.

    ``endpoint`` and ``stack`` choose one endpoint, and those of one CloudFormation stack.

    The models of a single-model container are downloaded immediately. Those of a multi-model
    container are downloaded on their first call, so that archives added later can be called too.
    """
    try:
        specs = tuple(_Account(endpoint_url, directory).endpoints(endpoint, stack))
    except AwsError as error:
        raise LocalEndpointError(
            f"--aws-endpoint-url: {error.reason}; check {'--stack, ' if stack else ''}the address "
            f"{endpoint_url}, the credentials and the Region"
        ) from error
    if not specs:
        wanted = "no endpoint is deployed"
        if endpoint is not None:
            wanted = f"no endpoint has the name {endpoint!r}"
        place = f" in the stack {stack!r}" if stack else ""
        raise LocalEndpointError(
            f"--aws-endpoint-url: {wanted}{place} at "
            f"{endpoint_url}; deploy it, or change --endpoint or --stack"
        )
    return specs


class _Account:
    """The APIs of one account, and the folder for its archives."""

    def __init__(self, endpoint_url: str, directory: Path) -> None:
        self._reader = AwsReader(make_session(), endpoint_url)
        self._objects = _Objects(self._reader, directory)

    def endpoints(self, wanted: str | None, stack: str | None) -> Iterator[EndpointSpec]:
        listed = self._reader.members("sagemaker", "list_endpoints", "Endpoints")
        names = [endpoint["EndpointName"] for endpoint in listed]
        if stack is not None:
            # The identifier of an endpoint is its ARN, which has the name in lower case.
            found = endpoints_among(stack_resources(self._reader.members, stack))
            own = {name.lower() for name in found}
            names = [name for name in names if name.lower() in own]
        yield from (self._endpoint(name) for name in names if wanted in (None, name))

    def _describe(self, kind: str, **request: str) -> dict[str, Any]:
        return self._reader.require("sagemaker", f"describe_{kind}", **request)

    def _endpoint(self, name: str) -> EndpointSpec:
        endpoint = self._describe("endpoint", EndpointName=name)
        config_name = endpoint["EndpointConfigName"]
        config = self._describe("endpoint_config", EndpointConfigName=config_name)
        # The weights may have changed since the endpoint was created.
        weights = {
            variant["VariantName"]: variant["DesiredWeight"]
            for variant in endpoint.get("ProductionVariants", [])
            if "DesiredWeight" in variant
        }
        _, _, _, region, account, _ = endpoint["EndpointArn"].split(":", 5)
        variants = config["ProductionVariants"]
        is_shared = hosts_components(variants)
        components = dict(self._components(name, variants)) if is_shared else {}
        return EndpointSpec(
            name=name,
            stack=config_name,
            variants=() if is_shared else self._variants(name, variants, weights),
            components=tuple(
                component for component in components.values() if component is not None
            ),
            not_run=tuple(each for each, spec in components.items() if spec is None),
            shadow_variants=self._variants(
                name, config.get("ShadowProductionVariants", []), weights
            ),
            region=region,
            account=account,
            asynchronous=AsyncInferenceSpec.of(config),
        )

    def _variants(
        self, endpoint: str, variants: Sequence[Mapping[str, Any]], weights: Mapping[str, float]
    ) -> tuple[VariantSpec, ...]:
        return tuple(
            VariantSpec(
                name=variant["VariantName"],
                container=self._container(endpoint, variant),
                weight=float(
                    weights.get(variant["VariantName"], variant.get("InitialVariantWeight", 1.0))
                ),
                instance_types=instance_types_of(variant),
                startup_timeout_seconds=variant.get("ContainerStartupHealthCheckTimeoutInSeconds"),
            )
            for variant in variants
        )

    def _components(
        self, endpoint: str, variants: Sequence[Mapping[str, Any]]
    ) -> Iterator[tuple[str, ComponentSpec | None]]:
        """Yield the components by name; ``None`` for adapters, and where the container is not
        Triton.
        """
        types = {variant["VariantName"]: instance_types_of(variant) for variant in variants}
        listed = "list_inference_components", "InferenceComponents"
        for summary in self._reader.members("sagemaker", *listed, EndpointNameEquals=endpoint):
            name = summary["InferenceComponentName"]
            yield name, self._component(endpoint, name, types)

    def _component(
        self, endpoint: str, name: str, types: Mapping[str, Sequence[str]]
    ) -> ComponentSpec | None:
        found = self._describe("inference_component", InferenceComponentName=name)
        specification = found.get("Specification") or found.get("Specifications", [{}])[0]
        # An adapter has no model of its own: it changes the answers of its base component.
        is_adapter = "BaseInferenceComponentName" in specification
        if is_adapter or not self._is_triton(specification.get("ModelName")):
            return None
        startup = specification.get("StartupParameters", {})
        variant_name = found.get("VariantName") or next(iter(types))
        return ComponentSpec(
            name=name,
            container=self._container(endpoint, {**specification, "VariantName": name}),
            instance_types=types.get(variant_name, ()),
            startup_timeout_seconds=startup.get("ContainerStartupHealthCheckTimeoutInSeconds"),
            variant_name=variant_name,
            starts_at_zero=found.get("RuntimeConfig", {}).get("CurrentCopyCount") == 0,
        )

    def _is_triton(self, model_name: str | None) -> bool:
        if model_name is None:
            return True  # _container says what is wrong
        model = self._describe("model", ModelName=model_name)
        return DeclaredContainer.of(model_name, model.get("PrimaryContainer") or {}).is_triton

    def _container(self, endpoint: str, variant: Mapping[str, Any]) -> ContainerSpec:
        """Return the container of a variant's model, or of a component's."""
        place = f"{endpoint}/{variant['VariantName']}"
        if "ModelName" not in variant:
            raise LocalEndpointError(
                f"{place}: has no ModelName, so it does not run locally; change --endpoint"
            )
        model = self._describe("model", ModelName=variant["ModelName"])
        container = DeclaredContainer.of(variant["ModelName"], model.get("PrimaryContainer") or {})
        files_url = container.files_url
        url = files_url or container.archive_url
        if url is None:
            raise LocalEndpointError(
                f"{place}: model {variant['ModelName']!r} has no primary container with "
                "ModelDataUrl or an S3Prefix; "
                "other models do not run locally, so change --endpoint"
            )
        is_archive = not (container.is_multi_model or files_url)
        return ContainerSpec(
            model=container.model,
            image=container.image,
            model_data_url=url,
            environment=container.environment,
            archive=self._objects.fetch_required(url) if is_archive else None,
            files=None if files_url is None else self._objects.fetch_below(files_url),
            fetch_archive=self._objects.below(url) if container.is_multi_model else None,
            is_isolated=bool(model.get("EnableNetworkIsolation", False)),
        )


@dataclass(frozen=True, slots=True)
class _Objects:
    """Downloads objects of S3 to a folder."""

    reader: AwsReader
    directory: Path

    def fetch_required(self, url: str) -> Path:
        path = self.fetch(url)
        if path is None:
            raise LocalEndpointError(f"{url}: the object does not exist; deploy the endpoint again")
        return path

    def fetch(self, url: str) -> Path | None:
        """Download an object and return its file; ``None`` if there is no such object."""
        bucket, _, key = url.removeprefix("s3://").partition("/")
        if ".." in key.split("/"):
            raise LocalEndpointError(
                f"{url}: its key leads out of the folder of downloads; "
                "copy the object to a key without '..'"
            )
        path = self.directory / bucket / key.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(path.name + ".part")
        try:
            self._download(bucket, key, partial)
        except AwsError as error:
            if error.is_absent:
                return None
            raise
        return partial.replace(path)

    def _download(self, bucket: str, key: str, path: Path) -> None:
        with reaching_aws("s3"):
            self.reader.client("s3").download_file(bucket, key, str(path))

    def fetch_below(self, url: str) -> dict[str, FileContent]:
        """Download all objects below a prefix; return their files by the rest of their keys."""
        bucket, _, prefix = url.removeprefix("s3://").partition("/")
        objects = self.reader.members(
            "s3", "list_objects_v2", "Contents", Bucket=bucket, Prefix=prefix
        )
        names = [found["Key"][len(prefix) :] for found in objects]
        if not names:
            raise LocalEndpointError(f"{url}: there are no objects; deploy the endpoint again")
        check_names(url, dict.fromkeys(names))
        folder = Path(tempfile.mkdtemp(dir=self.directory))
        return {name: self._fetch_file(bucket, prefix, name, folder) for name in names}

    def _fetch_file(self, bucket: str, prefix: str, name: str, folder: Path) -> FileContent:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        self._download(bucket, prefix + name, path)
        return FileContent(path)

    def below(self, prefix: str) -> _Prefix:
        return _Prefix(self, prefix)


@dataclass(frozen=True, slots=True)
class _Prefix:
    """Downloads archives below a prefix, by ``TargetModel``."""

    objects: _Objects
    url: str

    def __call__(self, target_model: str) -> Path | None:
        try:
            return self.objects.fetch(self.url + target_model)
        except (AwsError, LocalEndpointError):
            return None  # the caller gets SageMaker's error: the model data could not be downloaded
