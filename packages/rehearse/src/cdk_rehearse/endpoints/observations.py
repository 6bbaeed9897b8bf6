"""What AWS observes of endpoints over time and moto does not simulate: failures, updates, activities.

The user sets what the account has observed. Each is checked against botocore's service model.

* ``DescribeEndpoint`` with FailureReason, PendingDeploymentSummary and VariantStatus.
* ``DescribeScalingActivities``.
* The tags that CloudFormation puts on an endpoint (CloudFormation user guide: resource tags).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import botocore.session
from botocore.model import Shape
from moto.applicationautoscaling.responses import ApplicationAutoScalingResponse
from moto.core.responses import ActionResult
from moto.sagemaker.responses import SageMakerResponse

from ..replacement import replaced, wrapped
from ..stacks.stack import Stacks
from .instance_pools import variants_with_pools


@dataclass
class Observations:
    """Members of DescribeEndpoint by endpoint, and scaling activities by resource id, newest first."""

    stacks: Stacks
    endpoints: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    activities: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def patches(self) -> list[Any]:
        """All patches."""
        activities = lambda response: self._activities(json.loads(response.body))  # noqa: E731 - a method
        return [
            wrapped(SageMakerResponse, "describe_endpoint", self._describe),
            wrapped(SageMakerResponse, "list_tags", self._list_tags),
            replaced(ApplicationAutoScalingResponse, "describe_scaling_activities", activities, is_new=True),
        ]

    def _describe(self, original: Callable[[Any], Any], response: Any) -> ActionResult:
        answer = original(response).result
        observed = self.endpoints.get(json.loads(response.body)["EndpointName"], {})
        config = response.sagemaker_backend.endpoint_configs.get(answer["EndpointConfigName"])
        variants = variants_with_pools(config, answer)
        # Only an asynchronous endpoint has this member, which moto leaves out.
        queue = None if config is None else config.async_inference_config
        added = {**({"AsyncInferenceConfig": queue} if queue else {}), **observed}
        checked = _checked("sagemaker", "DescribeEndpoint", added)
        return ActionResult({**dict(answer), "ProductionVariants": variants, **checked})

    def _list_tags(self, original: Callable[[Any], Any], response: Any) -> ActionResult:
        arn = json.loads(response.body)["ResourceArn"]
        answer = original(response).result
        return ActionResult({**dict(answer), "Tags": [*answer["Tags"], *self._stack_tags(arn)]})

    def _stack_tags(self, arn: str) -> list[dict[str, str]]:
        for stack in self.stacks.all:
            for logical_id, deployed in stack.resources.items():
                # CloudFormation tags its own types only.
                if deployed.physical.id == arn and deployed.request.type.startswith("AWS::"):
                    tags = {"stack-id": stack.id, "stack-name": stack.name, "logical-id": logical_id}
                    return [{"Key": f"aws:cloudformation:{key}", "Value": tags[key]} for key in tags]
        return []

    def _activities(self, wanted: Mapping[str, Any]) -> str:
        found = self.activities.get(wanted["ResourceId"], [])[: wanted.get("MaxResults", 50)]
        answer = {"ScalingActivities": found}
        checked = _checked("application-autoscaling", "DescribeScalingActivities", answer)
        return json.dumps(checked, default=lambda moment: moment.timestamp())


def _checked(service: str, operation: str, answer: dict[str, Any]) -> dict[str, Any]:
    """Return the answer if the service's model has all of its members."""
    shape = botocore.session.get_session().get_service_model(service).operation_model(operation).output_shape
    assert shape is not None
    _expect_known(answer, shape, operation)
    return answer


def _expect_known(value: Any, shape: Shape, path: str) -> None:
    shape_: Any = shape
    if shape.type_name == "structure":
        assert value.keys() <= shape_.members.keys(), f"{path}: {value.keys() - shape_.members.keys()}"
        for name, each in value.items():
            _expect_known(each, shape_.members[name], f"{path}.{name}")
    elif shape.type_name == "list":
        for each in value:
            _expect_known(each, shape_.member, f"{path}[]")
    elif shape.type_name == "string" and shape_.enum:
        assert value in shape_.enum, f"{path}: {value} is none of {shape_.enum}"
