"""The requests of CloudFormation to SageMaker, scaling and CloudWatch,
checked against their models.
"""

from __future__ import annotations

import copy
from typing import Any

import pytest
from example_apps import CAPABILITIES, example, whole_templates
from sagemaker_requests import all_calls
from service_shapes import check_call

pytestmark = pytest.mark.xdist_group("examples")

CALLS = {"CreateModel", "CreateEndpointConfig", "CreateEndpoint", "UpdateEndpoint"}


@pytest.mark.parametrize("name", CAPABILITIES)
def test_requests_match_the_service_models(name: str) -> None:
    """All requests match botocore's service models, with enumerations, limits and patterns."""
    calls = [call for template in whole_templates(example(name)) for call in all_calls(template)]
    assert {call.operation for call in calls} >= CALLS - (
        {"CreateEndpoint"} if name == "adopted" else set()
    )
    found = [
        problem
        for call in calls
        for problem in check_call(call.service, call.operation, call.request)
    ]
    assert found == []


def test_examples_cover_the_services() -> None:
    """The examples contain every type of call that the constructs can cause."""
    made = {
        call.operation
        for name in CAPABILITIES
        for template in whole_templates(example(name))
        for call in all_calls(template)
    }
    scaling = {"RegisterScalableTarget", "PutScalingPolicy"}
    assert made == CALLS | scaling | {"PutMetricAlarm", "PutDashboard"}


def broken(name: str, kind: str, path: tuple[str | int, ...], value: object) -> list[str]:
    """Return the errors after one property of the first resource of a type is changed."""
    template = copy.deepcopy(example(name).template)
    place: Any = next(each for each in template["Resources"].values() if each["Type"] == kind)[
        "Properties"
    ]
    for part in path[:-1]:
        place = place[part]
    assert place.get(path[-1]) != value
    place[path[-1]] = value
    calls = all_calls(template)
    return [
        problem
        for call in calls
        for problem in check_call(call.service, call.operation, call.request)
    ]


VARIANT: tuple[str | int, ...] = ("ProductionVariants", 0)
CONFIG, MODEL, ENDPOINT = (
    f"AWS::SageMaker::{each}" for each in ("EndpointConfig", "Model", "Endpoint")
)
TARGET = "AWS::ApplicationAutoScaling::ScalableTarget"


@pytest.mark.parametrize(
    ("name", "kind", "path", "value", "found"),
    [
        (
            "basic",
            CONFIG,
            (*VARIANT, "InstanceType"),
            "ml.bogus.large",
            "InstanceType: must be one of",
        ),
        ("basic", CONFIG, (*VARIANT, "VariantName"), "all traffic", "VariantName: must match"),
        ("basic", CONFIG, (*VARIANT, "ModelDataDownloadTimeoutInSeconds"), 9999, "at most 3600"),
        (
            "basic",
            CONFIG,
            (*VARIANT, "InitialInstancesCount"),
            1,
            "has no member InitialInstancesCount",
        ),
        ("basic", MODEL, ("ExecutionRoleArn",), "a-role", "ExecutionRoleArn: must"),
        ("multi_model", MODEL, ("PrimaryContainer", "Mode"), "Multi", "Mode: must be one of 2"),
        (
            "basic",
            MODEL,
            ("PrimaryContainer", "ModelDataUrl"),
            "file:///models",
            "ModelDataUrl: must match",
        ),
        (
            "ensemble",
            TARGET,
            ("ScalableDimension",),
            "sagemaker:variant",
            "ScalableDimension: must be one of",
        ),
        (
            "blue_green_rollback",
            ENDPOINT,
            ("DeploymentConfig", "Alarms"),
            [],
            "has no member Alarms",
        ),
    ],
)
def test_broken_requests_are_found(
    name: str, kind: str, path: tuple[str | int, ...], value: object, found: str
) -> None:
    """Each type of error that a service would report during a deployment is found."""
    assert found in "\n".join(broken(name, kind, path, value))
