"""Common defects of construct libraries, checked in the templates of all examples."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from aws_cdk import aws_sagemaker as sagemaker
from cdk_apps import flat, policies, resources, warnings
from example_apps import CAPABILITIES, Template, example
from policy_statements import listed

from constructs_triton import (
    InstanceType,
    TritonComponentEndpoint,
    TritonEndpoint,
    TritonEnsembleEndpoint,
    TritonMultiModelEndpoint,
)

ENDPOINTS = (TritonEndpoint, TritonEnsembleEndpoint, TritonMultiModelEndpoint)
EXAMPLE_ROLES = (
    "Pipeline",
    "NightlyReview",
    "Reviews",
    "Vpc",
    "FlowLogs",
)  # roles that the examples create themselves


def templates(name: str) -> Iterator[Template]:
    yield from example(name).templates.values()


def execution_roles(template: Template) -> Iterator[tuple[str, dict[str, Any]]]:
    """Return the logical IDs of the role and the model of each model."""
    for model in resources(template, "AWS::SageMaker::Model").values():
        yield model["Properties"]["ExecutionRoleArn"]["Fn::GetAtt"][0], model


def policies_of(template: Template, role: str) -> dict[str, list[dict[str, Any]]]:
    """Return the statements of each policy that is attached to a role."""
    return {
        name: policy["Properties"]["PolicyDocument"]["Statement"]
        for name, policy in policies(template).items()
        if {"Ref": role} in policy["Properties"]["Roles"]
    }


@pytest.mark.parametrize("name", CAPABILITIES)
def test_default_child_is_the_endpoint(name: str) -> None:
    """The default child is the L1 of the endpoint,
    and properties return the other L1 constructs.
    """
    kinds = (*ENDPOINTS, TritonComponentEndpoint)
    made = [each for each in example(name).app.node.find_all() if isinstance(each, kinds)]
    assert made
    for endpoint in made:
        assert isinstance(endpoint.node.default_child, sagemaker.CfnEndpoint)
        assert isinstance(endpoint.cfn_endpoint_config, sagemaker.CfnEndpointConfig)
        # The models of a component endpoint belong to its components.
        variants = () if isinstance(endpoint, TritonComponentEndpoint) else endpoint.variants
        assert all(isinstance(each.cfn_model, sagemaker.CfnModel) for each in variants)


@pytest.mark.parametrize("name", CAPABILITIES)
def test_execution_roles_have_least_privilege(name: str) -> None:
    """Roles have no managed policies, no actions with wildcards,
    and in S3 only objects and one listing.
    """
    for template in templates(name):
        for role, _ in execution_roles(template):
            assert "ManagedPolicyArns" not in template["Resources"][role]["Properties"]
            statements = [each for found in policies_of(template, role).values() for each in found]
            assert statements
            for statement in statements:
                actions = listed(statement["Action"])
                assert not [action for action in actions if "*" in action]
                if not any(action.startswith("s3:") for action in actions):
                    continue
                for resource in listed(statement["Resource"]):
                    is_object = "/" in flat(resource) and not flat(resource).endswith(".Arn>/*")
                    assert is_object or (actions == ["s3:ListBucket"] and "Condition" in statement)


def test_isolated_example_has_a_route_to_s3() -> None:
    """The isolated example has a route to S3 for its models, and prints no warning."""
    found = example("vpc_isolation")
    types = [
        (
            each["Properties"]["VpcEndpointType"],
            flat(each["Properties"]["ServiceName"]).rpartition(".")[2],
        )
        for each in resources(found.template, "AWS::EC2::VPCEndpoint").values()
    ]
    assert ("Gateway", "s3") in types
    assert not warnings(found.app)


@pytest.mark.parametrize("name", CAPABILITIES)
def test_models_wait_for_their_policy(name: str) -> None:
    """D11: SageMaker uses the role while it creates a model, so the policy is created first."""
    for template in templates(name):
        for role, model in execution_roles(template):
            assert set(policies_of(template, role)) & set(model["DependsOn"])


NAMES = ("EndpointName", "EndpointConfigName", "ModelName", "RoleName", "BucketName", "TopicName")


@pytest.mark.parametrize("name", CAPABILITIES)
def test_nothing_has_a_fixed_name(name: str) -> None:
    """D12: a second stack in the same account has no equal names,
    except those that the user sets.
    """
    asked = {
        "adopted": {"digits-2025-11-02"},
        "blue_green_rollback": {"digits-canary"},
        "called_models": {"moderation", "review"},
        "generate": {"decoder", "story"},
        "pipelines_stage": {"digits"},
    }
    fixed = {
        value
        for template in templates(name)
        for each in template["Resources"].values()
        # The name of an inline policy must be unique only within its role.
        for key, value in each.get("Properties", {}).items()
        if key in NAMES and isinstance(value, str)
    }
    assert fixed == asked.get(name, set())


def test_resources_are_below_their_construct() -> None:
    """D12: the resources of an endpoint are below it, so the same ID can be used in two scopes."""
    (endpoint,) = (
        each for each in example("ensemble").app.node.find_all() if isinstance(each, ENDPOINTS)
    )
    own = {each.node.path for each in endpoint.node.find_all()}
    for l1 in (endpoint.cfn_endpoint_config, endpoint.cfn_model, endpoint.role):
        assert l1.node.path in own
    assert endpoint.variants[0].instance_type == InstanceType.of("ml.g5.xlarge")


@pytest.mark.parametrize("name", CAPABILITIES)
def test_role_pulls_only_from_the_accounts_of_the_image(name: str) -> None:
    """D13: AWS's images are in accounts of AWS, and the role may pull only from these."""
    for template in templates(name):
        for role, model in execution_roles(template):
            registry, _, repository = flat(
                model["Properties"]["PrimaryContainer"]["Image"]
            ).partition("/")
            statements = [each for found in policies_of(template, role).values() for each in found]
            allowed = [
                flat(resource)
                for statement in statements
                if "ecr:BatchGetImage" in listed(statement["Action"])
                for resource in listed(statement["Resource"])
            ]
            account = registry.partition(".dkr.ecr.")[0]
            assert any(
                f":{account}:repository/{repository.partition(':')[0]}" in each for each in allowed
            )


# The stages have a Region, so the CDK writes its partition as a string.
@pytest.mark.parametrize("name", [name for name in CAPABILITIES if name != "pipelines_stage"])
def test_no_partition_is_hard_coded(name: str) -> None:
    """D14: no template contains ``arn:aws:``, which fails in China and GovCloud."""
    for template in templates(name):
        assert "arn:aws:" not in json.dumps(template)
