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


def templates(name: str) -> Iterator[Template]:
    yield from example(name).templates.values()


def execution_roles(template: Template) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the logical ID of the role of each model, and the model."""
    for model in resources(template, "AWS::SageMaker::Model").values():
        yield model["Properties"]["ExecutionRoleArn"]["Fn::GetAtt"][0], model


def policies_of(template: Template, role: str) -> dict[str, list[dict[str, Any]]]:
    """Return the statements of each policy that is attached to a role."""
    return {
        name: policy["Properties"]["PolicyDocument"]["Statement"]
        for name, policy in policies(template).items()
        if {"Ref": role} in policy["Properties"]["Roles"]
    }


def statements_of(template: Template, role: str) -> list[dict[str, Any]]:
    """Return the statements of all policies that are attached to a role."""
    found: list[dict[str, Any]] = []
    for statements in policies_of(template, role).values():
        found += statements
    return found


@pytest.mark.parametrize("name", CAPABILITIES)
def test_default_child_is_the_endpoint(name: str) -> None:
    """The default child is the L1 of the endpoint,
    and properties return the other L1 constructs.
    """
    types = (*ENDPOINTS, TritonComponentEndpoint)
    constructs = example(name).app.node.find_all()

    endpoints = [construct for construct in constructs if isinstance(construct, types)]

    assert endpoints
    for endpoint in endpoints:
        assert isinstance(endpoint.node.default_child, sagemaker.CfnEndpoint)
        assert isinstance(endpoint.cfn_endpoint_config, sagemaker.CfnEndpointConfig)
        if isinstance(endpoint, TritonComponentEndpoint):
            continue  # its models belong to its components
        for variant in endpoint.variants:
            assert isinstance(variant.cfn_model, sagemaker.CfnModel)


@pytest.mark.parametrize("name", CAPABILITIES)
def test_execution_roles_have_least_privilege(name: str) -> None:
    """Roles have no managed policies, no actions with wildcards,
    and in S3 only objects and one listing.
    """
    for template in templates(name):
        for role, _ in execution_roles(template):
            assert "ManagedPolicyArns" not in template["Resources"][role]["Properties"]
            statements = statements_of(template, role)
            assert statements
            for statement in statements:
                actions = listed(statement["Action"])
                assert not [action for action in actions if "*" in action]
                if any(action.startswith("s3:") for action in actions):
                    assert is_listing(statement) or is_of_objects(statement)


def is_listing(statement: dict[str, Any]) -> bool:
    """Whether a statement allows only the listing of a part of a bucket."""
    return listed(statement["Action"]) == ["s3:ListBucket"] and "Condition" in statement


def is_of_objects(statement: dict[str, Any]) -> bool:
    """Whether a statement is about objects, but not about all objects of a bucket."""
    resources = [flat(resource) for resource in listed(statement["Resource"])]
    return all("/" in resource and not resource.endswith(".Arn>/*") for resource in resources)


def test_isolated_example_has_a_route_to_s3() -> None:
    """The isolated example has a route to S3 for its models, and prints no warning."""
    found = example("vpc_isolation")

    routes = []
    for route in resources(found.template, "AWS::EC2::VPCEndpoint").values():
        service = flat(route["Properties"]["ServiceName"]).rpartition(".")[2]
        routes.append((route["Properties"]["VpcEndpointType"], service))

    assert ("Gateway", "s3") in routes
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
    fixed = set()
    for template in templates(name):
        for resource in template["Resources"].values():
            # The name of an inline policy must be unique only within its role.
            for key, value in resource.get("Properties", {}).items():
                if key in NAMES and isinstance(value, str):
                    fixed.add(value)
    assert fixed == asked.get(name, set())


def test_resources_are_below_their_construct() -> None:
    """D12: the resources of an endpoint are below it, so the same ID can be used in two scopes."""
    constructs = example("ensemble").app.node.find_all()
    (endpoint,) = (construct for construct in constructs if isinstance(construct, ENDPOINTS))
    own = {construct.node.path for construct in endpoint.node.find_all()}
    for l1 in (endpoint.cfn_endpoint_config, endpoint.cfn_model, endpoint.role):
        assert l1.node.path in own
    assert endpoint.variants[0].instance_type == InstanceType.of("ml.g5.xlarge")


@pytest.mark.parametrize("name", CAPABILITIES)
def test_role_pulls_only_from_the_accounts_of_the_image(name: str) -> None:
    """D13: AWS's images are in accounts of AWS, and the role may pull only from these."""
    for template in templates(name):
        for role, model in execution_roles(template):
            image = flat(model["Properties"]["PrimaryContainer"]["Image"])
            registry, _, tagged = image.partition("/")
            account = registry.partition(".dkr.ecr.")[0]
            repository = tagged.partition(":")[0]

            allowed: list[str] = []
            for statement in statements_of(template, role):
                if "ecr:BatchGetImage" in listed(statement["Action"]):
                    allowed += [flat(resource) for resource in listed(statement["Resource"])]

            wanted = f":{account}:repository/{repository}"
            assert any(wanted in arn for arn in allowed)


# The stages have a Region, so the CDK writes its partition as a string.
@pytest.mark.parametrize("name", [name for name in CAPABILITIES if name != "pipelines_stage"])
def test_no_partition_is_hard_coded(name: str) -> None:
    """D14: no template contains ``arn:aws:``, which fails in China and GovCloud."""
    for template in templates(name):
        assert "arn:aws:" not in json.dumps(template)
