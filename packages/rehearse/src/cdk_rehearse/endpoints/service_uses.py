"""What AWS services encrypt for alarms, rules and schedules: notifications and events.

Amazon SQS, rules of EventBridge and composite alarms are not simulated, so their properties are
read as the templates have them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from constructs_triton_core.facts.encrypted_data import CLOUDWATCH, EVENTBRIDGE

from ..services.service_api import ServiceApi
from .data_uses import EVENTS, NOTICES, SCHEDULES, Use

AWS_MANAGED_KEYS = ("alias/aws/sns", "alias/aws/sqs")
"""The keys of Amazon SNS and Amazon SQS themselves, whose policies let no other service use them.
"""
_COMPOSITE = "AWS::CloudWatch::CompositeAlarm"
_QUEUE = "AWS::SQS::Queue"
_RULE = "AWS::Events::Rule"
_QUEUE_POLICY = "AWS::SQS::QueuePolicy"
_OF_SENDER = ("aws:sourcearn", "aws:sourceaccount")
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
    """Yield the encrypted data that a schedule of EventBridge Scheduler uses."""
    role = schedule.target["RoleArn"]
    if schedule.kms_key_arn:
        yield Use("", SCHEDULES, "reads", schedule.arn, role, True, schedule.kms_key_arn)
    queue = (schedule.target.get("DeadLetterConfig") or {}).get("Arn", "")
    key = _key_of_queue(api, queue)
    if key is not None:
        yield Use("", SCHEDULES, "writes", api.stand_ins.shown(queue), role, True, key)


def _of_rule(api: ServiceApi, properties: Mapping[str, Any]) -> Iterator[Use]:
    """The queues and topics that a rule sends events to, also those that were not delivered."""
    for place in _targets(properties):
        topic = api.backend("sns").topics.get(place)
        key = topic.kms_master_key_id or "" if topic else _key_of_queue(api, place)
        if key is not None:
            shown = api.stand_ins.shown(place)
            yield Use("", EVENTS, "writes", shown, EVENTBRIDGE, True, key)


def _targets(properties: Mapping[str, Any]) -> Iterator[str]:
    """Yield the ARNs to which EventBridge itself sends events of a rule.

    With a role, a target needs no policy: the role sends the events.
    """
    for target in properties.get("Targets") or ():
        undelivered = (target.get("DeadLetterConfig") or {}).get("Arn", "")
        own = "" if target.get("RoleArn") else target.get("Arn", "")
        yield from filter(None, (own, undelivered))


class QueuePolicies(NamedTuple):
    """The ARN of a queue, and its policies without conditions about the sender."""

    arn: str
    documents: list[Mapping[str, Any]]


def policies_of_queue(api: ServiceApi, place: str) -> QueuePolicies | None:
    """Return the policies of a queue of the stacks that a rule sends events to.

    ``place`` is its ARN as it is shown. ``None`` if no stack of the rehearsal has the queue.
    """
    for kind, properties in api.opaque.values():
        if kind != _RULE:
            continue
        for arn in _targets(properties):
            queue = _queue_of(api, arn)
            if queue is not None and api.stand_ins.shown(arn) == place:
                return QueuePolicies(arn, list(_documents(api, *queue)))
    return None


def _documents(api: ServiceApi, stack: str, logical_id: str) -> Iterator[Mapping[str, Any]]:
    """Yield the policies of a queue."""
    _, queue = api.opaque[stack, logical_id]
    name = queue.get("QueueName")
    for kind, properties in api.opaque.values():
        if kind != _QUEUE_POLICY:
            continue
        urls = [str(url) for url in properties.get("Queues") or ()]
        is_named = name is not None and any(url.endswith(f"/{name}") for url in urls)
        if is_named or any(api.stand_ins.is_part_of(url, stack, logical_id) for url in urls):
            yield without_sender(properties.get("PolicyDocument") or {})


def without_sender(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a policy in which statements that allow hold for every rule of the account.

    The ARN of a rule is not simulated, so which rule a condition means is not known.
    """
    statements = document.get("Statement") or []
    listed = statements if isinstance(statements, list) else [statements]
    return {"Statement": [_of_any_sender(statement) for statement in listed]}


def _of_any_sender(statement: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a statement without its conditions about the sender."""
    if statement.get("Effect") != "Allow" or "Condition" not in statement:
        return statement
    conditions = {}
    for operator, keys in statement["Condition"].items():
        kept = {key: value for key, value in keys.items() if key.lower() not in _OF_SENDER}
        if kept:
            conditions[operator] = kept
    return {**statement, "Condition": conditions}


def _key_of_queue(api: ServiceApi, queue_arn: str) -> str | None:
    """The key of a queue of the stacks, as it is given; ``None`` if none has this queue."""
    queue = _queue_of(api, queue_arn)
    return None if queue is None else str(api.opaque[queue][1].get("KmsMasterKeyId", ""))


def _queue_of(api: ServiceApi, queue_arn: str) -> tuple[str, str] | None:
    """The stack and the logical ID of a queue; ``None`` if no stack has it."""
    for (stack, name), (kind, properties) in api.opaque.items():
        given = properties.get("QueueName")
        has_name = given is not None and queue_arn.rpartition(":")[2] == given
        if kind == _QUEUE and (has_name or api.stand_ins.is_part_of(queue_arn, stack, name)):
            return stack, name
    return None
