"""What requests to services other than S3 need: the actions, with the resource and context of each.

* InvokeEndpoint and CreateInferenceComponent have two resource types, endpoint and inference-component. No
  source says whether one of them is enough, so both are needed. UpdateEndpoint needs the endpoint and the
  configuration (Service Authorization Reference, Amazon SageMaker).
* Application Auto Scaling uses the permissions of its caller for the endpoint or component, the alarms and
  the service-linked role (Application Auto Scaling user guide, "Identity-based policy examples"; SageMaker
  developer guide, "Auto scaling prerequisites").
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from constructs_triton_core.facts.inference_components import COMPONENT_HEADER

from ..services.service_api import ServiceApi
from .policy import PolicyError
from .s3_needs import Need

_SERVICE = "sagemaker.application-autoscaling.amazonaws.com"
_ROLE = f"role/aws-service-role/{_SERVICE}/AWSServiceRoleForApplicationAutoScaling_SageMakerEndpoint"
_ENDPOINT, _COMPONENT = ("endpoint", "EndpointName"), ("inference-component", "InferenceComponentName")
_KINDS = {
    **dict.fromkeys(("DescribeEndpoint", "InvokeEndpoint", "UpdateEndpoint"), _ENDPOINT),
    "DescribeEndpointConfig": ("endpoint-config", "EndpointConfigName"),
    "DescribeModel": ("model", "ModelName"),
    **{f"{verb}InferenceComponent": _COMPONENT for verb in ("Create", "Delete", "Describe", "Update")},
    "UpdateInferenceComponentRuntimeConfig": _COMPONENT,
}
"""The type of an action's resource, and the member with its name."""
_USED_BY_SCALING = {
    "endpoint": ("DescribeEndpoint", "UpdateEndpointWeightsAndCapacities"),
    "inference-component": ("DescribeInferenceComponent", "UpdateInferenceComponentRuntimeConfig"),
}
_ALARM_ACTIONS = {
    "PutScalingPolicy": ("PutMetricAlarm", "DescribeAlarms", "DeleteAlarms"),
    "DeleteScalingPolicy": ("DescribeAlarms", "DeleteAlarms"),
}
_Found = Iterator[tuple[str, Mapping[str, str]]]
"""Resources, each with the context of the request."""


def service_needs(service: str, request: Any, api: ServiceApi) -> Iterator[Need]:
    """The permissions of a request."""
    action, here = request._get_action(), f"{api.region}:{api.account}"
    found = list(_RESOURCES[service](action, request, here)) if service in _RESOURCES else []
    if not found:
        raise PolicyError(f"no rule says which resource {service}:{action} concerns")
    prefix = "cloudwatch" if service == "monitoring" else service
    name = "InvokeFunction" if (service, action) == ("lambda", "Invoke") else action
    yield from ((f"{prefix}:{name}", resource, context) for resource, context in found)
    if service == "application-autoscaling":
        yield from _used_by_scaling(action, json.loads(request.body), api)


def _of_logs(_: str, request: Any, here: str) -> _Found:
    yield f"arn:aws:logs:{here}:log-group:{json.loads(request.body)['logGroupName']}:*", {}


def _of_lambda(action: str, request: Any, here: str) -> _Found:
    if action == "Invoke":
        function = unquote(request.path).split("/functions/")[1].partition("/")[0].rpartition(":")[2]
        yield f"arn:aws:lambda:{here}:function:{function}", {}


def _of_ecr(action: str, request: Any, here: str) -> _Found:
    if action == "GetAuthorizationToken":
        yield "*", {}
        return
    wanted, (region, _, account) = json.loads(request.body), here.partition(":")
    registry = wanted.get("registryId", account)
    yield f"arn:aws:ecr:{region}:{registry}:repository/{wanted['repositoryName']}", {}


def _of_monitoring(action: str, request: Any, here: str) -> _Found:
    if action == "DescribeAlarms":
        yield f"arn:aws:cloudwatch:{here}:alarm:*", {}
    elif action == "PutMetricData":
        yield "*", {"cloudwatch:namespace": request._get_param("Namespace")}


def _of_scaling(action: str, request: Any, here: str) -> _Found:
    """Describe actions have no resource; others have an ARN that does not contain the endpoint."""
    if action.startswith("Describe"):
        yield "*", {}
        return
    wanted, prefix = json.loads(request.body), "application-autoscaling"
    namespace, dimension = wanted["ServiceNamespace"], wanted["ScalableDimension"]
    context = {f"{prefix}:service-namespace": namespace, f"{prefix}:scalable-dimension": dimension}
    yield f"arn:aws:{prefix}:{here}:scalable-target/0123", context


def _of_sagemaker(action: str, request: Any, here: str) -> _Found:
    prefix = f"arn:aws:sagemaker:{here}"
    if action == "InvokeEndpoint":  # its body belongs to the model, and its path has the name
        yield f"{prefix}:endpoint/{request.path.split('/')[2]}", {}
        if (component := request.headers.get(COMPONENT_HEADER)) is not None:
            yield f"{prefix}:inference-component/{component}", {}
        return
    wanted = json.loads(request.body)
    if action == "ListInferenceComponents":
        yield "*", {}
    elif action in ("AddTags", "DeleteTags", "ListTags"):
        yield wanted["ResourceArn"], {}
    elif action in _KINDS:
        kind, member = _KINDS[action]
        yield f"{prefix}:{kind}/{wanted[member]}", {}
    if action == "CreateInferenceComponent":
        yield f"{prefix}:endpoint/{wanted['EndpointName']}", {}
    if action == "UpdateEndpoint":
        yield f"{prefix}:endpoint-config/{wanted['EndpointConfigName']}", {}


def _of_ssm(_: str, request: Any, here: str) -> _Found:
    yield f"arn:aws:ssm:{here}:parameter/{json.loads(request.body)['Name'].lstrip('/')}", {}


_RESOURCES: Mapping[str, Callable[[str, Any, str], _Found]] = {
    "application-autoscaling": _of_scaling,
    "ecr": _of_ecr,
    "lambda": _of_lambda,
    "logs": _of_logs,
    "monitoring": _of_monitoring,
    "sagemaker": _of_sagemaker,
    "ssm": _of_ssm,
}


def _used_by_scaling(action: str, wanted: Mapping[str, Any], api: ServiceApi) -> Iterator[Need]:
    here = f"{api.region}:{api.account}"
    if action == "RegisterScalableTarget":
        kind, name, *_ = wanted["ResourceId"].split("/")
        for each in _USED_BY_SCALING[kind]:
            yield f"sagemaker:{each}", f"arn:aws:sagemaker:{here}:{kind}/{name}", {}
        role = f"arn:aws:iam::{api.account}:{_ROLE}"
        yield "iam:CreateServiceLinkedRole", role, {"iam:AWSServiceName": _SERVICE}
    for each in _ALARM_ACTIONS.get(action, ()):
        alarm = f"TargetTracking-{wanted['ResourceId']}-AlarmHigh-0123"
        yield f"cloudwatch:{each}", f"arn:aws:cloudwatch:{here}:alarm:{alarm}", {}
