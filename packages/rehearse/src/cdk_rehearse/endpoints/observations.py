"""What SageMaker answers of endpoints besides what it was given: instance pools, queue,
deployment, tags of CloudFormation.

CloudFormation tags what it creates (CloudFormation user guide: resource tags).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from ..moto_account import sagemaker
from ..moto_account.calls import Call
from ..moto_account.differences import Replacement
from ..stacks.stack import Stacks
from .fleets import Fleets
from .instance_pools import variants_with_pools


def patches(stacks: Stacks, fleets: Fleets) -> list[Replacement]:
    """Add these members while the simulated account runs."""
    return [
        sagemaker.DESCRIBE_ENDPOINT.answered_by(partial(_describe, fleets)),
        sagemaker.LIST_TAGS.answered_by(partial(_list_tags, stacks)),
    ]


def _list_tags(stacks: Stacks, call: Call) -> Mapping[str, Any]:
    answer = call.simulated()
    return {**answer, "Tags": [*answer["Tags"], *_stack_tags(stacks, call.members["ResourceArn"])]}


def _stack_tags(stacks: Stacks, arn: str) -> list[dict[str, str]]:
    """Return the tags that CloudFormation gives to a resource of a stack."""
    for stack in stacks.all:
        for logical_id, deployed in stack.resources.items():
            # CloudFormation tags its own types only.
            if deployed.physical.id == arn and deployed.request.type.startswith("AWS::"):
                tags = {"stack-id": stack.id, "stack-name": stack.name, "logical-id": logical_id}
                return [{"Key": f"aws:cloudformation:{key}", "Value": tags[key]} for key in tags]
    return []


def _describe(fleets: Fleets, call: Call) -> Mapping[str, Any]:
    """Answer DescribeEndpoint with the members that moto leaves out."""
    answer = call.simulated()
    configs = fleets.api.backend("sagemaker").endpoint_configs
    config = configs.get(answer["EndpointConfigName"])
    added: dict[str, Any] = {"ProductionVariants": variants_with_pools(config, answer)}

    # Only an asynchronous endpoint has this member.
    if config is not None and config.async_inference_config:
        added["AsyncInferenceConfig"] = config.async_inference_config

    deployment = fleets.deployments.get(answer["EndpointName"])
    if deployment:
        added["LastDeploymentConfig"] = deployment
    return {**answer, **added}
