"""What Application Auto Scaling does with its caller's permissions, beside the request itself.

Sources: Application Auto Scaling user guide, "Identity-based policy examples"; SageMaker developer guide,
"Auto scaling prerequisites".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..services.service_api import ServiceApi
from .s3_needs import Need

__all__ = ["needs_of_caller"]

_SERVICE = "sagemaker.application-autoscaling.amazonaws.com"
_ROLE = f"role/aws-service-role/{_SERVICE}/AWSServiceRoleForApplicationAutoScaling_SageMakerEndpoint"


def needs_of_caller(action: str, wanted: Mapping[str, Any], api: ServiceApi) -> Iterator[Need]:
    """The permissions for the endpoint or component, for the alarms, and for the service-linked role."""
    if action == "RegisterScalableTarget":
        yield from _of_endpoint(wanted["ResourceId"], api)
        arn = f"arn:aws:iam::{api.account}:{_ROLE}"
        yield "iam:CreateServiceLinkedRole", arn, {"iam:AWSServiceName": _SERVICE}
    elif action == "PutScalingPolicy":
        yield from _of_alarms(("PutMetricAlarm", "DescribeAlarms", "DeleteAlarms"), wanted, api)
    elif action == "DeleteScalingPolicy":
        yield from _of_alarms(("DescribeAlarms", "DeleteAlarms"), wanted, api)


def _of_endpoint(resource_id: str, api: ServiceApi) -> Iterator[Need]:
    kind, name, *_ = resource_id.split("/")
    actions = {
        "endpoint": ("DescribeEndpoint", "UpdateEndpointWeightsAndCapacities"),
        "inference-component": ("DescribeInferenceComponent", "UpdateInferenceComponentRuntimeConfig"),
    }
    for action in actions[kind]:
        yield f"sagemaker:{action}", f"arn:aws:sagemaker:{api.region}:{api.account}:{kind}/{name}", {}


def _of_alarms(actions: tuple[str, ...], wanted: Mapping[str, Any], api: ServiceApi) -> Iterator[Need]:
    name = f"TargetTracking-{wanted['ResourceId']}-AlarmHigh-0123"
    for action in actions:
        yield f"cloudwatch:{action}", f"arn:aws:cloudwatch:{api.region}:{api.account}:alarm:{name}", {}
