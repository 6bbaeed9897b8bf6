"""Amazon SageMaker: endpoints, their configurations and models.

Sources, unless a declaration names its own: SageMaker API reference, the operation of that name.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from moto.sagemaker.models import FakeEndpoint, FakeEndpointConfig, SageMakerModelBackend
from moto.sagemaker.responses import SageMakerResponse

from .calls import Operation
from .differences import Difference, Replacement

#: Members of requests that moto does not keep.
_FORGOTTEN = json.loads(Path(__file__).with_name("forgotten_members.json").read_text())
_RETAINED = {"DesiredInstanceCount", "DesiredWeight"}

_INSTANCE_TYPES = Difference(
    FakeEndpointConfig,
    "validate_instance_type",
    "knows newer instance types; requests are checked against botocore's service model instead",
    since="5.0.0",
)
_POOLS = Difference(
    FakeEndpointConfig,
    "validate_production_variants",
    "takes variants with instance pools (developer guide, instance pools)",
    since="5.1.22",
)
_MODELS = Difference(
    SageMakerModelBackend,
    "validate_production_variants",
    "takes variants without a model, which inference components use",
    since="5.1.22",
)
_NAMES = Difference(
    SageMakerModelBackend,
    "__init__",
    "finds endpoints without regard to the case of their name (CreateEndpoint)",
    since="5.1.22",
)
_ENDPOINT_ARNS = Difference(
    FakeEndpoint,
    "arn_formatter",
    "has names in lower case in the ARNs of endpoints "
    "(aws/amazon-sagemaker-examples issue 293, philschmid/cdk-samples issue 2)",
    since="5.0.0",
)
_WEIGHTS = Difference(
    SageMakerModelBackend,
    "update_endpoint_weights_and_capacities",
    "keeps the weight or the count that a request leaves out; auto scaling names only the count",
    since="5.1.22",
)
_KEPT_OF_MODELS = Difference(
    SageMakerResponse,
    "create_model",
    "keeps all members that DescribeModel gives back",
    since="5.1.22",
)
_DESCRIBED_MODELS = Difference(
    SageMakerResponse, "describe_model", "gives back the members that moto forgets", since="5.1.22"
)
_KEPT_OF_CONFIGS = Difference(
    SageMakerResponse,
    "create_endpoint_config",
    "keeps all members that DescribeEndpointConfig gives back",
    since="5.1.22",
)
_DESCRIBED_CONFIGS = Difference(
    SageMakerResponse,
    "describe_endpoint_config",
    "gives back the members that moto forgets",
    since="5.1.22",
)

CREATE_MODEL = Operation(
    SageMakerResponse,
    "create_model",
    "reads the model data with the execution role",
    since="5.1.22",
)
CREATE_ENDPOINT_CONFIG = Operation(
    SageMakerResponse,
    "create_endpoint_config",
    "checks variants without a model and instance pools",
    since="5.1.22",
)
CREATE_ENDPOINT = Operation(
    SageMakerResponse,
    "create_endpoint",
    "launches instances with the execution role, its capacity and its quotas",
    since="5.1.22",
)
UPDATE_ENDPOINT = Operation(
    SageMakerResponse,
    "update_endpoint",
    "changes the configuration of an endpoint",
    is_missing=True,
)
DESCRIBE_ENDPOINT = Operation(
    SageMakerResponse,
    "describe_endpoint",
    "has instance pools, the asynchronous configuration and the last deployment",
    since="5.1.22",
)
DELETE_ENDPOINT = Operation(
    SageMakerResponse,
    "delete_endpoint",
    "may write to the log group of an endpoint after its deletion",
    since="5.1.22",
)
DELETE_MODEL = Operation(
    SageMakerResponse,
    "delete_model",
    "refuses while an endpoint uses it (inferred)",
    since="5.1.22",
)
DELETE_ENDPOINT_CONFIG = Operation(
    SageMakerResponse,
    "delete_endpoint_config",
    "refuses while an endpoint uses it; AWS's own answers differ",
    since="5.1.22",
)
LIST_TAGS = Operation(
    SageMakerResponse,
    "list_tags",
    "has the tags of CloudFormation (CloudFormation user guide, resource tags)",
    since="5.1.22",
)
_COMPONENT = "has inference components"
CREATE_INFERENCE_COMPONENT = Operation(
    SageMakerResponse, "create_inference_component", _COMPONENT, is_missing=True
)
DESCRIBE_INFERENCE_COMPONENT = Operation(
    SageMakerResponse, "describe_inference_component", _COMPONENT, is_missing=True
)
LIST_INFERENCE_COMPONENTS = Operation(
    SageMakerResponse, "list_inference_components", _COMPONENT, is_missing=True
)
UPDATE_INFERENCE_COMPONENT = Operation(
    SageMakerResponse, "update_inference_component", _COMPONENT, is_missing=True
)
UPDATE_INFERENCE_COMPONENT_RUNTIME_CONFIG = Operation(
    SageMakerResponse,
    "update_inference_component_runtime_config",
    _COMPONENT,
    is_missing=True,
)
DELETE_INFERENCE_COMPONENT = Operation(
    SageMakerResponse, "delete_inference_component", _COMPONENT, is_missing=True
)
_BY_ARN = Difference(
    SageMakerModelBackend,
    "_get_resource_from_arn",
    "finds inference components by ARN, for AddTags and ListTags",
    since="5.1.0",
)


def patches() -> list[Replacement]:
    """What needs nothing but moto itself."""
    formatter = FakeEndpoint.arn_formatter

    def arn(name: str, *place: str) -> str:
        return formatter(name.lower(), *place)

    return [
        _INSTANCE_TYPES.replaced_by(lambda *_: None),
        _POOLS.wrapped_by(_without_pools),
        _MODELS.wrapped_by(_with_models),
        _NAMES.wrapped_by(_with_names_in_any_case),
        _ENDPOINT_ARNS.replaced_by(staticmethod(arn)),
        _WEIGHTS.wrapped_by(_keep_weights),
        _KEPT_OF_MODELS.wrapped_by(_keep_of_model),
        _DESCRIBED_MODELS.wrapped_by(partial(_with_kept_members, "_models", "ModelName")),
        _KEPT_OF_CONFIGS.wrapped_by(_keep_of_config),
        _DESCRIBED_CONFIGS.wrapped_by(
            partial(_with_kept_members, "endpoint_configs", "EndpointConfigName")
        ),
    ]


def found_by_arn(find: Callable[[str], Any]) -> Replacement:
    """Find also the resources that a function finds, which returns ``None`` for others."""

    def around(original: Callable[[Any, str], Any], backend: Any, arn: str) -> Any:
        found = find(arn)
        return original(backend, arn) if found is None else found

    return _BY_ARN.wrapped_by(around)


def _without_pools(
    original: Callable[..., None], config: Any, variants: list[dict[str, Any]]
) -> None:
    original(config, [variant for variant in variants if "InstancePools" not in variant])


def _with_models(
    original: Callable[..., None], backend: Any, variants: list[Mapping[str, Any]]
) -> None:
    original(backend, [dict(variant) for variant in variants if "ModelName" in variant])


def _with_names_in_any_case(
    original: Callable[..., None], backend: Any, *given: Any, **named: Any
) -> None:
    original(backend, *given, **named)
    backend.endpoints = _NamesInAnyCase()


class _NamesInAnyCase(dict[str, Any]):
    """Endpoints by name: found in any case, listed with the names that they were given."""

    def __getitem__(self, name: str) -> Any:
        return super().__getitem__(self._given(name))

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and super().__contains__(self._given(name))

    def __delitem__(self, name: str) -> None:
        super().__delitem__(self._given(name))

    def get(self, name: str, default: Any = None) -> Any:
        return super().get(self._given(name), default)

    def pop(self, name: str, *default: Any) -> Any:
        return super().pop(self._given(name), *default)

    def _given(self, name: str) -> str:
        return next((known for known in self if known.lower() == name.lower()), name)


def _keep_weights(
    original: Callable[..., str],
    backend: Any,
    endpoint_name: str,
    desired_weights_and_capacities: list[Any],
) -> str:
    """Keep the weight or the instances that UpdateEndpointWeightsAndCapacities leaves out."""
    endpoint = backend.endpoints.get(endpoint_name)
    running = {} if endpoint is None else _by_name(endpoint.production_variants)

    complete = []
    for wanted in desired_weights_and_capacities:
        variant = running.get(wanted["VariantName"], {})
        kept = {name: variant[name] for name in _RETAINED if name in variant}
        complete.append({**kept, **wanted})
    return original(backend, endpoint_name, complete)


def _by_name(variants: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {variant["VariantName"]: variant for variant in variants}


def _keep_of_model(original: Callable[[Any], Any], response: Any) -> Any:
    answer = original(response)
    wanted = json.loads(response.body)
    _keep(response.sagemaker_backend._models[wanted["ModelName"]], wanted, "CreateModel")
    return answer


def _keep_of_config(original: Callable[[Any], Any], response: Any) -> Any:
    answer = original(response)
    wanted = json.loads(response.body)
    created = response.sagemaker_backend.endpoint_configs[wanted["EndpointConfigName"]]
    _keep(created, wanted, "CreateEndpointConfig")
    return answer


def _keep(resource: Any, wanted: Mapping[str, Any], operation: str) -> None:
    members = _FORGOTTEN[operation]
    resource.kept_members = {name: wanted[name] for name in members if name in wanted}


def _with_kept_members(
    store: str, member: str, original: Callable[[Any], Any], response: Any
) -> Any:
    answer = original(response)
    name = json.loads(response.body)[member]
    found = getattr(response.sagemaker_backend, store)[name]
    return type(answer)({**dict(answer.result), **found.kept_members})
