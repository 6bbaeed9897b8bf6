"""EventBridge rules that match what SageMaker reports about an endpoint.

Sources: SageMaker developer guide, "Events that Amazon SageMaker AI sends to Amazon EventBridge";
EventBridge events reference, "Amazon SageMaker AI events". These pages have the statuses
``IN_SERVICE`` and ``UPDATING``; the others are written in the same way, as public apps do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from aws_cdk import aws_events as events
from constructs import Construct

from constructs_triton.cdk.validation.arguments import check_string
from constructs_triton.cdk.validation.property_types import check_has, check_type
from constructs_triton.cdk.validation.read_once import stack_of
from constructs_triton.cdk.validation.same_environment import is_elsewhere
from constructs_triton.cdk.validation.synthesis_warning import add_warning
from constructs_triton_core.findings import Finding, Severity
from constructs_triton_core.tokens import is_lookup_dummy

ENDPOINT_STATE = "SageMaker Endpoint State Change"
DEPLOYMENT_STATE = "SageMaker Endpoint Deployment State Change"

_SOURCE = "SageMaker developer guide: Events that Amazon SageMaker AI sends to Amazon EventBridge"
_PATTERN_EXAMPLE = 'events.EventPattern(detail={"EndpointStatus": ["FAILED"]})'
# The values of DescribeEndpoint (botocore, EndpointStatus), which no event has.
_API_STATUSES = frozenset(
    (
        "OutOfService",
        "Creating",
        "Updating",
        "SystemUpdating",
        "RollingBack",
        "InService",
        "Deleting",
        "Failed",
        "UpdateRollbackFailed",
    )
)

EventPattern: TypeAlias = events.EventPattern | dict[str, Any]
"""Further conditions of a rule. The CDK takes a dict of its properties too."""


def add_state_rule(
    endpoint: Construct,
    id: str,
    detail_type: str,
    *,
    endpoint_name: str | None,
    endpoint_arn: str,
    target: events.IRuleTarget | None,
    event_pattern: EventPattern | None,
    rule_name: str | None,
    description: str | None,
    cross_stack_scope: Construct | None,
) -> events.Rule:
    """Add a rule for the events of one endpoint.

    The name in an event has the letters that it was given, the ARN has lower case. So the rule
    matches the name, and the ARN where the name is not known or the endpoint is in another account
    or Region, which may have an endpoint of the same name.

    Raises:
        InvalidValueError: an argument has the wrong type.
    """
    check_has("target", target, "bind", "targets.SnsTopic(topic)")
    check_type("event_pattern", event_pattern, ((events.EventPattern, dict), _PATTERN_EXAMPLE))
    check_string("rule_name", rule_name)
    check_string("description", description)
    check_has("cross_stack_scope", cross_stack_scope, "node", "other_stack")

    scope = endpoint if cross_stack_scope is None else cross_stack_scope
    is_other_place = is_elsewhere(endpoint, stack_of(scope))
    if endpoint_name is None or is_other_place:
        detail = {"EndpointArn": [endpoint_arn]}
    else:
        detail = {"EndpointName": [endpoint_name]}

    rule = events.Rule(
        endpoint,
        id,
        cross_stack_scope=cross_stack_scope,
        description=description,
        event_pattern=event_pattern,
        # The CDK refuses the stand-in of a value that it looks up after the first synthesis.
        rule_name=None if is_lookup_dummy(rule_name) else rule_name,
    )
    rule.add_event_pattern(source=["aws.sagemaker"], detail_type=[detail_type], detail=detail)
    if target is not None:
        rule.add_target(target)

    if is_other_place:
        add_warning(rule, _other_place())
    for finding in _misspelt_statuses(event_pattern):
        add_warning(rule, finding)
    return rule


def _other_place() -> Finding:
    return Finding(
        "event-rule-elsewhere",
        Severity.WARNING,
        "on_state_change",
        "SageMaker sends events to the account and Region of the endpoint, and the rule is in "
        "another one, so it matches none that are not forwarded",
        "create the rule in a stack of the endpoint's account and Region, or acknowledge this if "
        "a rule there forwards the events to this event bus",
        source=_SOURCE,
    )


def _misspelt_statuses(event_pattern: EventPattern | None) -> Iterator[Finding]:
    """Warn of statuses that are written as the API has them: the rule would never match."""
    wanted = _wanted_statuses(event_pattern)
    for status in wanted:
        name_in_events = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", status).upper()
        if status in _API_STATUSES and name_in_events not in wanted:
            yield Finding(
                "event-rule-status",
                Severity.WARNING,
                "event_pattern",
                f'events have EndpointStatus in capital letters, got "{status}", which none has',
                f'write "{name_in_events}", or acknowledge this',
                source=_SOURCE,
            )


def _wanted_statuses(event_pattern: EventPattern | None) -> list[str]:
    """Return the statuses that a pattern has as strings, without what ``Match`` wrote."""
    if isinstance(event_pattern, dict):
        detail = event_pattern.get("detail")
    else:
        detail = None if event_pattern is None else event_pattern.detail
    statuses = detail.get("EndpointStatus") if isinstance(detail, Mapping) else None
    if not isinstance(statuses, list | tuple):
        return []
    return [status for status in statuses if isinstance(status, str)]
