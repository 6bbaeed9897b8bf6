"""What SageMaker answers of endpoints beyond moto: instance pools, queue, deployment, tags of
CloudFormation.

CloudFormation tags what it creates (CloudFormation user guide: resource tags).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from moto.applicationautoscaling.responses import ApplicationAutoScalingResponse
from moto.core.responses import ActionResult
from moto.sagemaker.responses import SageMakerResponse

from ..replacement import replaced, wrapped
from ..stacks.stack import Stacks
from .instance_pools import variants_with_pools


def patches(stacks: Stacks, deployments: Mapping[str, Any]) -> list[Any]:
    """All patches."""
    return [
        wrapped(SageMakerResponse, "describe_endpoint", partial(_describe, deployments)),
        wrapped(SageMakerResponse, "list_tags", partial(_list_tags, stacks)),
        replaced(
            ApplicationAutoScalingResponse,
            "describe_scaling_activities",
            _no_activities,
            is_new=True,
        ),
    ]


def _list_tags(stacks: Stacks, original: Callable[[Any], Any], response: Any) -> ActionResult:
    arn = json.loads(response.body)["ResourceArn"]
    answer = original(response).result
    return ActionResult({**dict(answer), "Tags": [*answer["Tags"], *_stack_tags(stacks, arn)]})


def _stack_tags(stacks: Stacks, arn: str) -> list[dict[str, str]]:
    for stack in stacks.all:
        for logical_id, deployed in stack.resources.items():
            # CloudFormation tags its own types only.
            if deployed.physical.id == arn and deployed.request.type.startswith("AWS::"):
                tags = {"stack-id": stack.id, "stack-name": stack.name, "logical-id": logical_id}
                return [{"Key": f"aws:cloudformation:{key}", "Value": tags[key]} for key in tags]
    return []


def _describe(
    deployments: Mapping[str, Any], original: Callable[[Any], Any], response: Any
) -> ActionResult:
    answer = original(response).result
    config = response.sagemaker_backend.endpoint_configs.get(answer["EndpointConfigName"])
    added: dict[str, Any] = {"ProductionVariants": variants_with_pools(config, answer)}
    # Only an asynchronous endpoint has this member, which moto leaves out.
    if config is not None and config.async_inference_config:
        added["AsyncInferenceConfig"] = config.async_inference_config
    if deployment := deployments.get(answer["EndpointName"]):
        added["LastDeploymentConfig"] = deployment
    return ActionResult({**dict(answer), **added})


def _no_activities(_: Any) -> str:
    return json.dumps({"ScalingActivities": []})
