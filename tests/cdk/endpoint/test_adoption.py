"""``adopt_existing``: the endpoint's resource becomes one that updates an existing endpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from cdk_apps import add_endpoint, only, resources, statements, synthesize

from constructs_triton import CapacitySize, Deployment
from constructs_triton_core.errors import InvalidValueError

ADOPTED = "Custom::TritonAdoptedEndpoint"
ENDPOINT = "AWS::SageMaker::Endpoint"
NAME = "DEMO-digits"


def adopted(stack: cdk.Stack, path: Path, **props: Any) -> dict[str, Any]:
    """The template of a stack that adopts an endpoint."""
    add_endpoint(stack, path, **{"endpoint_name": NAME, "adopt_existing": True, **props})
    return synthesize(stack)


def test_logical_id_differs_from_that_of_a_new_endpoint(stack: cdk.Stack, tmp_path: Path) -> None:
    """CloudFormation refuses to change the type of a resource that keeps its logical id."""
    add_endpoint(stack, tmp_path, "New")
    add_endpoint(stack, tmp_path, "Old", endpoint_name=NAME, adopt_existing=True)

    template = synthesize(stack)

    (new,) = resources(template, ENDPOINT)
    (old,) = resources(template, ADOPTED)
    assert new.startswith("New")
    # After the id of the construct, a logical ID has the digest of its path.
    digits = slice(len("New"), len("New") + 8)
    assert old[digits] != new[digits]


def test_endpoint_is_kept_by_default(stack: cdk.Stack, tmp_path: Path) -> None:
    """Its resource and what it needs are retained, except when their creation is rolled back."""
    template = adopted(stack, tmp_path)
    for resource_type in (
        ADOPTED,
        "AWS::SageMaker::EndpointConfig",
        "AWS::SageMaker::Model",
        "AWS::IAM::ManagedPolicy",
    ):
        policies = {
            resource["DeletionPolicy"]
            for name, resource in resources(template, resource_type).items()
            if "Adoption" not in name  # what only the adopting function needs
        }
        assert policies == {"RetainExceptOnCreate"}, resource_type


def test_scaling_alarms_and_dashboard_attach(stack: cdk.Stack, tmp_path: Path) -> None:
    """Scaling goes through the guard, which replaces the old policies;
    the rest is as for new endpoints.
    """
    endpoint = add_endpoint(stack, tmp_path, endpoint_name=NAME, adopt_existing=True)
    count = endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=4)
    count.scale_on_gpu_utilization("Gpu")
    endpoint.add_alarms()
    endpoint.add_dashboard()

    template = synthesize(stack)

    (resource,) = resources(template, ADOPTED)
    previous = {"Fn::GetAtt": [resource, "PreviousPolicies"]}
    assert only(template, "Custom::TritonScalableTarget")["PreviousPolicies"] == previous
    assert only(template, "Custom::TritonScalingPolicy")["PreviousPolicies"] == previous
    assert only(template, ADOPTED)["RetainAllVariantProperties"] is True
    assert resources(template, "AWS::CloudWatch::Alarm")
    assert resource in str(only(template, "AWS::CloudWatch::Dashboard"))


def test_scaling_of_a_new_endpoint_replaces_no_policy(stack: cdk.Stack, tmp_path: Path) -> None:
    """The guard of an endpoint that the stack creates still refuses a foreign registration."""
    endpoint = add_endpoint(stack, tmp_path, scaling_guard=True)
    endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=4)
    assert "PreviousPolicies" not in only(synthesize(stack), "Custom::TritonScalableTarget")


def test_function_may_update_this_endpoint_only(stack: cdk.Stack, tmp_path: Path) -> None:
    """It may never delete an endpoint, and the ARN has the name in lower case."""
    found = statements(adopted(stack, tmp_path), "AdoptionPolicy")

    for statement in found.values():
        assert "DeleteEndpoint" not in str(statement["Action"])
    arns = [str(arn) for arn in found["AdoptEndpoint"]["Resource"]]
    assert len(arns) == 2
    assert len([arn for arn in arns if f":endpoint/{NAME.lower()}" in arn]) == 1
    assert len([arn for arn in arns if ":endpoint-config/*" in arn]) == 1
    parameter = str(found["RememberEndpoint"]["Resource"])
    assert f"parameter/constructs-triton/adopted/{NAME}" in parameter
    assert "EncryptFleet" not in found


def test_function_may_encrypt_for_sagemaker_only(stack: cdk.Stack, tmp_path: Path) -> None:
    """With a key, the function may create grants of SageMaker, also for the previous key."""
    key = kms.Key.from_key_arn(
        stack, "Key", "arn:aws:kms:eu-west-1:123456789012:key/11111111-2222-3333-4444-555555555555"
    )

    found = statements(adopted(stack, tmp_path, encryption_key=key), "AdoptionPolicy")

    statement = found["EncryptFleet"]
    assert statement["Action"] == "kms:CreateGrant"
    assert statement["Condition"]["Bool"] == {"kms:GrantIsForAWSResource": "true"}
    assert "kms:ViaService" in statement["Condition"]["StringEquals"]


def test_name_may_be_a_parameter(stack: cdk.Stack, tmp_path: Path) -> None:
    """A name that is known only at deployment is passed on as it is."""
    name = cdk.CfnParameter(stack, "Name")
    template = adopted(stack, tmp_path, endpoint_name=name.value_as_string)
    assert only(template, ADOPTED)["EndpointName"] == {"Ref": "Name"}


@pytest.mark.parametrize(
    ("props", "message"),
    [
        ({"endpoint_name": None}, "endpoint_name: is required with adopt_existing"),
        (
            {"log_retention": logs.RetentionDays.ONE_MONTH},
            "log_retention: not supported with adopt_existing",
        ),
        ({"removal_policy": cdk.RemovalPolicy.RETAIN}, "use RETAIN_ON_UPDATE_OR_DELETE"),
        (
            {
                "deployment": Deployment.blue_green_linear(
                    step_size=CapacitySize.percent(10), wait_interval=cdk.Duration.minutes(10)
                )
            },
            (
                "deployment: the waits must take at most 1800 seconds together with "
                "adopt_existing.*got 5400"
            ),
        ),
    ],
)
def test_contradictions_are_refused(
    stack: cdk.Stack, tmp_path: Path, props: dict[str, Any], message: str
) -> None:
    """Properties that an existing endpoint cannot have raise an error with the way out."""
    with pytest.raises(InvalidValueError, match=message):
        adopted(stack, tmp_path, **props)
