"""Stops an endpoint, after a file has what creates it and its scaling again,
and starts it again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_tools.operations.stopping.aws_calls import AwsCalls
from constructs_triton_tools.operations.stopping.saved_endpoint import (
    STARTED,
    STARTING,
    STOPPED,
    STOPPING,
    SavedEndpoint,
    read_saved,
    write_saved,
)
from constructs_triton_tools.operations.stopping.snapshot import read_endpoint

_SCALING = "application-autoscaling"
Request = Mapping[str, Any]
_ONCE = re.compile(r"at\((\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\)")


def prepare_stop(aws: AwsCalls, name: str, path: Path, *, force: bool = False) -> SavedEndpoint:
    """Return what the file will hold. A stop or start that failed goes on with its own file.

    After a failure, AWS may have only a part of the scaling. So the file is not read again from
    AWS.
    """
    if not path.exists():
        return read_endpoint(aws, name, force=force)
    saved = read_saved(path)
    saved.require(path, name, aws.region)
    if saved.phase == STARTED:
        return read_endpoint(aws, name, stack=saved.stack, force=force)
    found = aws.find_endpoint(name)
    if found:
        if saved.phase == STOPPED:
            raise InvalidValueError(
                f"endpoint {name}: another program created it after it was stopped; restore its "
                f"scaling with `constructs-triton start {name} --file {path}`, "
                "or choose another file with --file"
            )
        check_endpoint_config(saved, found["EndpointConfigName"], path)
    return saved


def check_endpoint_config(saved: SavedEndpoint, running: str, path: Path) -> None:
    """Check that the endpoint still has the configuration of the file."""
    if running != saved.endpoint_config:
        raise InvalidValueError(
            f"endpoint {saved.name}: has configuration {running}, and {path} has "
            f"{saved.endpoint_config}; it was deployed since. Register its scaling by hand (the "
            "file has the requests), then delete the file"
        )


def stop_endpoint(aws: AwsCalls, saved: SavedEndpoint, path: Path) -> None:
    """Write the file, delete scaling and endpoint, and wait until the endpoint is deleted.

    After a failure, the same call continues.

    Raises:
        InvalidValueError: AWS refuses a call; the file has everything that was deleted.
        OSError: the file cannot be written; if it is the first write, nothing was deleted.
    """
    write_saved(path, replace(saved, phase=STOPPING))
    for target in saved.scalable_targets:
        key = {
            name: target[name] for name in ("ServiceNamespace", "ResourceId", "ScalableDimension")
        }
        aws.find("application-autoscaling", "deregister_scalable_target", **key)
    aws.delete_endpoint(saved.name)
    write_saved(path, replace(saved, phase=STOPPED))


def start_endpoint(aws: AwsCalls, name: str, path: Path, *, now: datetime) -> list[str]:
    """Create the endpoint of a file, wait until it is in service, and register its scaling.

    After a failure, the same call continues. An endpoint that failed in an earlier start is deleted
    first.

    Returns:
        What is left to do by hand, one sentence each.

    Raises:
        InvalidValueError: the file cannot be used, AWS refuses a call, or the endpoint fails.
    """
    saved = read_saved(path)
    saved.require(path, name, aws.region)
    actions, over = _actions(saved, path, now)
    found = aws.find_endpoint(name)
    if found and found["EndpointStatus"] != "Deleting":
        check_endpoint_config(saved, found["EndpointConfigName"], path)
        if saved.phase == STARTED:
            return [f"endpoint {name} is already started; nothing was changed"]
    write_saved(path, replace(saved, phase=STARTING))
    _create(aws, saved, found)
    aws.wait_until_in_service(name)
    _restore_capacities(aws, saved)
    notes = [*_restore_scaling(aws, saved, actions), *over, *_notes_on_stack(saved)]
    write_saved(path, replace(saved, phase=STARTED))
    return notes


def _create(aws: AwsCalls, saved: SavedEndpoint, found: Mapping[str, Any] | None) -> None:
    if found and found["EndpointStatus"] == "Failed" and saved.phase != STARTING:
        raise InvalidValueError(
            f"endpoint {saved.name}: has status Failed and was created by another program; "
            "delete it, then start again"
        )
    if found and found["EndpointStatus"] in ("Failed", "Deleting"):
        aws.delete_endpoint(saved.name)
        found = None
    if found is None:
        aws.require("sagemaker", "create_endpoint", **saved.create_endpoint)


def _restore_capacities(aws: AwsCalls, saved: SavedEndpoint) -> None:
    """Set the counts and weights that differ from those of the configuration."""
    found = aws.find_endpoint(saved.name) or {}
    running = {variant["VariantName"]: variant for variant in found.get("ProductionVariants", [])}
    changed = []
    for capacity in saved.capacities["DesiredWeightsAndCapacities"]:
        variant = running.get(capacity["VariantName"], {})
        if any(variant.get(key) != value for key, value in capacity.items()):
            changed.append(capacity)
    if not changed:
        return
    aws.require(
        "sagemaker",
        "update_endpoint_weights_and_capacities",
        EndpointName=saved.name,
        DesiredWeightsAndCapacities=changed,
    )
    aws.wait_until_in_service(saved.name)


def _restore_scaling(
    aws: AwsCalls, saved: SavedEndpoint, actions: Iterable[Request]
) -> Iterator[str]:
    for request in saved.scalable_targets:
        aws.require(_SCALING, "register_scalable_target", **request)
    for request in saved.scaling_policies:
        arn = aws.require(_SCALING, "put_scaling_policy", **request)["PolicyARN"]
        if request.get("PolicyType") == "StepScaling":
            yield from _notes_on_alarms(saved, request["PolicyName"], arn)
    for request in actions:
        aws.require(_SCALING, "put_scheduled_action", **request)


def _notes_on_alarms(saved: SavedEndpoint, policy: str, arn: str) -> Iterator[str]:
    """Name the alarms that call the ARN of a deleted policy: with them,
    the endpoint would not scale.
    """
    for old, alarms in saved.step_policy_alarms.items():
        if old != arn and old.endswith(f":policyName/{policy}"):
            yield from (
                f"alarm {alarm}: calls the deleted {old}; let it call {arn}" for alarm in alarms
            )


def _notes_on_stack(saved: SavedEndpoint) -> Iterator[str]:
    if saved.stack:
        yield (
            f"stack {saved.stack}: does not know the new scaling policies, and the tags that "
            "CloudFormation had set are missing; whether its next update works is not settled"
        )


def _actions(saved: SavedEndpoint, path: Path, now: datetime) -> tuple[list[Request], list[str]]:
    """Return the scheduled actions that have time left, and a sentence about each other one."""
    actions = []
    over = []
    for index, action in enumerate(saved.scheduled_actions):
        try:
            if _is_over(action, now):
                over.append(
                    f"scheduled action {action['ScheduledActionName']}: "
                    "its time is over, so it was not created"
                )
            else:
                actions.append(_without_past_start(action, now))
        except (KeyError, ValueError) as error:  # a time or time zone that does not exist
            raise InvalidValueError(
                f"{path}: scheduled_actions[{index}]: {error}; restore the file that "
                "`constructs-triton stop` wrote"
            ) from None
    return actions, over


def _is_over(action: Request, now: datetime) -> bool:
    """Whether an action has no time left, so that Application Auto Scaling would never run it."""
    once = _ONCE.fullmatch(action["Schedule"])
    if once:
        zone = ZoneInfo(action.get("Timezone", "UTC"))
        return datetime.fromisoformat(once[1]).replace(tzinfo=zone) <= now
    return "EndTime" in action and _time(action["EndTime"]) <= now


def _without_past_start(action: Request, now: datetime) -> Request:
    """Leave out a start in the past, which changes nothing."""
    is_past = "StartTime" in action and _time(action["StartTime"]) <= now
    return {name: value for name, value in action.items() if name != "StartTime" or not is_past}


def _time(text: str) -> datetime:
    time = datetime.fromisoformat(text)
    return time if time.tzinfo else time.replace(tzinfo=UTC)
