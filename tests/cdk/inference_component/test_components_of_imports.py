"""Components on endpoints of other stacks, Regions and apps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_iam as iam
from cdk_apps import make_app, make_stack, policies, resources, statement_list, synthesize
from component_apps import G5, add_component, add_endpoint

from constructs_triton import (
    TritonComponentDashboard,
    TritonComponentEndpoint,
    TritonInferenceComponent,
)
from constructs_triton_core.errors import InvalidValueError


def import_endpoint(stack: cdk.Stack, id: str = "Shared", **options: Any) -> Any:
    """The endpoint ``shared`` of another app, with its role."""
    role = iam.Role.from_role_name(stack, f"{id}Role", "shared-endpoint")
    given: Any = {"instance_type": G5, "role": role, **options}
    if "endpoint_arn" not in given:
        given["endpoint_name"] = "shared"
    return TritonComponentEndpoint.from_endpoint_attributes(stack, id, **given)


def test_components_of_an_import_share_its_policies(stack: cdk.Stack, tmp_path: Path) -> None:
    """A role has room for few policies, so eight components have one,
    with a distinct id per statement.
    """
    endpoint = import_endpoint(stack)
    for number in range(8):
        add_component(endpoint, tmp_path, f"C{number}", scope=stack)
    template = synthesize(stack)
    (logical_id,) = resources(template, "AWS::IAM::ManagedPolicy")
    ids = [each["Sid"] for each in statement_list(template, logical_id)]
    assert len(ids) == len(set(ids))
    models = resources(template, "AWS::SageMaker::Model").values()
    assert all(logical_id in each["DependsOn"] for each in models)


def test_id_of_an_import_does_not_replace_components(tmp_path: Path) -> None:
    """The endpoint is the same, so its components are;
    a new name would clash with the old component.
    """
    templates = []
    for name in ("Shared", "Renamed"):
        stack = cdk.Stack(make_app(), "Test")
        add_component(
            import_endpoint(stack, name), tmp_path, scope=stack, inference_component_name="digits"
        )
        templates.append(synthesize(stack))
    first, second = (resources(each, "AWS::SageMaker::InferenceComponent") for each in templates)
    assert first.keys() == second.keys()


def test_component_in_another_region_is_refused(tmp_path: Path) -> None:
    """CloudFormation would look for the endpoint in the Region of the component."""
    app, account = make_app(), "123456789012"
    here, there = (
        cdk.Stack(app, f"In-{region}", env=cdk.Environment(account=account, region=region))
        for region in ("eu-west-1", "us-east-1")
    )
    arn = f"arn:aws:sagemaker:us-east-1:{account}:endpoint/shared"
    for endpoint in (add_endpoint(there), import_endpoint(here, endpoint_arn=arn)):
        with pytest.raises(
            InvalidValueError, match=f"endpoint: .*{account} and eu-west-1, got .*us-east-1"
        ):
            add_component(endpoint, tmp_path, scope=here)
    assert here.node.try_find_child("Pipeline") is None


def test_refused_permissions_are_added_at_the_next_try(
    stack: cdk.Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After an error about the size of the policies, the same component still needs all of them."""
    endpoint = add_endpoint(stack)
    limit = "constructs_triton.cdk.permissions.role_permissions._POLICIES_AT_REST"
    with monkeypatch.context() as patch:
        patch.setattr(f"{limit.rpartition('.')[0]}._POLICY_CHARACTERS", 500)
        patch.setattr(limit, 1)
        with pytest.raises(InvalidValueError, match="managed policies"):
            add_component(endpoint, tmp_path)
    add_component(endpoint, tmp_path)
    granted = str(resources(synthesize(stack), "AWS::IAM::ManagedPolicy"))
    assert "LoadModel" in granted
    assert "PullImage" in granted


def test_kept_component_of_another_stack_keeps_its_permissions(tmp_path: Path) -> None:
    """Without its policy, the role could not read the model of the component that stays."""
    app = make_app()
    shared, team = cdk.Stack(app, "SharedStack"), cdk.Stack(app, "Team")
    add_component(
        add_endpoint(shared), tmp_path, scope=team, removal_policy=cdk.RemovalPolicy.RETAIN
    )
    [policy] = resources(synthesize(team), "AWS::IAM::ManagedPolicy").values()
    assert (policy["DeletionPolicy"], policy["UpdateReplacePolicy"]) == ("Retain", "Delete")


