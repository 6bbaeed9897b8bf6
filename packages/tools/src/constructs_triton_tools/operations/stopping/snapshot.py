"""Reads what creates an endpoint again, and refuses endpoints that cannot be
created again as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from constructs_triton_core.aws_reader import AwsError
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_tools.operations.status import describe_endpoint
from constructs_triton_tools.operations.stopping.aws_calls import AwsCalls
from constructs_triton_tools.operations.stopping.saved_endpoint import STOPPING, SavedEndpoint

_STACK_TAG = "aws:cloudformation:stack-name"
_KEY = ("ServiceNamespace", "ResourceId", "ScalableDimension")
_TARGET = (*_KEY, "MinCapacity", "MaxCapacity", "SuspendedState")
_POLICY = (
    *_KEY,
    "PolicyName",
    "PolicyType",
    "StepScalingPolicyConfiguration",
    "TargetTrackingScalingPolicyConfiguration",
    "PredictiveScalingPolicyConfiguration",
)
_ACTION = (
    *_KEY,
    "ScheduledActionName",
    "Schedule",
    "Timezone",
    "StartTime",
    "EndTime",
    "ScalableTargetAction",
)
_SCALING = "application-autoscaling"


def read_endpoint(
    aws: AwsCalls, name: str, *, stack: str | None = None, force: bool = False
) -> SavedEndpoint:
    """Read an endpoint, its configuration, its tags and its scaling.

    Raises:
        InvalidValueError: the endpoint cannot be read, or cannot be created again as it is.
    """
    found = describe_endpoint(aws, name)
    _check_status(name, found)
    config = aws.require(
        "sagemaker", "describe_endpoint_config", EndpointConfigName=found["EndpointConfigName"]
    )
    _check_type(aws, name, found, config)
    _check_models(aws, name, config)
    tags = list(aws.members("sagemaker", "list_tags", "Tags", ResourceArn=found["EndpointArn"]))
    stack = {tag["Key"]: tag["Value"] for tag in tags}.get(_STACK_TAG, stack)
    if stack and not force:
        raise InvalidValueError(
            f"endpoint {name}: belongs to CloudFormation stack {stack}; {_turn_off(aws, stack)}, "
            "or add --force (while the endpoint is deleted, an update that needs it fails, and the "
            "stack does not know the scaling policies that `start` creates)"
        )
    return _saved(aws, found, tags, stack)


def _turn_off(aws: AwsCalls, stack: str) -> str:
    """Return how the app of a stack turns the endpoint off."""
    switches = " ".join(f"--parameters {switch}=false" for switch in _switches(aws, stack))
    if not switches:
        return "set off_switch in the app, and change the parameter that it adds"
    return f"turn it off with `npx cdk deploy {switches}` in its app"


def _switches(aws: AwsCalls, stack: str) -> list[str]:
    """Return the parameters of a stack that turn endpoints off;
    none if the stack cannot be read.
    """
    try:
        answer = aws.find("cloudformation", "describe_stacks", StackName=stack) or {}
    except AwsError:
        return []

    switches = []
    for described in answer.get("Stacks", []):
        for parameter in described.get("Parameters", []):
            # The parameter of an OffSwitch ends in "Running".
            is_switch = parameter["ParameterKey"].endswith("Running")
            if is_switch and parameter["ParameterValue"] == "true":
                switches.append(parameter["ParameterKey"])
    return switches


def _check_status(name: str, found: Mapping[str, Any]) -> None:
    status = found["EndpointStatus"]
    if status != "InService":
        reason = f" ({found['FailureReason']})" if found.get("FailureReason") else ""
        raise InvalidValueError(
            f"endpoint {name}: must have status InService, got {status}{reason}; repair it, or "
            "wait until its update has ended"
        )


def _check_type(
    aws: AwsCalls, name: str, found: Mapping[str, Any], config: Mapping[str, Any]
) -> None:
    variants = [*config["ProductionVariants"], *config.get("ShadowProductionVariants", [])]
    if "AsyncInferenceConfig" in config or "AsyncInferenceConfig" in found:
        raise InvalidValueError(
            f"endpoint {name}: is asynchronous, so it needs no deletion; "
            "set the minimum capacity of its scaling to 0"
        )
    has_models = all(_models_of(variant) for variant in variants)
    components = {"EndpointNameEquals": name}
    if not has_models or any(
        aws.members("sagemaker", "list_inference_components", "InferenceComponents", **components)
    ):
        raise InvalidValueError(
            f"endpoint {name}: has inference components, which are not created again; scale the "
            "copies of its components and its instances to 0"
        )
    if any("ServerlessConfig" in variant for variant in variants):
        raise InvalidValueError(
            f"endpoint {name}: is serverless, and costs nothing without calls; leave it as it is"
        )


def _check_models(aws: AwsCalls, name: str, config: Mapping[str, Any]) -> None:
    """Check that the models exist: a running endpoint does not need them, its creation does."""
    models = set()
    for variant in [*config["ProductionVariants"], *config.get("ShadowProductionVariants", [])]:
        models |= set(_models_of(variant))
    for model in sorted(models):
        if aws.find("sagemaker", "describe_model", ModelName=model) is None:
            raise InvalidValueError(
                f"endpoint {name}: its model {model} was deleted, so it could not be created "
                "again; deploy a configuration with an existing model first"
            )


def _models_of(variant: Mapping[str, Any]) -> list[str]:
    """Return the models of a variant; those of inference components are not in it."""
    pools = [pool.get("ModelNameOverride") for pool in variant.get("InstancePools", [])]
    return [model for model in [variant.get("ModelName"), *pools] if model]


def _saved(
    aws: AwsCalls, found: Mapping[str, Any], tags: Sequence[Mapping[str, str]], stack: str | None
) -> SavedEndpoint:
    name = found["EndpointName"]
    variants = found["ProductionVariants"]
    ids = [f"endpoint/{name}/variant/{variant['VariantName']}" for variant in variants]
    wanted = {"ServiceNamespace": "sagemaker", "ResourceIds": ids}
    targets = list(aws.members(_SCALING, "describe_scalable_targets", "ScalableTargets", **wanted))
    policies = _of_targets(aws, targets, "describe_scaling_policies", "ScalingPolicies")
    actions = _of_targets(aws, targets, "describe_scheduled_actions", "ScheduledActions")
    return SavedEndpoint(
        phase=STOPPING,
        region=aws.region,
        stack=stack,
        create_endpoint=_creation(found, tags),
        capacities={
            "EndpointName": name,
            "DesiredWeightsAndCapacities": [
                _pick(variant, ("VariantName", "DesiredWeight", "DesiredInstanceCount"))
                for variant in variants
            ],
        },
        scalable_targets=[_pick(target, _TARGET) for target in targets],
        scaling_policies=[_pick(policy, _POLICY) for policy in policies],
        scheduled_actions=[_pick(action, _ACTION) for action in actions],
        step_policy_alarms={
            policy["PolicyARN"]: _alarm_names(policy)
            for policy in policies
            if policy["PolicyType"] == "StepScaling"
        },
    )


def _creation(found: Mapping[str, Any], tags: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    """Return the request of ``CreateEndpoint`` that creates the endpoint again."""
    creation = {
        "EndpointName": found["EndpointName"],
        "EndpointConfigName": found["EndpointConfigName"],
    }
    if found.get("LastDeploymentConfig"):
        creation["DeploymentConfig"] = found["LastDeploymentConfig"]

    # AWS reserves the tags that begin with "aws:".
    own_tags = [dict(tag) for tag in tags if not tag["Key"].startswith("aws:")]
    if own_tags:
        creation["Tags"] = own_tags
    return creation


def _alarm_names(policy: Mapping[str, Any]) -> list[str]:
    return [alarm["AlarmName"] for alarm in policy.get("Alarms", [])]


def _of_targets(
    aws: AwsCalls, targets: Sequence[Mapping[str, Any]], operation: str, member: str
) -> list[dict[str, Any]]:
    """Return the policies or the scheduled actions of all targets."""
    found: list[dict[str, Any]] = []
    for target in targets:
        found += aws.members(_SCALING, operation, member, **_pick(target, _KEY))
    return found


def _pick(found: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Return the members that a request takes, with times as strings."""
    picked = {}
    for name in names:
        value = found.get(name)
        if isinstance(value, datetime):
            value = value.isoformat()
        if value is not None:
            picked[name] = value
    return picked
