"""What requests to services other than S3 need: the actions, with the resource and context of each.

A function for each service yields the permissions of its actions, in the order in which they are
asked for. Source of actions, resource types and condition keys: Service Authorization Reference,
the page of the service. An action that no function has needs nothing that is known.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from constructs_triton_core.facts.inference_components import COMPONENT_HEADER

from ..moto_account.requests import SignedRequest
from ..services.service_api import ServiceApi
from .s3_needs import Need

_SCALING = "application-autoscaling"
_SCALING_PRINCIPAL = "sagemaker.application-autoscaling.amazonaws.com"
_SCALING_ROLE = "AWSServiceRoleForApplicationAutoScaling_SageMakerEndpoint"
"""The service-linked role of scaling in SageMaker.

Source: Application Auto Scaling user guide, "Service-linked roles".
"""


@dataclass(frozen=True)
class _Asked:
    """A request to a service, and where its resources are."""

    request: SignedRequest
    region: str
    account: str

    @property
    def action(self) -> str:
        return self.request.action

    @property
    def own(self) -> str:
        """The permission that has the name of the request."""
        return f"{self.request.service}:{self.request.action}"

    @property
    def is_json(self) -> bool:
        body = self.request.body
        return isinstance(body, str) and body.startswith("{")

    @property
    def members(self) -> Mapping[str, Any]:
        """The members of a request with a JSON protocol; there are none in other protocols."""
        return json.loads(self.request.body) if self.is_json else {}

    def arn(self, service: str, resource: str) -> str:
        """The ARN of a resource in the account and Region of the request."""
        return f"arn:aws:{service}:{self.region}:{self.account}:{resource}"

    def endpoint(self, name: str) -> str:
        """The ARN of an endpoint, in which its name is in lower case."""
        return self.arn("sagemaker", f"endpoint/{name.lower()}")

    def component(self, name: str) -> str:
        """The ARN of an inference component."""
        return self.arn("sagemaker", f"inference-component/{name}")


def service_needs(request: SignedRequest, api: ServiceApi) -> list[Need]:
    """The permissions of a request. There are none for an action of which no rule is known."""
    needs_of = _SERVICES.get(request.service)
    if needs_of is None:
        return []
    return list(needs_of(_Asked(request, api.region, api.account)))


def _of_scaling(asked: _Asked) -> Iterator[Need]:
    """Application Auto Scaling uses the permissions of its caller.

    It needs them for the endpoint or component, for the alarms and for the service-linked role
    (Application Auto Scaling user guide, "Identity-based policy examples"; SageMaker developer
    guide, "Auto scaling prerequisites").
    """
    if asked.action.startswith("Describe"):
        yield asked.own, "*", {}  # these actions have no resource type
        return

    members = asked.members
    if "ServiceNamespace" not in members:  # the tags of a target are named by its ARN alone
        return

    # The ARN of a scalable target has an ID that the service chooses, and not the endpoint.
    target = asked.arn(_SCALING, "scalable-target/0123")
    namespace = f"{_SCALING}:service-namespace"
    dimension = f"{_SCALING}:scalable-dimension"
    context = {namespace: members["ServiceNamespace"], dimension: members["ScalableDimension"]}
    yield asked.own, target, context

    if asked.action == "RegisterScalableTarget":
        yield from _of_registering(asked)
    elif asked.action == "PutScalingPolicy":
        yield "cloudwatch:PutMetricAlarm", _alarm_of_scaling(asked), {}
    if asked.action in ("PutScalingPolicy", "DeleteScalingPolicy"):
        yield "cloudwatch:DescribeAlarms", _alarm_of_scaling(asked), {}
        yield "cloudwatch:DeleteAlarms", _alarm_of_scaling(asked), {}


def _of_registering(asked: _Asked) -> Iterator[Need]:
    """RegisterScalableTarget reads and changes its target, and creates the service-linked role."""
    match asked.members["ResourceId"].split("/"):
        case ["endpoint", name, *_]:
            arn = asked.endpoint(name)
            yield "sagemaker:DescribeEndpoint", arn, {}
            yield "sagemaker:UpdateEndpointWeightsAndCapacities", arn, {}
        case ["inference-component", name, *_]:
            arn = asked.component(name)
            yield "sagemaker:DescribeInferenceComponent", arn, {}
            yield "sagemaker:UpdateInferenceComponentRuntimeConfig", arn, {}

    path = f"role/aws-service-role/{_SCALING_PRINCIPAL}/{_SCALING_ROLE}"
    role = f"arn:aws:iam::{asked.account}:{path}"
    yield "iam:CreateServiceLinkedRole", role, {"iam:AWSServiceName": _SCALING_PRINCIPAL}


def _alarm_of_scaling(asked: _Asked) -> str:
    """An alarm of a target tracking policy; it has the target and a random ID in its name."""
    target = asked.members["ResourceId"]
    return asked.arn("cloudwatch", f"alarm:TargetTracking-{target}-AlarmHigh-0123")


def _of_ecr(asked: _Asked) -> Iterator[Need]:
    """Yield the permissions that a request to ECR needs."""
    if asked.action == "GetAuthorizationToken":
        yield asked.own, "*", {}
        return
    members = asked.members
    repository = members.get("repositoryName")
    if repository is None:  # such as DescribeRepositories, which may list several
        return
    account = members.get("registryId", asked.account)
    yield asked.own, f"arn:aws:ecr:{asked.region}:{account}:repository/{repository}", {}


def _of_lambda(asked: _Asked) -> Iterator[Need]:
    """Invoke has another name as a permission; its path has the name or the ARN of the function."""
    if asked.action == "Invoke":
        path = unquote(asked.request.path).partition("/functions/")[2]
        function = path.partition("/")[0].rpartition(":")[2]
        yield "lambda:InvokeFunction", asked.arn("lambda", f"function:{function}"), {}


def _of_logs(asked: _Asked) -> Iterator[Need]:
    group = asked.members.get("logGroupName")
    if group is not None:  # DescribeLogGroups has a prefix, and StartQuery may have several groups
        yield asked.own, asked.arn("logs", f"log-group:{group}:*"), {}


def _of_cloudwatch(asked: _Asked) -> Iterator[Need]:
    """CloudWatch signs its requests as ``monitoring``, and its permissions are ``cloudwatch``."""
    if asked.action == "DescribeAlarms":
        yield "cloudwatch:DescribeAlarms", asked.arn("cloudwatch", "alarm:*"), {}
    elif asked.action == "PutMetricData":
        if asked.is_json:
            namespace = asked.members["Namespace"]
        else:  # older releases of botocore send the query protocol
            namespace = asked.request.parameter("Namespace")
        yield "cloudwatch:PutMetricData", "*", {"cloudwatch:namespace": str(namespace)}


def _of_sagemaker(asked: _Asked) -> Iterator[Need]:
    """Yield the permissions that a request to SageMaker needs."""
    if asked.action == "InvokeEndpoint":
        yield from _of_invoking(asked)
        return

    members = asked.members
    match asked.action:
        case "DescribeEndpoint":
            yield asked.own, asked.endpoint(members["EndpointName"]), {}
        case "UpdateEndpoint":
            # It needs both resource types, and not one of them.
            yield asked.own, asked.endpoint(members["EndpointName"]), {}
            yield asked.own, _endpoint_config(asked, members), {}
        case "DescribeEndpointConfig":
            yield asked.own, _endpoint_config(asked, members), {}
        case "DescribeModel":
            yield asked.own, asked.arn("sagemaker", f"model/{members['ModelName']}"), {}
        case "CreateInferenceComponent":
            # No source says whether one of the two resource types is enough, so both are needed.
            yield asked.own, asked.endpoint(members["EndpointName"]), {}
            yield asked.own, asked.component(members["InferenceComponentName"]), {}
        case (
            "DeleteInferenceComponent"
            | "DescribeInferenceComponent"
            | "UpdateInferenceComponent"
            | "UpdateInferenceComponentRuntimeConfig"
        ):
            yield asked.own, asked.component(members["InferenceComponentName"]), {}
        case "ListInferenceComponents":
            yield asked.own, "*", {}
        case "AddTags" | "DeleteTags" | "ListTags":
            yield asked.own, members["ResourceArn"], {}


def _of_invoking(asked: _Asked) -> Iterator[Need]:
    """InvokeEndpoint names its endpoint in the path, since the body belongs to the model.

    No source says whether the inference component alone is enough, so both are needed.
    """
    name = asked.request.path.split("/")[2]
    yield asked.own, asked.endpoint(name), {}

    component = asked.request.headers.get(COMPONENT_HEADER)
    if component is not None:
        yield asked.own, asked.component(component), {}


def _endpoint_config(asked: _Asked, members: Mapping[str, Any]) -> str:
    return asked.arn("sagemaker", f"endpoint-config/{members['EndpointConfigName']}")


def _of_ssm(asked: _Asked) -> Iterator[Need]:
    """The ARN of a parameter has its name without the slash at its beginning.

    GetParameters and DeleteParameters need the permission for each of their parameters. The
    ``Name`` of other actions, such as GetDocument, is not that of a parameter.
    """
    if "Parameter" not in asked.action:
        return
    members = asked.members
    names = [*members.get("Names", ())]
    names += [members[member] for member in ("Name", "Path") if member in members]
    for name in names:
        yield asked.own, asked.arn("ssm", f"parameter/{name.lstrip('/')}"), {}


_SERVICES: Mapping[str, Callable[[_Asked], Iterator[Need]]] = {
    _SCALING: _of_scaling,
    "ecr": _of_ecr,
    "lambda": _of_lambda,
    "logs": _of_logs,
    "monitoring": _of_cloudwatch,
    "sagemaker": _of_sagemaker,
    "ssm": _of_ssm,
}
"""The rules of each service, by its name in the signature of a request."""
