"""The values of dynamic references and of stored parameters in a template that is deployed.

A dynamic reference is for example ``{{resolve:ssm:/models/image:2}}`` (CloudFormation user guide,
"Get values stored in other services using dynamic references").
"""

from __future__ import annotations

import re
from typing import Any

from constructs_triton_core.cloud_assembly.unknown_values import is_unknown, like

from ..errors import StackError
from ..services.service_api import ServiceApi

_REFERENCE = re.compile(r"\{\{resolve:(ssm|ssm-secure|secretsmanager):([^{}]+)\}\}")
_BOOTSTRAP = "/cdk-bootstrap/"


def resolve_references(value: Any, api: ServiceApi) -> Any:
    """Replace the references in all strings. What this account does not store is not simulated."""
    if is_unknown(value):
        return value
    if isinstance(value, dict):
        return {name: resolve_references(member, api) for name, member in value.items()}
    if isinstance(value, list):
        return [resolve_references(element, api) for element in value]
    if not isinstance(value, str):
        return value
    values = [_value(found[1], found[2], api) for found in _REFERENCE.finditer(value)]
    if not values:
        return value
    remaining = iter(values)
    return like([value, *values], _REFERENCE.sub(lambda _: next(remaining), value))


def stored_parameter(name: str, api: ServiceApi) -> str:
    """Return the value of an SSM parameter; only that of ``cdk bootstrap`` has
    to exist in this account.
    """
    place = (api.account, api.region, name)
    if place in api.passed:
        return api.passed[place]
    try:
        return str(api.call("ssm", "GetParameter", Name=name)["Parameter"]["Value"])
    except StackError:
        if name.startswith(_BOOTSTRAP) and not api.assumes_existing:
            raise
        return _opaque("AWS::SSM::Parameter", name, api)


def _value(service: str, key: str, api: ServiceApi) -> str:
    if service == "ssm":
        return stored_parameter(key, api)
    kind = "AWS::SecretsManager::Secret" if service == "secretsmanager" else "AWS::SSM::Parameter"
    return _opaque(kind, key, api)


def _opaque(kind: str, key: str, api: ServiceApi) -> str:
    api.note_not_simulated(f"value of {kind}", "", key)
    return api.stand_ins.other(kind, key)
