"""What AWS services encrypt for alarms, rules and schedules: notifications and events.

Amazon SQS, rules of EventBridge and composite alarms are not simulated, so their properties are
read as the templates have them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from constructs_triton_core.facts.encrypted_data import CLOUDWATCH, EVENTBRIDGE

from ..services.service_api import ServiceApi
from .data_uses import EVENTS, NOTICES, SCHEDULES, Use

AWS_MANAGED_KEYS = ("alias/aws/sns", "alias/aws/sqs")
"""The keys of Amazon SNS and Amazon SQS themselves, whose policies let no other service use them.
"""
_COMPOSITE, _QUEUE = "AWS::CloudWatch::CompositeAlarm", "AWS::SQS::Queue"
_RULE = "AWS::Events::Rule"
_ACTIONS = ("AlarmActions", "OKActions", "InsufficientDataActions")


def service_uses(api: ServiceApi) -> Iterator[Use]:
    """Yield what CloudWatch, EventBridge and its Scheduler write and read, with the keys as they
    are given.
    """
    topics = api.backend("sns").topics
    for arn in sorted(_notified(api)):
        if arn in topics:
            yield Use("", NOTICES, "writes", arn, CLOUDWATCH, True, topics[arn].kms_master_key_id)
    for kind, properties in list(api.opaque.values()):
        if kind == _RULE:
            yield from _of_rule(api, properties)
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
    key = _key_of_queue(api, queue)
    if key is not None:
        yield Use("", SCHEDULES, "writes", api.stand_ins.shown(queue), role, True, key)


def _of_rule(api: ServiceApi, properties: Mapping[str, Any]) -> Iterator[Use]:
    """The queues and topics that a rule sends events to, also those that were not delivered."""
    for target in properties.get("Targets") or ():
        undelivered = (target.get("DeadLetterConfig") or {}).get("Arn", "")
        for place in filter(None, (target.get("Arn", ""), undelivered)):
            topic = api.backend("sns").topics.get(place)
            key = topic.kms_master_key_id if topic else _key_of_queue(api, place)
            if key:
                shown = api.stand_ins.shown(place)
                yield Use("", EVENTS, "writes", shown, EVENTBRIDGE, True, key)


def _key_of_queue(api: ServiceApi, queue_arn: str) -> str | None:
    """The key of a queue of the stacks, as it is given; ``None`` if none has this queue."""
    for (stack, name), (kind, properties) in api.opaque.items():
        given = properties.get("QueueName")
        has_name = given is not None and queue_arn.rpartition(":")[2] == given
        if kind == _QUEUE and (has_name or api.stand_ins.is_part_of(queue_arn, stack, name)):
            return str(properties.get("KmsMasterKeyId", ""))
    return None
