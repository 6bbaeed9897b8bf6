"""Rules of EventBridge match the events that SageMaker documents, of one endpoint."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_sns as sns
from cdk_apps import GPU, add_endpoint, only, resources, synthesize
from moto.events.models import EventPattern as SimulatedPattern

from constructs_triton import TritonComponentEndpoint, TritonEndpoint
from constructs_triton_core.errors import InvalidValueError

RULE = "AWS::Events::Rule"
ARN = "arn:aws:sagemaker:eu-west-1:123456789012:endpoint/digitsprod"
ELSEWHERE = "arn:aws:sagemaker:us-east-1:210987654321:endpoint/digitsprod"
STATE = {
    "source": ["aws.sagemaker"],
    "detail-type": ["SageMaker Endpoint State Change"],
}
# The developer guide's event of an endpoint in service, with the name in its own letters and the
# ARN in lower case.
EVENT: dict[str, Any] = {
    "EndpointName": "DigitsProd",
    "EndpointArn": ARN,
    "EndpointConfigName": "DigitsConfig",
    "ProductionVariants": [{"DesiredWeight": 1.0, "DesiredInstanceCount": 1.0}],
    "EndpointStatus": "IN_SERVICE",
    "CreationTime": 1592411992203.0,
    "LastModifiedTime": 1592411994287.0,
    "Tags": {},
}


def pattern(stack: cdk.Stack) -> Any:
    return only(synthesize(stack), RULE)["EventPattern"]


def warnings(stack: cdk.Stack) -> list[str]:
    return [
        str(entry.data)
        for construct in stack.node.find_all()
        for entry in construct.node.metadata
        if entry.type == "aws:cdk:warning"
    ]


def test_rule_of_a_created_endpoint(stack: cdk.Stack, tmp_path: Path) -> None:
    """The rule has the endpoint's name, the conditions of the caller, and the target."""
    endpoint = add_endpoint(stack, tmp_path)
    topic = sns.Topic(stack, "OnCall")
    rule = endpoint.on_state_change(
        "Failed",
        target=targets.SnsTopic(topic),
        event_pattern=events.EventPattern(detail={"EndpointStatus": ["FAILED"]}),
        rule_name="digits-failed",
        description="The endpoint failed",
    )
    assert isinstance(rule, events.Rule)
    found = only(synthesize(stack), RULE)
    name = stack.resolve(endpoint.endpoint_name)
    assert found["EventPattern"] == {
        **STATE,
        "detail": {"EndpointStatus": ["FAILED"], "EndpointName": [name]},
    }
    assert (found["Name"], found["Description"]) == ("digits-failed", "The endpoint failed")
    assert found["Targets"][0]["Arn"] == stack.resolve(topic.topic_arn)


def test_rule_of_a_named_endpoint_does_not_wait_for_it(stack: cdk.Stack, tmp_path: Path) -> None:
    """A name of the code is in the rule with its capital letters, and refers to no resource."""
    add_endpoint(stack, tmp_path, endpoint_name="DigitsProd").on_state_change("State")
    assert pattern(stack) == {**STATE, "detail": {"EndpointName": ["DigitsProd"]}}


def test_rule_of_deployments(stack: cdk.Stack) -> None:
    """The steps of a deployment have a detail type of their own."""
    endpoint = TritonEndpoint.from_endpoint_name(stack, "Imported", "digits")
    endpoint.on_deployment_state_change("Steps")
    assert pattern(stack)["detail-type"] == ["SageMaker Endpoint Deployment State Change"]


def add_host(stack: cdk.Stack, id: str) -> TritonComponentEndpoint:
    return TritonComponentEndpoint(
        stack, id, instance_type=GPU, min_instance_count=1, max_instance_count=2
    )


def test_rule_of_a_component_endpoint(stack: cdk.Stack) -> None:
    """Endpoints of inference components have the same methods, imported ones too."""
    created = add_host(stack, "Created")
    imported = TritonComponentEndpoint.from_endpoint_name(stack, "Imported", "DigitsProd")
    created.on_state_change("State")
    imported.on_state_change("State")
    rules = resources(synthesize(stack), RULE).values()
    names = [rule["Properties"]["EventPattern"]["detail"]["EndpointName"] for rule in rules]
    assert [stack.resolve(created.endpoint_name)] in names
    assert ["DigitsProd"] in names


