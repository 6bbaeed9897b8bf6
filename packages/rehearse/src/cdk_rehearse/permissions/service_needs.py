"""What requests to services other than S3 need: the actions, with the resource and context of each.

``service_needs.json`` has them by a pattern of the service, the action and the type of what is
named:

* InvokeEndpoint and CreateInferenceComponent have two resource types, endpoint and
  inference-component. No source says whether one of them is enough, so both are needed.
  UpdateEndpoint needs the endpoint and the configuration (Service Authorization Reference, Amazon
  SageMaker).
* Application Auto Scaling uses the permissions of its caller for the endpoint or component, the
  alarms and the service-linked role (Application Auto Scaling user guide, "Identity-based policy
  examples"; SageMaker developer guide, "Auto scaling prerequisites"). Its Describe actions have no
  resource; others have an ARN that does not contain the endpoint.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from constructs_triton_core.facts.inference_components import COMPONENT_HEADER

from ..moto_account.requests import SignedRequest
from ..services.service_api import ServiceApi
from .s3_needs import Need

_NEEDS = json.loads(Path(__file__).with_suffix(".json").read_text())


def service_needs(request: SignedRequest, api: ServiceApi) -> list[Need]:
    """The permissions of a request. There are none for an action that the table does not have."""
    own = f"{request.service}:{request.action}"
    kind, given = _named(own, request, api)
    found = [need for each in _NEEDS if re.fullmatch(each, own + kind) for need in _NEEDS[each]]
    needs: list[Need] = []
    for action, resource, *context in found:
        filled = {key: value.format_map(given) for each in context for key, value in each.items()}
        named = {**given, **_in_endpoint_arns(given, kind)}
        needs.append((action.format(own=own), resource.format_map(named), filled))
    return needs


def _in_endpoint_arns(given: Mapping[str, Any], kind: str) -> dict[str, str]:
    """The members of a request that name an endpoint, as its ARN has them: in lower case."""
    members = ["EndpointName"] if kind != " of endpoint" else ["EndpointName", "name"]
    return {each: given[each].lower() for each in members if given.get(each)}


def _named(own: str, request: SignedRequest, api: ServiceApi) -> tuple[str, Mapping[str, str]]:
    """What a request names: the type of its resource, if that matters, and its members by name."""
    given: dict[str, Any] = {"here": f"{api.region}:{api.account}", "region": api.region}
    given |= {"account": api.account, "registryId": api.account}
    kind = ""
    is_json = isinstance(request.body, str) and request.body[:1] == "{"
    if (
        own == "sagemaker:InvokeEndpoint"
    ):  # its body belongs to the model, and its path has the name
        component = request.headers.get(COMPONENT_HEADER)
        kind = "endpoint" if component is None else "inference-component"
        given |= {"EndpointName": request.path.split("/")[2], "name": component}
    elif own == "lambda:Invoke":
        path = unquote(request.path).partition("/functions/")[2]
        given["FunctionName"] = path.partition("/")[0].rpartition(":")[2]
    elif own == "monitoring:PutMetricData" and not is_json:  # of older releases of botocore
        given["Namespace"] = request.parameter("Namespace")
    elif is_json:
        given |= json.loads(request.body)
        given["Name"] = given.get("Name", "").lstrip("/")
        kind, _, rest = str(given.get("ResourceId", "")).partition("/")
        given["name"] = rest.partition("/")[0]
    return kind and f" of {kind}", given
