"""What callers of endpoints notice: how an endpoint is called, and the names that a call contains.

Sources: SageMaker API reference, InvokeEndpoint (TargetModel, TargetVariant, TargetContainerHostname,
InferenceComponentName); SageMaker Developer Guide, "Asynchronous inference": an endpoint with
AsyncInferenceConfig can only receive asynchronous invocations.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from botocore.exceptions import ClientError
from moto.sagemaker.models import sagemaker_backends

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.findings import Finding, Severity
from constructs_triton_core.model_index import INDEX_FILE, ModelIndex, is_archive, some_of

from ..account import SimulatedAccount
from .problems import problem

_GENERATED = re.compile(r"-[A-Z0-9]{12}$")


@dataclass(frozen=True)
class Interface:
    """How an endpoint is called: asynchronously or not, and what calls may name, with the kind of each."""

    is_asynchronous: bool
    names: frozenset[tuple[str, str]]

    def of(self, kind: str) -> set[str]:
        """The names of one kind."""
        return {name for each, name in self.names if each == kind}


Interfaces = Mapping[str, Interface]
"""The interface of each endpoint, by its name."""


@dataclass(frozen=True)
class CallerChange:
    """What callers notice, with its place; ``severity`` is set if calls fail."""

    place: str
    text: str
    severity: Severity | None = None


def interfaces(account: SimulatedAccount) -> Interfaces:
    """Return the interfaces of all endpoints as they are now."""
    backend = sagemaker_backends[account.api.account][account.api.region]
    found = {}
    for name, endpoint in backend.endpoints.items():
        config = backend.endpoint_configs.get(endpoint.endpoint_config_name)
        if config is not None:
            components = account.components.of_endpoint(name)
            names = {*_names(account, config), *(("inference component", each.name) for each in components)}
            found[name] = Interface(bool(config.async_inference_config), frozenset(names))
    return found


def _names(account: SimulatedAccount, config: Any) -> Iterator[tuple[str, str]]:
    for variant in config.production_variants:
        yield "variant", variant["VariantName"]
    models = sagemaker_backends[account.api.account][account.api.region]._models
    for model in filter(None, map(models.get, account.fleets.models_of(config.endpoint_config_name))):
        containers = model.containers or ()
        if model.kept_members.get("InferenceExecutionConfig", {}).get("Mode") == "Direct":
            yield from (("container", each["ContainerHostname"]) for each in containers)
        for each in (model.primary_container or {}, *containers):
            if each.get("Mode") == "MultiModel":
                yield from (("model", name) for name in _models(account, each["ModelDataUrl"]))


def _models(account: SimulatedAccount, url: str) -> list[str]:
    """The models of a multi-model container: the names in its index, or the keys of archives."""
    s3, (bucket, _, prefix) = account.api.client("s3"), url.removeprefix("s3://").partition("/")
    try:
        index = s3.get_object(Bucket=bucket, Key=prefix + INDEX_FILE)["Body"].read()
        return list(ModelIndex.from_json(index).target_models)
    except (ClientError, InvalidValueError):  # there is no index, or it is damaged
        pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
        keys = (each["Key"].removeprefix(prefix) for page in pages for each in page.get("Contents", ()))
        return [key for key in keys if is_archive(key)]


def caller_changes(before: Interfaces, after: Interfaces) -> Iterator[CallerChange]:
    """Yield what callers notice: first of endpoints, then of what their calls name."""
    for name in sorted(before.keys() - after.keys()):
        yield CallerChange(f"endpoint {name}", f"endpoint {name} no longer exists")
    for name in sorted(after.keys() - before.keys()):
        yield CallerChange(f"endpoint {name}", f"endpoint {name} is new")
    for name in sorted(before.keys() & after.keys()):
        yield from _changes(f"endpoint {name}", before[name], after[name])


def _changes(place: str, before: Interface, after: Interface) -> Iterator[CallerChange]:
    if before.is_asynchronous != after.is_asynchronous:
        fails, works = ("InvokeEndpoint", "InvokeEndpointAsync")[:: 1 if after.is_asynchronous else -1]
        yield CallerChange(place, f"{place}: {fails} fails, and callers must use {works}", Severity.ERROR)
    for kind in sorted({kind for kind, _ in before.names ^ after.names}):
        old, new = before.of(kind), after.of(kind)
        if gone := sorted(old - new):
            # A variant is named only beside others, and nothing but the stack knows a generated name.
            is_named = len(old) > (kind == "variant") and not all(map(_GENERATED.search, gone))
            text = f"{place} no longer has {kind} {some_of(gone)}"
            yield CallerChange(f"{place}, {kind}", text, Severity.WARNING if is_named else None)
        if added := sorted(new - old):
            yield CallerChange(place, f"{place} has the new {kind} {some_of(added)}")


def caller_problems(changes: Iterable[CallerChange]) -> Iterator[Finding]:
    """Yield a problem for each change that makes calls fail."""
    for each in changes:
        if each.severity is not None:
            message = (
                each.text if each.severity is Severity.ERROR else f"{each.text}; calls that name it fail"
            )
            yield replace(problem("rehearse-callers-fail", each.place, message), severity=each.severity)
