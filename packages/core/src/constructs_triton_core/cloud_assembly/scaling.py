"""What scales the variants and inference components of a stack: policies and their alarms."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from constructs_triton_core.cloud_assembly.endpoints import DeclaredTarget, scalable_targets
from constructs_triton_core.cloud_assembly.intrinsics import text_of
from constructs_triton_core.cloud_assembly.synthesized_stack import SynthesizedStack

__all__ = [
    "DeclaredPolicy",
    "limit_of_quotient",
    "limited_quotient",
    "scaling_policies",
]

# With scaling_guard, custom resources with the same properties replace those of CloudFormation.
_POLICIES = "AWS::ApplicationAutoScaling::ScalingPolicy", "Custom::TritonScalingPolicy"
_ALARM = "AWS::CloudWatch::Alarm"
_LIMITED = re.compile(r"IF\(\w+ > (\d+) \* \w+, \1, IF\(")


@dataclass(frozen=True, slots=True)
class DeclaredPolicy:
    """A scaling policy. ``alarms`` are the properties of the alarms that start it."""

    logical_id: str
    properties: Mapping[str, Any]
    target: DeclaredTarget
    alarms: Sequence[Mapping[str, Any]]

    @property
    def tracking(self) -> Mapping[str, Any] | None:
        """The configuration of a target tracking policy."""
        found: Mapping[str, Any] | None = self.properties.get(
            "TargetTrackingScalingPolicyConfiguration"
        )
        return found


def scaling_policies(stack: SynthesizedStack) -> list[DeclaredPolicy]:
    """Return the scaling policies of a stack; values that only a deployment
    decides are as declared.
    """
    targets = {each.logical_id: each for each in scalable_targets(stack)}
    alarms = _alarms_by_action(stack)
    policies = {each: stack.known_properties(each) for each in stack.created(*_POLICIES)}
    return [
        DeclaredPolicy(
            logical_id,
            policy,
            targets.get(str(policy.get("ScalingTargetId"))) or DeclaredTarget(logical_id, policy),
            alarms.get(logical_id, []),
        )
        for logical_id, policy in policies.items()
    ]


def _alarms_by_action(stack: SynthesizedStack) -> dict[str, list[Mapping[str, Any]]]:
    found: dict[str, list[Mapping[str, Any]]] = {}
    for alarm in map(stack.known_properties, stack.created(_ALARM)):
        for action in dict.fromkeys(text_of(each) for each in alarm.get("AlarmActions") or ()):
            found.setdefault(action, []).append(alarm)
    return found


def limited_quotient(total: str, number: str, limit: int) -> str:
    """Return metric math for ``total / number``, at most ``limit``, and 0 without a ``number``."""
    return f"IF({total} > {limit} * {number}, {limit}, IF({number} > 0, {total} / {number}, 0))"


def limit_of_quotient(expression: str) -> int | None:
    """Return the limit of an expression of ``limited_quotient``;
    ``None`` for any other expression.
    """
    found = _LIMITED.match(expression)
    return None if found is None else int(found[1])