def test_rule_of_a_nested_stack_is_beside_its_endpoint(stack: cdk.Stack, tmp_path: Path) -> None:
    """A target of the parent stack becomes a parameter of the nested stack with the rule."""
    nested = cdk.NestedStack(stack, "Nested")
    topic = sns.Topic(stack, "OnCall")
    endpoint = add_endpoint(nested, tmp_path)
    rule = endpoint.on_state_change("State", target=targets.SnsTopic(topic))
    assert cdk.Stack.of(rule) is nested
    assert resources(synthesize(stack), RULE) == {}


IMPORTS: dict[str, dict[str, Any]] = {
    "name": {"endpoint_name": "DigitsProd"},
    "arn": {"endpoint_arn": ARN},
    "both": {"endpoint_name": "DigitsProd", "endpoint_arn": ARN},
}


@pytest.mark.parametrize("given", IMPORTS)
def test_rule_of_an_imported_endpoint_matches_the_documented_event(
    stack: cdk.Stack, given: str
) -> None:
    """EventBridge matches the event of SageMaker's guide, and not that of another endpoint."""
    endpoint = TritonEndpoint.from_endpoint_attributes(stack, "Imported", **IMPORTS[given])
    endpoint.on_state_change("State")
    assert matches(pattern(stack), EVENT)
    other = {"EndpointName": "Other", "EndpointArn": ARN.replace("digitsprod", "other")}
    assert not matches(pattern(stack), {**EVENT, **other})


def matches(event_pattern: dict[str, Any], detail: dict[str, Any]) -> bool:
    """Whether the simulated EventBridge matches an event with a pattern."""
    event: Any = {
        "id": "d2921b5a",
        "detail-type": "SageMaker Endpoint State Change",
        "source": "aws.sagemaker",
        "account": "123456789012",
        "time": "2020-06-17T16:39:57Z",
        "region": "eu-west-1",
        "resources": [detail["EndpointArn"]],
        "detail": detail,
    }
    return SimulatedPattern.load(json.dumps(event_pattern)).matches_event(event)


def test_rule_in_another_place_matches_the_arn(stack: cdk.Stack) -> None:
    """An endpoint of another account or Region gets a warning, and its ARN is matched."""
    endpoint = TritonEndpoint.from_endpoint_attributes(
        stack, "Imported", endpoint_name="DigitsProd", endpoint_arn=ELSEWHERE
    )
    endpoint.on_state_change("State")
    assert pattern(stack)["detail"] == {"EndpointArn": [ELSEWHERE]}
    assert "matches none that are not forwarded" in "".join(warnings(stack))


@pytest.mark.parametrize("as_mapping", [False, True])
def test_status_of_the_api_gets_a_warning(stack: cdk.Stack, as_mapping: bool) -> None:
    """A status that DescribeEndpoint has and no event has gets the name that events have."""
    endpoint = TritonEndpoint.from_endpoint_name(stack, "Imported", "digits")
    detail = {"EndpointStatus": ["UpdateRollbackFailed", "FAILED"]}
    given = {"detail": detail} if as_mapping else events.EventPattern(detail=detail)
    endpoint.on_state_change("State", event_pattern=given)
    (warning,) = warnings(stack)
    assert 'got "UpdateRollbackFailed"' in warning
    assert 'write "UPDATE_ROLLBACK_FAILED"' in warning


@pytest.mark.parametrize(
    "statuses",
    [["FAILED"], ["Failed", "FAILED"], events.Match.prefix("FAIL")],
    ids=["capitals", "both", "match"],
)
def test_right_statuses_get_no_warning(stack: cdk.Stack, statuses: Any) -> None:
    """Statuses as events have them, both spellings, or a function of ``Match`` are right."""
    endpoint = TritonEndpoint.from_endpoint_name(stack, "Imported", "digits")
    endpoint.on_state_change(
        "State", event_pattern=events.EventPattern(detail={"EndpointStatus": statuses})
    )
    assert warnings(stack) == []


def test_wrong_types_are_refused(stack: cdk.Stack) -> None:
    """A topic in place of a target, and a list in place of a pattern, name the argument."""
    endpoint = TritonEndpoint.from_endpoint_name(stack, "Imported", "digits")
    topic: Any = sns.Topic(stack, "Topic")
    with pytest.raises(InvalidValueError, match=r"target: must be an object with bind"):
        endpoint.on_state_change("A", target=topic)
    with pytest.raises(InvalidValueError, match=r"event_pattern: must be of type EventPattern"):
        endpoint.on_state_change("B", event_pattern=["FAILED"])  # type: ignore[arg-type]
