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
    targets = {target.logical_id: target for target in scalable_targets(stack)}
    alarms = _alarms_by_action(stack)
    policies = []
    for logical_id in stack.created(*_POLICIES):
        properties = stack.known_properties(logical_id)
        # A policy that refers to no target names the scaled resource itself.
        target = targets.get(str(properties.get("ScalingTargetId")))
        if target is None:
            target = DeclaredTarget(logical_id, properties)
        policies.append(DeclaredPolicy(logical_id, properties, target, alarms.get(logical_id, [])))
    return policies


def _alarms_by_action(stack: SynthesizedStack) -> dict[str, list[Mapping[str, Any]]]:
    """Return the properties of alarms by the policies and topics that they call."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for logical_id in stack.created(_ALARM):
        alarm = stack.known_properties(logical_id)
        actions = [text_of(action) for action in alarm.get("AlarmActions") or ()]
        for action in dict.fromkeys(actions):  # each once
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
