"""Asserts what an endpoint of a stack serves, and on which instances."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from constructs_triton.testing.argument_types import (
    check_by_name,
    check_name,
    check_names,
    check_numbers_by_name,
)
from constructs_triton.testing.differences import differing_names, differing_values, listed
from constructs_triton.testing.synthesized_stack import Source, synthesized_source
from constructs_triton_core.cloud_assembly.endpoints import (
    DeclaredContainer,
    DeclaredEndpoint,
    declared_endpoints,
)
from constructs_triton_core.cloud_assembly.intrinsics import number_of
from constructs_triton_core.cloud_assembly.synthesized_stack import SynthesizedStack
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_functions.model_sync import RESOURCE_TYPE
from constructs_triton_functions.model_sync.manifest import Manifest

_DEFAULT_MODEL = "SAGEMAKER_TRITON_DEFAULT_MODEL_NAME"
# The CDK appends 8 digits to the path of a construct.
_LOGICAL_ID = re.compile(r"(.*?)([0-9A-F]{8})?")


def assert_endpoint(
    stack: Source,
    *,
    name: str | None = None,
    image_version: str | None = None,
    instance_types: str | Collection[str] | None = None,
    environment: Mapping[str, object] | None = None,
    variants: str | Collection[str] | None = None,
    initial_variant_weights: Mapping[str, float] | None = None,
    initial_instance_counts: Mapping[str, int] | None = None,
    models: str | Collection[str] | None = None,
) -> None:
    """Check that one endpoint of a stack is as described. What is not given is not compared.

    Args:
        stack: a stack or an app, which is synthesized with its nested stacks, a construct of a
            stack, which stands for the stack, a ``Template`` of ``aws_cdk.assertions``, or the path
            of a template or a folder that ``cdk synth`` wrote.
        name: the endpoint's name, logical ID or path of its construct (default: any endpoint of the
            stack).
        image_version: the Triton version in the image's tag, such as ``"26.05"``.
        instance_types: the instance type of all production variants, or all of them.
        environment: variables that every container has; ``None`` is a variable that must not be
            set.
        variants: the names of all production variants, or the only one.
        initial_variant_weights: the share of the requests of production variants, by their names.
        initial_instance_counts: the number of instances of production variants before they scale,
            by their names.
        models: the models (or one name) that a request can reach: the default model of a
            single-model endpoint, or all models of a multi-model endpoint or of inference
            components.

    Raises:
        AssertionError: no endpoint is as described. The message lists the differences of the
            nearest one.
        InvalidValueError: the stack is in no app, the template cannot be read, an argument has the
            wrong type, or a ``Template`` does not have what is compared.
    """
    __tracebackhide__ = True  # pytest shows the line of the test
    check_name("name", name, "digits")
    expected = _expected(
        image_version=image_version,
        instance_types=instance_types,
        environment=environment,
        variants=variants,
        weights=initial_variant_weights,
        counts=initial_instance_counts,
        models=models,
    )
    source = synthesized_source(stack)
    endpoints = _endpoints_called(name, source.name, source.all_stacks())
    nearest, differences = expected.nearest(endpoints)
    if differences:
        lines = "\n".join(f"  {difference}" for difference in differences)
        raise AssertionError(f'{source.name}: endpoint "{nearest.name}" differs\n{lines}')


def _expected(
    *,
    image_version: str | None,
    instance_types: str | Collection[str] | None,
    environment: Mapping[str, object] | None,
    variants: str | Collection[str] | None,
    weights: Mapping[str, float] | None,
    counts: Mapping[str, int] | None,
    models: str | Collection[str] | None,
) -> _Expected:
    """Check the types of what a test expects, and return it."""
    _check_version(image_version)
    _check_variants(variants)
    check_names("instance_types", instance_types, "ml.g5.xlarge")
    check_names("variants", variants, "AllTraffic")
    check_names("models", models, "digits")
    check_by_name("environment", environment, "SAGEMAKER_TRITON_LOG_VERBOSE", "true")
    check_numbers_by_name("initial_variant_weights", weights, "AllTraffic")
    check_numbers_by_name("initial_instance_counts", counts, "AllTraffic")
    return _Expected(
        image_version=image_version,
        instance_types=_names(instance_types),
        environment=environment,
        variants=_names(variants),
        weights=weights or {},
        counts=counts or {},
        models=_names(models),
    )


@dataclass(frozen=True)
class _Endpoint:
    """An endpoint, and all stacks of the source, which can have its models."""

    declared: DeclaredEndpoint
    stacks: Sequence[SynthesizedStack]

    @property
    def name(self) -> str:
        return self.declared.name


def _endpoints_called(
    name: str | None, source: str, stacks: Sequence[SynthesizedStack]
) -> list[_Endpoint]:
    """Return the endpoints of a name; all endpoints if no name is given.

    Raises:
        AssertionError: the stacks have none.
    """
    __tracebackhide__ = True
    endpoints: list[_Endpoint] = []
    for stack in stacks:
        for declared in declared_endpoints(stack, is_complete=False):
            endpoints.append(_Endpoint(declared, stacks))
    if not endpoints:
        raise AssertionError(
            f"{source}: has no endpoint; pass a stack with an endpoint, its app, or the path of a "
            "template that `npx cdk synth` wrote"
        )
    if name is None:
        return endpoints

    chosen = [endpoint for endpoint in endpoints if _is_called(name, endpoint.declared)]
    if not chosen:
        known = listed([endpoint.name for endpoint in endpoints])
        raise AssertionError(f'{source}: has no endpoint "{name}"; its endpoints are: {known}')
    return chosen


def _check_version(version: object) -> None:
    """Refuse a number: as one, version 25.10 is 25.1."""
    if version is not None and not isinstance(version, str):
        raise InvalidValueError(
            f'image_version: must be a string, got {version}; write it as "YY.MM"'
        )


def _check_variants(variants: object) -> None:
    """Refuse a mapping: its numbers can be meant as weights or as counts."""
    if isinstance(variants, Mapping):
        raise InvalidValueError(
            f"variants: must be names, got {dict(variants)}; set initial_instance_counts for "
            "numbers of instances, or initial_variant_weights for shares of the requests"
        )


def _names(given: str | Collection[str] | None) -> Collection[str] | None:
    """Return a single name as a collection of one."""
    return {given} if isinstance(given, str) else given


@dataclass(frozen=True)
class _Expected:
    """What a test expects of an endpoint. ``None``, or an empty mapping, is not compared."""

    image_version: str | None
    instance_types: Collection[str] | None
    environment: Mapping[str, object] | None
    variants: Collection[str] | None
    weights: Mapping[str, float]
    counts: Mapping[str, int]
    models: Collection[str] | None

    def nearest(self, endpoints: Collection[_Endpoint]) -> tuple[_Endpoint, list[str]]:
        """Return the endpoint with the fewest differences, and these."""
        compared = [(endpoint, list(self.differences(endpoint))) for endpoint in endpoints]
        return min(compared, key=lambda found: len(found[1]))

    def differences(self, endpoint: _Endpoint) -> Iterator[str]:
        """Yield a sentence for each difference of an endpoint."""
        yield from self._different_image(endpoint.declared)
        if self.instance_types is not None:
            found = _instance_types(endpoint.declared)
            yield from differing_names("instance_types", set(self.instance_types), found)
        yield from self._different_variants(endpoint.declared)
        yield from self._different_environment(endpoint.declared)
        if self.models is not None:
            yield from differing_names("models", self.models, _models(endpoint))

    def _different_image(self, endpoint: DeclaredEndpoint) -> Iterator[str]:
        if self.image_version is None:
            return
        versions = {_image_version(container) for container in endpoint.containers}
        others = versions - {self.image_version}
        if others or not endpoint.containers:
            yield f'image_version: expected "{self.image_version}", got {listed(others)}'

    def _different_variants(self, endpoint: DeclaredEndpoint) -> Iterator[str]:
        weights = {variant.name: variant.weight for variant in endpoint.variants}
        counts = {
            str(variant["VariantName"]): number_of(variant.get("InitialInstanceCount"))
            for variant in endpoint.config.get("ProductionVariants", [])
        }
        if self.variants is not None:
            yield from differing_names("variants", self.variants, weights)
        yield from differing_values("initial_variant_weights", self.weights, weights)
        yield from differing_values("initial_instance_counts", self.counts, counts)

    def _different_environment(self, endpoint: DeclaredEndpoint) -> Iterator[str]:
        if self.environment is None:
            return
        sentences: list[str] = []
        for container in endpoint.containers:
            sentences += differing_values("environment", self.environment, container.environment)
        yield from dict.fromkeys(sentences)  # variants often differ in the same way


def _instance_types(endpoint: DeclaredEndpoint) -> set[str]:
    """Return the instance types of all production variants; a variant can have several."""
    types: set[str] = set()
    for variant in endpoint.variants:
        types.update(str(name) for name in variant.instance_types or ("serverless",))
    return types


def _models(endpoint: _Endpoint) -> frozenset[str] | None:
    """Return the models that a request can reach; ``None`` if the template does not say them."""
    found: frozenset[str] = frozenset()
    for container in endpoint.declared.containers:
        models = _models_of(container, endpoint.stacks)
        if models is None:
            return None
        found |= models
    return found


def _models_of(
    container: DeclaredContainer, stacks: Sequence[SynthesizedStack]
) -> frozenset[str] | None:
    """Return the models of a container: its default model, or all of a multi-model container."""
    if container.is_multi_model:
        return _synced_models(container.archive_url or "", stacks)
    model = container.environment.get(_DEFAULT_MODEL)
    return None if model is None else frozenset({model})


def _synced_models(archive_url: str, stacks: Sequence[SynthesizedStack]) -> frozenset[str] | None:
    """Return the models that a deployment copies below the prefix of a multi-model container."""
    from constructs_triton_tools.assembly.model_syncs import model_syncs

    for stack in stacks:
        for _, sync in model_syncs(stack, RESOURCE_TYPE, archive_url):
            if not stack.manifests:
                raise InvalidValueError(
                    "models: a Template does not know the models of a multi-model endpoint; pass "
                    "the stack in place of its Template"
                )
            manifest = stack.asset(sync.manifest_key)
            if manifest is not None and manifest.is_file():
                archives = Manifest.from_json(manifest.read_bytes()).archives
                return frozenset(archive.name for archive in archives)
    return None


def _is_called(name: str, endpoint: DeclaredEndpoint) -> bool:
    """Return whether ``name`` is its name, its logical ID,
    or the path of its construct in the stack.
    """
    if name in (endpoint.name, endpoint.logical_id):
        return True
    # A logical ID consists of the letters and digits of the path, and of the CDK's own digits.
    logical_id = _LOGICAL_ID.fullmatch(endpoint.logical_id)
    return logical_id is not None and re.sub(r"[^A-Za-z0-9]", "", name) == logical_id[1]


def _image_version(container: DeclaredContainer) -> str:
    """Return the tag of the image without its suffix:
    ``26.05`` of ``sagemaker-tritonserver:26.05-py3``.
    """
    return container.image.rpartition(":")[2].partition("-")[0]
