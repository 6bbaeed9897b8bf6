"""What callers of endpoints notice: how an endpoint is called, and the names that a call contains.

Sources: SageMaker API reference, InvokeEndpoint (TargetModel, TargetVariant,
TargetContainerHostname, InferenceComponentName); SageMaker Developer Guide, "Asynchronous
inference": an endpoint with AsyncInferenceConfig can only receive asynchronous invocations.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from constructs_triton_core.findings import Severity
from constructs_triton_core.model_index import some_of

from ..account import SimulatedAccount
from .model_files import target_models
from .problems import problem
from .report import GENERATED, Problem

_ENDPOINT = ""  # sorted before all other kinds
_OPERATION = "operation"
_noticed = partial(problem, "rehearse-callers-fail")


class Call(NamedTuple):
    """A name that calls of an endpoint contain: of a variant, a container, a model or a component.

    The endpoint itself and the operation that works are kinds too.
    """

    endpoint: str
    kind: str
    name: str


def calls(account: SimulatedAccount) -> set[Call]:
    """Return everything that callers may name now."""
    backend = account.api.backend("sagemaker")
    found: set[Call] = set()
    for endpoint, running in backend.endpoints.items():
        config = backend.endpoint_configs.get(running.endpoint_config_name)
        if config is None:
            continue
        for kind, name in _names(account, endpoint, config):
            found.add(Call(endpoint, kind, name))
    return found


def _names(account: SimulatedAccount, endpoint: str, config: Any) -> Iterator[tuple[str, str]]:
    """Yield each kind and name that calls of an endpoint with this configuration may contain."""
    yield _ENDPOINT, endpoint
    yield _OPERATION, "InvokeEndpointAsync" if config.async_inference_config else "InvokeEndpoint"
    for variant in config.production_variants:
        yield "variant", variant["VariantName"]
    for component in account.components.of_endpoint(endpoint):
        yield "inference component", component.name

    models = account.api.backend("sagemaker").models
    for name in account.fleets.models_of(config.endpoint_config_name):
        if name in models:
            yield from _names_of_model(account, models[name])


def _names_of_model(account: SimulatedAccount, model: Any) -> Iterator[tuple[str, str]]:
    """Yield the containers that can be called one by one, and the models of multi-model ones."""
    execution = model.kept_members.get("InferenceExecutionConfig", {})
    if execution.get("Mode") == "Direct":
        for container in model.containers:
            yield "container", container["ContainerHostname"]

    for container in (model.primary_container or {}, *model.containers):
        if container.get("Mode") == "MultiModel" and "ModelDataUrl" in container:
            for name in target_models(account, container["ModelDataUrl"]):
                yield "model", name


def caller_problems(before: set[Call], after: set[Call]) -> Iterator[Problem]:
    """Yield what callers notice, the endpoints first; one whose path is empty is no problem.

    It is an error if every call fails, and a warning if those fail that name something. Calls that
    name no variant work with each of them, and callers do not have generated names of models in
    their code.
    """
    kept = {call.endpoint for call in before & after if call.kind == _ENDPOINT}
    changed = {(call.kind, call.endpoint) for call in before ^ after}
    for kind, endpoint in sorted(changed):
        old = _names_in(before, endpoint, kind)
        new = _names_in(after, endpoint, kind)
        removed = sorted(old - new)
        added = sorted(new - old)
        if kind == _ENDPOINT:
            yield _noticed("", f"endpoint {endpoint} {'no longer exists' if removed else 'is new'}")
        elif endpoint in kept:
            yield from _changed_names(endpoint, kind, removed, added)


def _names_in(found: set[Call], endpoint: str, kind: str) -> set[str]:
    """Return the names of one kind that calls of an endpoint contain."""
    return {call.name for call in found if call.endpoint == endpoint and call.kind == kind}


def _changed_names(
    endpoint: str, kind: str, removed: list[str], added: list[str]
) -> Iterator[Problem]:
    """Yield what callers of an endpoint that is kept notice of one kind of names."""
    place = f"endpoint {endpoint}"
    if kind == _OPERATION:
        yield _noticed(place, f"{place}: {removed[0]} fails, and callers must use {added[0]}")
        return

    if removed:
        is_generated = kind == "model" and all(map(GENERATED.search, removed))
        is_named = kind != "variant" and not is_generated
        text = f"{place} no longer has {kind} {some_of(removed)}"
        fix = f"keep the {kind} until its last caller has left"
        found = _noticed(f"{place}, {kind}" if is_named else "", text, fix)
        yield replace(found, severity=Severity.WARNING)
    if added:
        yield _noticed("", f"{place} has the new {kind} {some_of(added)}")
