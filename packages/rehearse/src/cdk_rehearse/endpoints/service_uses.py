"""What AWS services encrypt for alarms and schedules: notifications and undelivered events.

Amazon SQS and composite alarms are not simulated, so their properties are read as the templates
have them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from constructs_triton_core.facts.encrypted_data import CLOUDWATCH

from ..services.service_api import ServiceApi
from .data_uses import NOTICES, SCHEDULES, Use

AWS_MANAGED_KEY = "alias/aws/sns"
"""The key of Amazon SNS itself, whose policy does not let CloudWatch use it."""
_COMPOSITE, _QUEUE = "AWS::CloudWatch::CompositeAlarm", "AWS::SQS::Queue"
_ACTIONS = ("AlarmActions", "OKActions", "InsufficientDataActions")


def service_uses(api: ServiceApi) -> Iterator[Use]:
    """Yield what CloudWatch and EventBridge Scheduler write and read, with the keys as they are
    given.
    """
    topics = api.backend("sns").topics
    for arn in sorted(_notified(api)):
        if arn in topics:
            yield Use("", NOTICES, "writes", arn, CLOUDWATCH, True, topics[arn].kms_master_key_id)
    for group in api.backend("scheduler").schedule_groups.values():
        for schedule in group.schedules.values():
            yield from _of_schedule(api, schedule)


def _notified(api: ServiceApi) -> set[str]:
    """The ARNs of the actions of all alarms."""
    found: set[str] = set()
    for alarm in api.backend("cloudwatch").alarms.values():
        found.update(alarm.alarm_actions or ())
        found.update(alarm.ok_actions)
        found.update(alarm.insufficient_data_actions)
    for kind, properties in api.opaque.values():
        if kind == _COMPOSITE:
            found.update(arn for name in _ACTIONS for arn in properties.get(name, ()))
    return found


def _of_schedule(api: ServiceApi, schedule: Any) -> Iterator[Use]:
    role = schedule.target["RoleArn"]
    if schedule.kms_key_arn:
        yield Use("", SCHEDULES, "reads", schedule.arn, role, True, schedule.kms_key_arn)
    queue = (schedule.target.get("DeadLetterConfig") or {}).get("Arn", "")
    for (stack, name), (kind, properties) in api.opaque.items():
        if kind == _QUEUE and f"{stack}-{name}-" in queue:
            key = properties.get("KmsMasterKeyId", "")
            yield Use("", SCHEDULES, "writes", queue, role, True, key)
