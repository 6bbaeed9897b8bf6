"""The permissions that requests to services need."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cdk_rehearse.moto_account.requests import SignedRequest
from cdk_rehearse.permissions.s3_needs import Need
from cdk_rehearse.permissions.service_needs import service_needs
from cdk_rehearse.services.service_api import ServiceApi
from constructs_triton_core.facts.inference_components import COMPONENT_HEADER

ACCOUNT = "123456789012"
HERE = f"eu-west-1:{ACCOUNT}"
SAGEMAKER = f"arn:aws:sagemaker:{HERE}"
CONFIG = f"{SAGEMAKER}:endpoint-config/Config"
FUNCTION = f"arn:aws:lambda:{HERE}:function:Sync"
ALARM = f"arn:aws:cloudwatch:{HERE}:alarm:TargetTracking-endpoint/Digits/variant/All-AlarmHigh-0123"
TARGET = {
    "ServiceNamespace": "sagemaker",
    "ScalableDimension": "sagemaker:variant:DesiredInstanceCount",
    "ResourceId": "endpoint/Digits/variant/All",
}


def needs_of(service: str, action: str, body: Any = "", **more: Any) -> list[Need]:
    """The permissions of one request to a service of an account."""
    account = ServiceApi("http://127.0.0.1", ACCOUNT, "eu-west-1", application=None)
    sent: dict[str, Any] = {"method": "POST", "path": "/", "query": {}, "headers": {}, **more}
    text = json.dumps(body) if isinstance(body, dict) else body
    request = SignedRequest("key", service, action, resource="*", body=text, **sent)
    return service_needs(request, account)


def test_updates_need_the_endpoint_and_its_configuration() -> None:
    """UpdateEndpoint needs two resources; the ARN of an endpoint has its name in lower case."""
    request = {"EndpointName": "Digits", "EndpointConfigName": "Config"}
    assert needs_of("sagemaker", "UpdateEndpoint", request) == [
        ("sagemaker:UpdateEndpoint", f"{SAGEMAKER}:endpoint/digits", {}),
        ("sagemaker:UpdateEndpoint", CONFIG, {}),
    ]


def test_inference_needs_the_endpoint_and_the_component() -> None:
    """InvokeEndpoint has the endpoint in its path and the component in a header."""
    sent = {"path": "/endpoints/Digits/invocations", "body": b"{}"}
    endpoint: Need = ("sagemaker:InvokeEndpoint", f"{SAGEMAKER}:endpoint/digits", {})
    component: Need = ("sagemaker:InvokeEndpoint", f"{SAGEMAKER}:inference-component/Copy", {})

    assert needs_of("sagemaker", "InvokeEndpoint", **sent) == [endpoint]
    headers = {COMPONENT_HEADER: "Copy"}
    assert needs_of("sagemaker", "InvokeEndpoint", headers=headers, **sent) == [endpoint, component]


def test_registration_of_a_target_needs_what_scaling_does_with_it() -> None:
    """RegisterScalableTarget needs to read and change the endpoint, and the service-linked role."""
    own, *others = needs_of("application-autoscaling", "RegisterScalableTarget", TARGET)
    assert own[2] == {
        "application-autoscaling:service-namespace": "sagemaker",
        "application-autoscaling:scalable-dimension": "sagemaker:variant:DesiredInstanceCount",
    }
    assert [action for action, _, _ in others] == [
        "sagemaker:DescribeEndpoint",
        "sagemaker:UpdateEndpointWeightsAndCapacities",
        "iam:CreateServiceLinkedRole",
    ]
    assert [resource for _, resource, _ in others[:2]] == [f"{SAGEMAKER}:endpoint/digits"] * 2


def test_registration_of_copies_needs_their_component() -> None:
    """RegisterScalableTarget of copies needs to read and change the inference component."""
    target = {**TARGET, "ResourceId": "inference-component/Copy"}
    _, reading, changing, _ = needs_of("application-autoscaling", "RegisterScalableTarget", target)
    component = f"{SAGEMAKER}:inference-component/Copy"
    assert reading == ("sagemaker:DescribeInferenceComponent", component, {})
    assert changing == ("sagemaker:UpdateInferenceComponentRuntimeConfig", component, {})


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        ("PutScalingPolicy", ["PutMetricAlarm", "DescribeAlarms", "DeleteAlarms"]),
        ("DeleteScalingPolicy", ["DescribeAlarms", "DeleteAlarms"]),
        ("DeregisterScalableTarget", []),
    ],
)
def test_scaling_policies_need_their_alarms(action: str, expected: list[str]) -> None:
    """A policy is put and deleted together with its alarms in CloudWatch."""
    _, *others = needs_of("application-autoscaling", action, TARGET)
    assert others == [(f"cloudwatch:{name}", ALARM, {}) for name in expected]


@pytest.mark.parametrize(
    ("service", "action", "sent", "expected"),
    [
        (
            "lambda",
            "Invoke",
            {"path": f"/2015-03-31/functions/{FUNCTION.replace(':', '%3A')}/invocations"},
            ("lambda:InvokeFunction", FUNCTION, {}),
        ),
        (
            "ecr",
            "BatchGetImage",
            {"body": {"repositoryName": "triton", "registryId": "999"}},
            ("ecr:BatchGetImage", "arn:aws:ecr:eu-west-1:999:repository/triton", {}),
        ),
        ("ecr", "GetAuthorizationToken", {}, ("ecr:GetAuthorizationToken", "*", {})),
        (
            "logs",
            "PutRetentionPolicy",
            {"body": {"logGroupName": "/aws/g"}},
            ("logs:PutRetentionPolicy", f"arn:aws:logs:{HERE}:log-group:/aws/g:*", {}),
        ),
        (
            "monitoring",
            "PutMetricData",
            {"query": {"Namespace": ["Own"]}},
            ("cloudwatch:PutMetricData", "*", {"cloudwatch:namespace": "Own"}),
        ),
        (
            "monitoring",
            "PutMetricData",
            {"body": {"Namespace": "Own"}},
            ("cloudwatch:PutMetricData", "*", {"cloudwatch:namespace": "Own"}),
        ),
        (
            "ssm",
            "GetParameter",
            {"body": {"Name": "/team/switch"}},
            ("ssm:GetParameter", f"arn:aws:ssm:{HERE}:parameter/team/switch", {}),
        ),
    ],
)
def test_each_service_names_its_resources_in_its_own_way(
    service: str, action: str, sent: dict[str, Any], expected: Need
) -> None:
    """The resource of a request is in its path, its query or its body, as its service has it."""
    assert needs_of(service, action, **sent) == [expected]


def test_nothing_is_known_of_other_actions() -> None:
    """An action without a rule has no permissions, in a service that is known or not."""
    assert needs_of("sagemaker", "CreateTrainingJob", {"TrainingJobName": "Job"}) == []
    assert needs_of("states", "StartExecution", {"stateMachineArn": "arn"}) == []


@pytest.mark.parametrize(
    ("service", "action", "request_body"),
    [
        ("logs", "DescribeLogGroups", {"logGroupNamePrefix": "/aws/"}),
        ("ecr", "DescribeRepositories", {"maxResults": 10}),
        ("application-autoscaling", "ListTagsForResource", {"ResourceARN": "arn"}),
        ("ssm", "GetDocument", {"Name": "AWS-RunShellScript"}),
        ("ssm", "DescribeParameters", {"MaxResults": 10}),
    ],
)
def test_nothing_is_known_of_requests_that_name_no_resource(
    service: str, action: str, request_body: dict[str, Any]
) -> None:
    """A function may list resources: which permissions that needs is unknown, and no error."""
    assert needs_of(service, action, request_body) == []


def test_several_parameters_need_a_permission_for_each() -> None:
    """GetParameters needs its permission for each parameter, as a policy names them."""
    found = needs_of("ssm", "GetParameters", {"Names": ["/team/a", "b"]})
    assert [resource for _, resource, _ in found] == [
        f"arn:aws:ssm:{HERE}:parameter/team/a",
        f"arn:aws:ssm:{HERE}:parameter/b",
    ]
