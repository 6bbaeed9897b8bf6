"""What callers of endpoints notice: how an endpoint is called, and the names that a call contains.

Sources: SageMaker API reference, InvokeEndpoint (TargetModel, TargetVariant,
TargetContainerHostname, InferenceComponentName); SageMaker Developer Guide, "Asynchronous
inference": an endpoint with AsyncInferenceConfig can only receive asynchronous invocations.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.findings import Severity
from constructs_triton_core.model_index import INDEX_FILE, ModelIndex, is_archive, some_of

from ..account import SimulatedAccount
from ..moto_account.backends import objects_of
from .problems import problem
from .report import GENERATED, Problem

_ENDPOINT, _OPERATION = "", "operation"
_noticed = partial(problem, "rehearse-callers-fail")
Call = tuple[str, str, str]
"""What a call contains: the endpoint, a kind of name and the name;
the operation that works is one too.
"""


def calls(account: SimulatedAccount) -> set[Call]:
    """Return everything that callers may name now."""
    backend = account.api.backend("sagemaker")
    return {
        (endpoint, kind, name)
        for endpoint, running in backend.endpoints.items()
        if (config := backend.endpoint_configs.get(running.endpoint_config_name)) is not None
        for kind, name in _names(account, endpoint, config)
    }


def _names(account: SimulatedAccount, endpoint: str, config: Any) -> Iterator[tuple[str, str]]:
    yield _ENDPOINT, endpoint
    yield _OPERATION, "InvokeEndpointAsync" if config.async_inference_config else "InvokeEndpoint"
    yield from (("variant", each["VariantName"]) for each in config.production_variants)
    yield from (
        ("inference component", each.name) for each in account.components.of_endpoint(endpoint)
    )
    models = account.api.backend("sagemaker").models
    names = account.fleets.models_of(config.endpoint_config_name)
    for model in (models[name] for name in names if name in models):
        if model.kept_members.get("InferenceExecutionConfig", {}).get("Mode") == "Direct":
            yield from (("container", each["ContainerHostname"]) for each in model.containers)
        for each in (model.primary_container or {}, *model.containers):
            if each.get("Mode") == "MultiModel" and "ModelDataUrl" in each:
                yield from (("model", name) for name in _models(account, each["ModelDataUrl"]))


def _models(account: SimulatedAccount, url: str) -> list[str]:
    """The models of a multi-model container: the names in its index, or the keys of archives."""
    name, _, prefix = url.removeprefix("s3://").partition("/")
    bucket = account.api.backend("s3").buckets.get(name)
    objects = {} if bucket is None else objects_of(bucket)
    try:
        return list(ModelIndex.from_json(objects[prefix + INDEX_FILE].value).target_models)
    except (KeyError, InvalidValueError):  # there is no index, or it is damaged
        return [
            key.removeprefix(prefix)
            for key in objects
            if key.startswith(prefix) and is_archive(key)
        ]


def caller_problems(before: set[Call], after: set[Call]) -> Iterator[Problem]:
    """Yield what callers notice, the endpoints first; one whose path is empty is no problem.

    It is an error if every call fails, and a warning if those fail that name something. Calls that
    name no variant work with each of them, and callers do not have generated names of models in
    their code.
    """
    kept = {each[0] for each in before & after if each[1] == _ENDPOINT}
    for kind, endpoint in sorted({(each[1], each[0]) for each in before ^ after}):
        old, new = (
            {each[2] for each in found if each[:2] == (endpoint, kind)} for found in (before, after)
        )
        gone, added, place = sorted(old - new), sorted(new - old), f"endpoint {endpoint}"
        if kind == _ENDPOINT:
            yield _noticed("", f"{place} {'no longer exists' if gone else 'is new'}")
        elif endpoint not in kept:
            continue
        elif kind == _OPERATION:
            yield _noticed(place, f"{place}: {gone[0]} fails, and callers must use {added[0]}")
        elif gone:
            is_generated = kind == "model" and all(map(GENERATED.search, gone))
            is_named = kind != "variant" and not is_generated
            text = f"{place} no longer has {kind} {some_of(gone)}"
            fix = f"keep the {kind} until its last caller has left"
            found = _noticed(f"{place}, {kind}" if is_named else "", text, fix)
            yield replace(found, severity=Severity.WARNING)
        if added and endpoint in kept and kind != _OPERATION:
            yield _noticed("", f"{place} has the new {kind} {some_of(added)}")
