"""What the endpoints of a stack serve, as a graph: callers, endpoints, variants, models,
S3 and scaling.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from constructs_triton_core.cloud_assembly.endpoints import (
    DeclaredContainer,
    DeclaredEndpoint,
    DeclaredVariant,
    declared_endpoints,
    scalable_targets,
)
from constructs_triton_core.cloud_assembly.intrinsics import text_of
from constructs_triton_core.cloud_assembly.placeholders import PLACEHOLDER_ACCOUNT
from constructs_triton_core.cloud_assembly.scaling import DeclaredPolicy, scaling_policies
from constructs_triton_core.cloud_assembly.synthesized_stack import SynthesizedStack
from constructs_triton_core.untrusted.regular_files import read_regular
from constructs_triton_functions.model_sync import RESOURCE_TYPE
from constructs_triton_functions.model_sync.manifest import Manifest
from constructs_triton_tools.assembly.invokers import invokers_of
from constructs_triton_tools.assembly.model_syncs import model_syncs
from constructs_triton_tools.assembly.utilization import share_of_instance

Kind = Literal["caller", "endpoint", "variant", "component", "model", "storage", "scaling"]
_DEFAULT_MODEL = "SAGEMAKER_TRITON_DEFAULT_MODEL_NAME"
_MOST_NAMES = 6


@dataclass(frozen=True, slots=True)
class Node:
    """A node; ``lines`` is its text, and ``key`` is unique in the graph."""

    key: str
    kind: Kind
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Edge:
    """An arrow from one node to another, with its text."""

    start: str
    end: str
    text: str = ""


@dataclass(frozen=True)
class ServiceGraph:
    """The graph of one stack."""

    stack: str
    nodes: Sequence[Node]
    edges: Sequence[Edge]

    @classmethod
    def of(cls, stack: SynthesizedStack) -> ServiceGraph:
        """Read the graph of a stack; it has no nodes if the stack has no endpoint."""
        parts = list(_Reader(stack).parts())
        nodes = {part.key: part for part in parts if isinstance(part, Node)}
        edges = dict.fromkeys(part for part in parts if isinstance(part, Edge))
        return cls(stack.name, list(nodes.values()), list(edges))


class _Reader:
    """Yields the nodes and edges of a stack. A node that several need is yielded several times."""

    def __init__(self, stack: SynthesizedStack) -> None:
        self._stack = stack
        self._scaled = {target.resource_id: target.properties for target in scalable_targets(stack)}
        self._policies: dict[str, list[DeclaredPolicy]] = {}
        for policy in scaling_policies(stack):
            self._policies.setdefault(policy.target.resource_id, []).append(policy)

    def parts(self) -> Iterator[Node | Edge]:
        for endpoint in declared_endpoints(self._stack, is_complete=False):
            yield from self._endpoint(endpoint)

    def _endpoint(self, endpoint: DeclaredEndpoint) -> Iterator[Node | Edge]:
        key = endpoint.logical_id
        mode = ("asynchronous",) if "AsyncInferenceConfig" in endpoint.config else ()
        yield Node(key, "endpoint", (f"endpoint {endpoint.name}", *mode))
        for name in invokers_of(self._stack, endpoint.name, endpoint.logical_id):
            yield Node(f"caller {name}", "caller", (name,))
            yield Edge(f"caller {name}", key, "may call")
        declared = {str(entry["VariantName"]): entry for entry in _variants(endpoint.config)}
        shares = _shares(endpoint.variants)
        for variant in endpoint.variants:
            yield from self._variant(endpoint, variant, declared, shares.get(variant.name, ""))
        for variant in endpoint.shadow_variants:
            yield from self._variant(endpoint, variant, declared, "copy of the traffic")
        yield from self._components(endpoint)

    def _variant(
        self,
        endpoint: DeclaredEndpoint,
        variant: DeclaredVariant,
        declared: Mapping[str, Any],
        share: str,
    ) -> Iterator[Node | Edge]:
        key = f"{endpoint.logical_id} {variant.name}"
        count = _instances(declared.get(variant.name, {}))
        types = " or ".join(map(text_of, variant.instance_types)) or "serverless"
        yield Node(key, "variant", (variant.name, f"{count}{types}"))
        yield Edge(endpoint.logical_id, key, share)
        resource_id = f"endpoint/{endpoint.name}/variant/{variant.name}"
        yield from self._scaling(key, resource_id, "instances", variant.instance_types)
        for container in variant.containers:
            yield from self._container(key, container)

    def _components(self, endpoint: DeclaredEndpoint) -> Iterator[Node | Edge]:
        for component in endpoint.components:
            key = component.logical_id
            needs = component.specification.get("ComputeResourceRequirements") or {}
            gpus = needs.get("NumberOfAcceleratorDevicesRequired")
            is_adapter = "BaseInferenceComponentName" in component.specification
            name = f"{'adapter' if is_adapter else 'component'} {component.name}"
            yield Node(key, "component", (name, *([f"GPUs: {text_of(gpus)}"] if gpus else [])))
            yield Edge(f"{endpoint.logical_id} {component.variant_name}", key)
            yield from self._scaling(key, f"inference-component/{component.name}", "copies")
            for container in component.containers:
                # The containers of its base load an adapter.
                yield from (
                    self._storage(key, container) if is_adapter else self._container(key, container)
                )

    def _scaling(
        self, scaled: str, resource_id: str, unit: str, instance_types: Sequence[str] = ()
    ) -> Iterator[Node | Edge]:
        bounds = self._scaled.get(resource_id)
        if bounds is None:
            return
        policies = self._policies.get(resource_id, [])
        least = text_of(bounds.get("MinCapacity"))
        most = text_of(bounds.get("MaxCapacity"))
        lines = (
            f"{least} to {most} {unit}",
            *(_target(policy, instance_types) for policy in policies),
        )
        yield Node(f"scaling {scaled}", "scaling", lines)
        yield Edge(f"scaling {scaled}", scaled, "scales")

    def _container(self, user: str, container: DeclaredContainer) -> Iterator[Node | Edge]:
        key = f"model {container.model}"
        url = container.archive_url or container.files_url
        image = container.image.rpartition("/")[2] or "model package"
        yield Node(key, "model", (*self._models(container, url), image))
        yield Edge(user, key, "on demand" if container.is_multi_model else "")
        yield from self._storage(key, container)

    def _storage(self, user: str, container: DeclaredContainer) -> Iterator[Node | Edge]:
        url = container.archive_url or container.files_url
        if url:
            yield Node(
                f"storage {url}", "storage", (_shortened(self._without_placeholder(text_of(url))),)
            )
            yield Edge(user, f"storage {url}", "reads")

    def _models(self, container: DeclaredContainer, url: Any) -> tuple[str, ...]:
        if not container.is_multi_model:
            return (container.environment.get(_DEFAULT_MODEL, "model"),)
        names = self._archives(url) if isinstance(url, str) else []
        if not names:
            return ("all archives below the prefix",)
        more = [f"and {len(names) - _MOST_NAMES} more"] if len(names) > _MOST_NAMES else []
        return (f"{len(names)} models", *names[:_MOST_NAMES], *more)

    def _without_placeholder(self, url: str) -> str:
        is_known = self._stack.account != PLACEHOLDER_ACCOUNT
        return url if is_known else url.replace(PLACEHOLDER_ACCOUNT, "ACCOUNT")

    def _archives(self, url: str) -> list[str]:
        found: list[str] = []
        for _, sync in model_syncs(self._stack, RESOURCE_TYPE, url):
            path = self._stack.asset(sync.manifest_key)
            try:
                found += (
                    [] if path is None else Manifest.from_json(read_regular(path)).target_models
                )
            except (OSError, ValueError):
                continue  # the assembly lacks the file; the template alone can be drawn too
        return found


def _variants(config: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [*config.get("ProductionVariants", ()), *config.get("ShadowProductionVariants", ())]


def _instances(variant: Mapping[str, Any]) -> str:
    count = variant.get("InitialInstanceCount")
    return "" if count is None else f"{text_of(count)} x "


def _shares(variants: Sequence[DeclaredVariant]) -> dict[str, str]:
    """Return the share of the requests of each variant; nothing for the only one."""
    weights = [variant.weight for variant in variants if isinstance(variant.weight, int | float)]
    total = sum(weights)
    if len(variants) < 2 or len(weights) < len(variants) or not total:
        return {}
    return {variant.name: f"{variant.weight / total:.0%}" for variant in variants}


def _target(policy: DeclaredPolicy, instance_types: Sequence[str]) -> str:
    tracking = policy.tracking
    if tracking is None:
        return "steps" if policy.properties.get("PolicyType") == "StepScaling" else "policy"
    metric = tracking.get("PredefinedMetricSpecification") or tracking.get(
        "CustomizedMetricSpecification"
    )
    found = metric or {}
    name = found.get("PredefinedMetricType") or found.get("MetricName") or "metric math"
    target = tracking.get("TargetValue")
    return (
        f"{text_of(name)} at {text_of(target)}"
        f"{share_of_instance(text_of(name), target, instance_types)}"
    )


def _shortened(url: str) -> str:
    """Return a URL whose digest of an archive is cut to 8 characters."""
    place, _, name = url.rpartition("/")
    stem, dot, suffix = name.partition(".")
    return f"{place}/{stem[:8]}…{dot}{suffix}" if len(stem) == 64 else url
