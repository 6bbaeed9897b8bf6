"""Application Auto Scaling.

Sources: Application Auto Scaling API reference, the operation of that name.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from enum import Enum
from typing import Any

from moto.applicationautoscaling import models, responses
from moto.applicationautoscaling.models import ApplicationAutoscalingBackend
from moto.applicationautoscaling.responses import ApplicationAutoScalingResponse

from .differences import Difference, Replacement

COPIES = "sagemaker:inference-component:DesiredCopyCount"
"""The scalable dimension of inference components."""

_DIMENSIONS = Difference(
    models,
    "ScalableDimensionValueSet",
    f"has the scalable dimension {COPIES}",
    since="5.0.0",
)
_DIMENSIONS_OF_REQUESTS = Difference(
    responses,
    "ScalableDimensionValueSet",
    f"has the scalable dimension {COPIES}",
    since="5.0.0",
)
_REGISTER = Difference(
    ApplicationAutoscalingBackend,
    "register_scalable_target",
    "brings the capacity into the new bounds (RegisterScalableTarget)",
    since="5.2.0",
)
_DEREGISTER = Difference(
    ApplicationAutoscalingBackend,
    "deregister_scalable_target",
    "deletes the policies and scheduled actions of a target with it (DeregisterScalableTarget)",
    since="5.1.0",
)
_PUT_POLICY = Difference(
    ApplicationAutoscalingBackend,
    "put_scaling_policy",
    "keeps the ARN of a policy that is updated, which its alarms name (PutScalingPolicy)",
    since="5.0.0",
)
DESCRIBE_SCALING_ACTIVITIES = Difference(
    ApplicationAutoScalingResponse,
    "describe_scaling_activities",
    "has DescribeScalingActivities; nothing scales by itself in the simulated account",
    is_missing=True,
)


def patches() -> list[Replacement]:
    """What needs nothing but moto itself."""
    known = {member.name: member.value for member in models.ScalableDimensionValueSet}
    dimensions = Enum(  # type: ignore[misc]  # the members are moto's
        "ScalableDimensionValueSet",
        {**known, "SAGEMAKER_COMPONENT_DESIRED_COPY_COUNT": COPIES},
    )
    return [
        _DIMENSIONS.replaced_by(dimensions),
        _DIMENSIONS_OF_REQUESTS.replaced_by(dimensions),
        _DEREGISTER.wrapped_by(_deregister),
        _PUT_POLICY.wrapped_by(_put_policy),
        DESCRIBE_SCALING_ACTIVITIES.replaced_by(_no_activities),
    ]


def registered_before(adjust: Callable[[Any], None]) -> Replacement:
    """Call a function with each target that is registered or changed."""

    def around(original: Callable[..., Any], backend: Any, *given: Any, **named: Any) -> Any:
        target = original(backend, *given, **named)
        adjust(target)
        return target

    return _REGISTER.wrapped_by(around)


def _deregister(
    original: Callable[..., None], backend: Any, namespace: str, resource_id: str, dimension: str
) -> None:
    """Delete a scalable target with its policies and scheduled actions."""
    original(backend, namespace, resource_id, dimension)
    backend.policies = {
        key: policy for key, policy in backend.policies.items() if policy.resource_id != resource_id
    }
    backend.scheduled_actions = [
        action for action in backend.scheduled_actions if action.resource_id != resource_id
    ]


def _put_policy(original: Callable[..., Any], backend: Any, *given: Any, **named: Any) -> Any:
    before = dict(backend.policies)
    policy = original(backend, *given, **named)
    for key, known in before.items():
        if backend.policies[key] is policy:
            policy.policy_arn = known.policy_arn
    return policy


def _no_activities(_: Any) -> str:
    return json.dumps({"ScalingActivities": []})
