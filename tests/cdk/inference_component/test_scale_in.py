"""How SageMaker removes instances of a component endpoint."""

from __future__ import annotations

from typing import Any

import aws_cdk as cdk
import botocore.session
import pytest
from aws_cdk import Duration
from cdk_apps import only, synthesize
from component_apps import add_endpoint, warnings_of

from constructs_triton_core.errors import InvalidValueError


def scaling(stack: cdk.Stack, **options: Any) -> Any:
    """What the template says about the managed scaling of an endpoint."""
    add_endpoint(stack, **options)
    template = synthesize(stack)
    return only(template, "AWS::SageMaker::EndpointConfig")["ProductionVariants"][0][
        "ManagedInstanceScaling"
    ]


@pytest.mark.parametrize(
    ("options", "policy"),
    [
        ({}, None),
        ({"scale_in_strategy": "IDLE_RELEASE"}, {"Strategy": "IDLE_RELEASE"}),
        (
            {
                "scale_in_strategy": "CONSOLIDATION",
                "scale_in_cooldown": Duration.hours(24),
                "scale_in_maximum_step_size": 100,
            },
            {"Strategy": "CONSOLIDATION", "CooldownInMinutes": 1440, "MaximumStepSize": 100},
        ),
    ],
)
def test_policy_has_what_was_set(stack: cdk.Stack, options: dict[str, Any], policy: Any) -> None:
    """Each value reaches CloudFormation's property in its unit,
    and without a strategy there is none.
    """
    assert scaling(stack, **options).get("ScaleInPolicy") == policy
    assert "constructs-triton:scale-in-policy-unused" not in warnings_of(stack)


def test_each_value_may_be_a_token(stack: cdk.Stack) -> None:
    """Parameters of the stack are passed on."""
    number = cdk.CfnParameter(stack, "Number", type="Number")
    text = cdk.CfnParameter(stack, "Text")
    found = scaling(
        stack,
        scale_in_strategy=text.value_as_string,
        scale_in_cooldown=Duration.minutes(number.value_as_number),
        scale_in_maximum_step_size=number.value_as_number,
    )
    number_reference = {"Ref": "Number"}
    assert found["ScaleInPolicy"] == {
        "Strategy": {"Ref": "Text"},
        "CooldownInMinutes": number_reference,
        "MaximumStepSize": number_reference,
    }


@pytest.mark.parametrize(
    "options", [{"scale_in_cooldown": Duration.minutes(5)}, {"scale_in_maximum_step_size": 2}]
)
def test_values_of_the_other_strategy_are_reported(
    stack: cdk.Stack, options: dict[str, Any]
) -> None:
    """A cooldown and a step size with IDLE_RELEASE are a warning,
    since AWS describes them for the other.
    """
    assert scaling(stack, scale_in_strategy="IDLE_RELEASE", **options)["ScaleInPolicy"] is not None
    assert "CONSOLIDATION" in warnings_of(stack)["constructs-triton:scale-in-policy-unused"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"scale_in_cooldown": Duration.minutes(9)},
            'scale_in_strategy: is required with scale_in_cooldown; .* "CONSOLIDATION"',
        ),
        (
            {"scale_in_maximum_step_size": 9},
            "scale_in_strategy: is required with scale_in_maximum_step_size",
        ),
        (
            {"scale_in_strategy": "CONSOLIDATON"},
            'scale_in_strategy: .*did you mean "CONSOLIDATION"',
        ),
        (
            {"scale_in_cooldown": Duration.minutes(4)},
            "scale_in_cooldown: must be from 5 to 1440 minutes",
        ),
        (
            {"scale_in_cooldown": Duration.minutes(1441)},
            "scale_in_cooldown: must be from 5 to 1440 minutes",
        ),
        (
            {"scale_in_cooldown": Duration.seconds(330)},
            r"scale_in_cooldown: .*Duration.minutes\(6\)",
        ),
        ({"scale_in_cooldown": 20}, r"scale_in_cooldown: .*Duration.minutes\(20\)"),
        (
            {"scale_in_maximum_step_size": 0},
            "scale_in_maximum_step_size: must be from 1 to 100 instances",
        ),
        (
            {"scale_in_maximum_step_size": 101},
            "scale_in_maximum_step_size: must be from 1 to 100 instances",
        ),
        ({"scale_in_maximum_step_size": 1.5}, "scale_in_maximum_step_size: must be a whole number"),
    ],
)
def test_values_that_sagemaker_refuses(
    stack: cdk.Stack, options: dict[str, Any], message: str
) -> None:
    """An error names the property, and nothing is added to the stack."""
    with pytest.raises(InvalidValueError, match=f"^{message}"):
        add_endpoint(stack, **options)
    assert stack.node.try_find_child("Shared") is None


def test_limits_are_those_of_the_service_model() -> None:
    """The bounds that the errors name are in botocore."""
    shapes = botocore.session.get_session().get_service_model("sagemaker")
    cooldown = shapes.shape_for("ManagedInstanceScalingCooldownInMinutes").metadata
    step_size = shapes.shape_for("ManagedInstanceScalingMaximumStepSize").metadata
    assert (cooldown["min"], cooldown["max"]) == (5, 1440)
    assert (step_size["min"], step_size["max"]) == (1, 100)
