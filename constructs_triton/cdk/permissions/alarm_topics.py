"""Lets CloudWatch publish to the topics of alarms, and use the keys of these topics.

A topic without a policy has the default policy, which lets CloudWatch publish. Any policy replaces
it, also one that only denies requests without TLS (``enforce_ssl=True``).

Sources: Amazon SNS developer guide, "Default topic policy" and "Key management" (event sources need
``kms:GenerateDataKey*`` and ``kms:Decrypt``); CloudWatch user guide, "Using Amazon CloudWatch
alarms". CloudWatch sends ``aws:SourceAccount`` and ``aws:SourceArn`` with both requests (github
aws/modern-data-architecture-accelerator, ``grantCloudWatchAlarmsTopicAccess``, in which AWS uses
these conditions for topics under a key); EventBridge sends neither to a key.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

from aws_cdk import Annotations, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns
from constructs import Construct

from constructs_triton.cdk.permissions.places import action_places, check_places, resource_of
from constructs_triton.cdk.permissions.statements import listed
from constructs_triton.cdk.validation.read_once import environment_of, stack_of
from constructs_triton.cdk.validation.synthesis_warning import add_warning, at_synthesis
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts.encrypted_data import CLOUDWATCH, SERVICE_ACTIONS
from constructs_triton_core.findings import Finding, Severity
from constructs_triton_core.tokens import is_token

_AWS_MANAGED_KEY = "alias/aws/sns"
_PUBLISHING = ("*", "sns:*", "sns:publish")
_ACTION_LISTS = ("_alarm_action_arns", "_ok_action_arns", "_insufficient_data_action_arns")


_alarms_of: WeakKeyDictionary[Stack, list[tuple[Construct, cloudwatch.IAlarm]]] = (
    WeakKeyDictionary()
)

_checked_actions: WeakKeyDictionary[Stack, list[cloudwatch.IAlarmAction]] = WeakKeyDictionary()


class NotedAlarm(cloudwatch.Alarm):
    """An alarm that notes which kinds of actions it has, so that only these are read later.

    Reading a list of the CDK that is empty is a call to its process too.
    """

    action_lists: tuple[str, ...] = ()
    """The attributes with the ARNs of the actions that were added."""

    def __init__(self, scope: Construct, id: str, **properties: Any) -> None:
        super().__init__(scope, id, **properties)
        self._stack_of_alarm = stack_of(scope)

    def add_alarm_action(self, *actions: cloudwatch.IAlarmAction) -> None:
        """Add actions for the state ALARM.

        Raises:
            InvalidValueError: an action is in another Region.
        """
        super().add_alarm_action(*actions)
        self._note("_alarm_action_arns", actions)

    def add_ok_action(self, *actions: cloudwatch.IAlarmAction) -> None:
        """Add actions for the state OK.

        Raises:
            InvalidValueError: an action is in another Region.
        """
        super().add_ok_action(*actions)
        self._note("_ok_action_arns", actions)

    def add_insufficient_data_action(self, *actions: cloudwatch.IAlarmAction) -> None:
        """Add actions for the state INSUFFICIENT_DATA.

        Raises:
            InvalidValueError: an action is in another Region.
        """
        super().add_insufficient_data_action(*actions)
        self._note("_insufficient_data_action_arns", actions)

    def _note(self, name: str, actions: Sequence[cloudwatch.IAlarmAction]) -> None:
        """Note that the alarm has a list of actions, and warn of wrong places of new ones."""
        if name not in self.action_lists:
            self.action_lists = (*self.action_lists, name)
        # Most alarms have the same actions, whose place is the same for all alarms of a stack.
        checked = _checked_actions.setdefault(self._stack_of_alarm, [])
        new = [action for action in actions if not any(action is known for known in checked)]
        if not new:
            return
        places = action_places(getattr(self, name, None) or ())
        for finding in check_places(self._stack_of_alarm, places):
            add_warning(self, finding)
        checked += new


def let_alarms_publish(scope: Construct, alarms: Sequence[cloudwatch.IAlarm]) -> None:
    """Let CloudWatch notify the topics that the alarms have at the end of the synthesis.

    What cannot be changed from this app, such as the policy of an imported key, becomes a warning
    of ``scope``.
    """
    stack = stack_of(scope)
    if stack not in _alarms_of:
        _alarms_of[stack] = []
        at_synthesis(scope, partial(_let_publish, stack))
    _alarms_of[stack].extend((scope, alarm) for alarm in alarms)


def _let_publish(stack: Stack) -> None:
    """Add the permissions for each topic of a stack's alarms, and warn about those that cannot be
    added.
    """
    arns_of: dict[cloudwatch.IAlarm, list[str]] = {}
    scopes_of: dict[str, list[Construct]] = {}
    for scope, alarm in _alarms_of[stack]:
        if alarm not in arns_of:
            arns_of[alarm] = list(_action_arns(alarm))
            if not isinstance(alarm, NotedAlarm):
                _check_actions(scope, arns_of[alarm])
        for arn in arns_of[alarm]:
            scopes = scopes_of.setdefault(arn, [])
            if scope not in scopes:
                scopes.append(scope)

    for arn, scopes in scopes_of.items():
        topic = _find_topic(stack, arn)
        if topic is None:
            continue
        for finding in (*_allow_publishing(stack, topic), *_allow_key(stack, topic)):
            for scope in scopes:
                add_warning(scope, finding)


def _check_actions(scope: Construct, arns: Sequence[str]) -> None:
    """Check where the actions of an alarm are that the user has created."""
    try:
        findings = check_places(scope, action_places(arns))
    except InvalidValueError as error:
        # An exception in a validation would reach the user without its own text.
        Annotations.of(scope).add_error(str(error))
        return
    for finding in findings:
        add_warning(scope, finding)


@dataclass(frozen=True)
class _KnownTopic:
    """A topic of an alarm, and what the app knows of it.

    ``cfn`` is its resource if the app creates it, and ``topic`` the object of the CDK if it is no
    resource only.
    """

    name: str
    cfn: sns.CfnTopic | None
    topic: sns.ITopic | None

    @property
    def key(self) -> kms.IKey | None:
        """The key as an object of the CDK."""
        return None if self.topic is None else self.topic.master_key

    @property
    def key_id(self) -> str:
        """What names the key; empty without a key."""
        if self.cfn is not None:
            return str(self.cfn.kms_master_key_id or "")
        return "" if self.key is None else self.key.key_arn


def _allow_publishing(stack: Stack, topic: _KnownTopic) -> Iterator[Finding]:
    """Let CloudWatch publish to a topic whose policies do not, or yield a warning."""
    if topic.cfn is None:
        return  # The policies of a topic outside of this app are not known.
    policies = [*_policies_of(topic.cfn)]
    if not policies or any(map(_lets_cloudwatch_publish, policies)):
        return
    policy = policies[0].node.scope
    if isinstance(policy, sns.TopicPolicy):
        statement = _statement(stack, "PublishAlarms", ["sns:Publish"], topic.cfn.ref)
        policy.document.add_statements(statement)
        return
    yield Finding(
        "alarm-topic-policy",
        Severity.WARNING,
        "actions",
        f'the policy of topic "{topic.name}" does not let CloudWatch publish, '
        "so no notification of these alarms arrives",
        f"add a statement that allows {CLOUDWATCH} sns:Publish to {policies[0].node.path}",
    )


def _allow_key(stack: Stack, topic: _KnownTopic) -> Iterator[Finding]:
    """Let CloudWatch use the key of an encrypted topic, or yield a warning."""
    key = topic.key
    if not topic.key_id:
        return
    if topic.key_id.endswith(_AWS_MANAGED_KEY):
        yield Finding(
            "alarm-topic-key",
            Severity.WARNING,
            "actions",
            f'topic "{topic.name}" is encrypted with the AWS managed key {_AWS_MANAGED_KEY}, '
            "which CloudWatch may not use, so no notification arrives",
            "give the topic a key of your own: master_key=kms.Key(self, ...)",
        )
        return
    statement = _statement(stack, "EncryptAlarms", SERVICE_ACTIONS, "*")
    if key is not None and _add_to_policy(key, statement):
        return
    which = "" if is_token(topic.key_id) else f" {topic.key_id}"
    yield Finding(
        "alarm-topic-key",
        Severity.WARNING,
        "actions",
        f'topic "{topic.name}" is encrypted with a KMS key{which} whose policy this app cannot '
        "change, and no notification arrives unless CloudWatch may use the key",
        f"allow {CLOUDWATCH} {' and '.join(SERVICE_ACTIONS)} in the policy of the key, and "
        "acknowledge this then",
    )


def _statement(
    stack: Stack, sid: str, actions: Sequence[str], resource: str
) -> iam.PolicyStatement:
    account = environment_of(stack).account
    return iam.PolicyStatement(
        sid=sid,
        principals=[iam.ServicePrincipal(CLOUDWATCH)],
        actions=list(actions),
        resources=[resource],
        conditions={"StringEquals": {"aws:SourceAccount": account}},
    )


def have_actions(alarms: Sequence[cloudwatch.IAlarm]) -> bool:
    """Whether any of the alarms has an action."""
    return any(any(_action_arns(alarm)) for alarm in alarms)


def _action_arns(alarm: cloudwatch.IAlarm) -> Iterator[str]:
    """Yield the ARNs of the actions of an alarm."""
    lists = alarm.action_lists if isinstance(alarm, NotedAlarm) else _ACTION_LISTS
    for name in lists:
        yield from getattr(alarm, name, None) or ()


def _add_to_policy(key: kms.IKey, statement: iam.PolicyStatement) -> bool:
    return bool(key.add_to_resource_policy(statement, allow_no_op=True).statement_added)


def _find_topic(scope: Construct, arn: str) -> _KnownTopic | None:
    """Return the topic of an ARN; ``None`` if it is not a topic that the app knows."""
    if is_token(arn):
        cfn = resource_of(arn)
        if not isinstance(cfn, sns.CfnTopic):
            return None
        parent = cfn.node.scope
        topic = parent if isinstance(parent, sns.Topic) else None
        return _KnownTopic((topic or cfn).node.path, cfn, topic)
    for construct in scope.node.root.node.find_all():
        if isinstance(construct, sns.TopicBase) and construct.topic_arn == arn:
            return _KnownTopic(construct.node.path, None, construct)
    return None


def _policies_of(topic: sns.CfnTopic) -> Iterator[sns.CfnTopicPolicy]:
    """Yield the policies of a topic in this app."""
    path = topic.node.path
    for construct in topic.node.root.node.find_all():
        if not isinstance(construct, sns.CfnTopicPolicy):
            continue
        # jsii makes a new Python object for a construct that Python no longer refers to, so paths
        # are compared.
        named = [resource_of(arn) for arn in construct.topics if is_token(arn)]
        if path in [resource.node.path for resource in named if resource is not None]:
            yield construct


def _lets_cloudwatch_publish(policy: sns.CfnTopicPolicy) -> bool:
    """Whether a statement may let CloudWatch publish; conditions count as met."""
    document = stack_of(policy).resolve(policy.policy_document)
    statements = listed(document["Statement"]) if "Statement" in document else []
    return any(map(_may_let_cloudwatch_publish, statements))


def _may_let_cloudwatch_publish(statement: Mapping[str, Any]) -> bool:
    """Whether a statement may allow CloudWatch to publish, apart from its conditions."""
    if statement.get("Effect", "Allow") != "Allow":
        return False
    actions = {str(action).lower() for action in listed(statement.get("Action", "*"))}
    if not actions.intersection(_PUBLISHING):
        return False
    principal = statement.get("Principal", "*")
    if not isinstance(principal, Mapping):
        return True
    named = [*listed(principal.get("AWS", [])), *listed(principal.get("Service", []))]
    return "*" in named or CLOUDWATCH in named