def test_kept_component_of_an_import_keeps_its_permissions(
    stack: cdk.Stack, tmp_path: Path
) -> None:
    """The policy belongs to the construct of the imported endpoint,
    and is kept with the component.
    """
    role = iam.Role.from_role_arn(stack, "Role", "arn:aws:iam::123456789012:role/shared")
    shared = TritonComponentEndpoint.from_endpoint_attributes(
        stack, "Shared", endpoint_name="shared", instance_type=G5, role=role
    )
    add_component(shared, tmp_path, removal_policy=cdk.RemovalPolicy.RETAIN)
    kept = [
        each
        for each in policies(synthesize(stack)).items()
        if each[0].startswith("SharedExecution")
    ]
    assert [each["DeletionPolicy"] for _, each in kept] == ["Retain"]


def test_kept_component_needs_a_kept_endpoint(stack: cdk.Stack, tmp_path: Path) -> None:
    """SageMaker refuses to delete an endpoint with components,
    so the stack could not be deleted.
    """
    with pytest.raises(
        InvalidValueError, match=r"RETAIN keeps the component, but its stack deletes Test/Shared"
    ):
        add_component(add_endpoint(stack), tmp_path, removal_policy=cdk.RemovalPolicy.RETAIN)
    assert stack.node.try_find_child("Pipeline") is None
    kept = add_endpoint(stack, "Kept", removal_policy=cdk.RemovalPolicy.RETAIN)
    add_component(kept, tmp_path, removal_policy=cdk.RemovalPolicy.RETAIN)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"endpoint_name": 3}, "endpoint_name: must be a string, got 3"),
        ({"endpoint_arn": 3}, "endpoint_arn: must be the ARN of an endpoint, got 3"),
        (
            {"endpoint_arn": "arn:x:endpoint/a"},
            'must be the ARN of an endpoint, got "arn:x:endpoint/a"',
        ),
        (
            {"endpoint_name": "a", "instance_type": "ml.g5.xlarge"},
            "instance_type: must be of type Instance",
        ),
        ({"endpoint_name": "a", "variant_name": None}, "variant_name: must be a string, got None"),
    ],
)
def test_import_of_an_endpoint_refuses(stack: cdk.Stack, options: Any, said: str) -> None:
    """A wrong type is an error that names the property, and not one of the CDK or of Python."""
    with pytest.raises(InvalidValueError, match=said):
        TritonComponentEndpoint.from_endpoint_attributes(stack, "Shared", **options)


@pytest.mark.parametrize(
    ("by", "value", "said"),
    [
        (
            "name",
            "digits",
            "endpoint: must be the endpoint of the component, got None; write TritonComponen",
        ),
        ("name", 3, "inference_component_name: must be a string, got 3"),
        (
            "arn",
            "digits",
            'inference_component_arn: must be the ARN of an inference component, got "digits"',
        ),
        ("arn", 3, "inference_component_arn: must be the ARN of an inference component, got 3"),
    ],
)
def test_import_of_a_component_refuses(stack: cdk.Stack, by: str, value: Any, said: str) -> None:
    """A wrong type is an error that names the property, and not one of the CDK or of Python."""
    create: Any = getattr(TritonInferenceComponent, f"from_inference_component_{by}")
    with pytest.raises(InvalidValueError, match=said):
        create(stack, "C", value, endpoint=None)


def test_component_of_another_region_is_not_scaled_here() -> None:
    """Application Auto Scaling finds a component in its own account and Region only."""
    stack = make_stack(cdk.Environment(account="123456789012", region="eu-west-1"))
    for region in ("eu-west-1", "us-east-1"):
        prefix = f"arn:aws:sagemaker:{region}:123456789012"
        endpoint = TritonComponentEndpoint.from_endpoint_arn(
            stack, region, f"{prefix}:endpoint/shared"
        )
        component = TritonInferenceComponent.from_inference_component_arn(
            stack, f"C-{region}", f"{prefix}:inference-component/digits", endpoint=endpoint
        )
        if region == "eu-west-1":
            component.auto_scale_copy_count(min_capacity=1, max_capacity=2)
    with pytest.raises(
        InvalidValueError, match="123456789012 and eu-west-1, got 123456789012 and us-east-1"
    ):
        component.auto_scale_copy_count(min_capacity=1, max_capacity=2)


def test_lists_of_one_are_written_as_lists(stack: cdk.Stack, tmp_path: Path) -> None:
    """One component, or one action, in place of a list is an error that shows the list."""
    component: Any = add_component(add_endpoint(stack), tmp_path)
    with pytest.raises(
        InvalidValueError, match=r"components: must be of type list, .*write \[TritonInfer"
    ):
        TritonComponentDashboard(stack, "Dashboard", components=component)
    with pytest.raises(
        InvalidValueError, match=r"actions: must be of type list, .*write \[aws_cloud"
    ):
        component.add_alarms(actions=object())
