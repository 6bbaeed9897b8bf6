"""What Application Auto Scaling scales: the instances of a variant, or the copies of a component."""

from __future__ import annotations

from datetime import datetime
from typing import TypedDict, Unpack

from aws_cdk import TimeZone
from aws_cdk import aws_applicationautoscaling as appscaling
from constructs import Construct

from constructs_triton.cdk.scaling import checks
from constructs_triton.cdk.scaling.service_linked_role import service_linked_role
from constructs_triton.facts.limits import RangeLimit

__all__ = ["ScheduleTimes", "add_schedule", "cfn_target", "make_scalable_target"]


class ScheduleTimes(TypedDict):
    """When a schedule is active."""

    schedule: appscaling.Schedule
    start_time: datetime | None
    end_time: datetime | None
    time_zone: TimeZone | None


def make_scalable_target(
    scope: Construct,
    *,
    scalable_dimension: str,
    resource_id: str,
    min_capacity: float,
    max_capacity: float,
) -> appscaling.ScalableTarget:
    """Create the target that policies and schedules belong to.

    ``resource_id`` refers to the endpoint or the component, so the target is created after it and deleted
    before it.
    """
    return appscaling.ScalableTarget(
        scope,
        "Resource",
        service_namespace=appscaling.ServiceNamespace.SAGEMAKER,
        scalable_dimension=scalable_dimension,
        resource_id=resource_id,
        min_capacity=min_capacity,
        max_capacity=max_capacity,
        # Without a role the CDK would create one that nothing uses.
        role=service_linked_role(scope),
    )


def cfn_target(target: appscaling.ScalableTarget) -> appscaling.CfnScalableTarget:
    """Return the CloudFormation resource of a target."""
    resource = target.node.default_child
    assert isinstance(resource, appscaling.CfnScalableTarget)
    return resource


def add_schedule(
    target: appscaling.ScalableTarget,
    id: str,
    *,
    min_capacity: float | None,
    max_capacity: float | None,
    least: RangeLimit,
    **times: Unpack[ScheduleTimes],
) -> None:
    """Change the bounds of a target at a time. ``least`` is the limit of the minimum.

    Raises:
        InvalidValueError: no bounds are set, bounds are out of range, or a time has the wrong type.
    """
    checks.check_schedule(id, min_capacity, max_capacity, least)
    checks.check_schedule_times(id, times)
    target.scale_on_schedule(id, min_capacity=min_capacity, max_capacity=max_capacity, **times)
