"""``grant_operate`` and ``verify_responses``: what they allow and add."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_iam as iam
from cdk_apps import add_endpoint, only, resources, statement_list, synthesize
from policy_statements import listed, policy_statements
from test_iam_statements import faults_of

from constructs_triton import TritonEndpoint
from constructs_triton_core.errors import InvalidValueError

READS = {
    "application-autoscaling:DescribeScalableTargets",
    "application-autoscaling:DescribeScalingActivities",
    "application-autoscaling:DescribeScalingPolicies",
    "cloudwatch:DescribeAlarms",
    "logs:DescribeLogStreams",
    "logs:FilterLogEvents",
    "logs:GetLogEvents",
    "sagemaker:DescribeEndpoint",
    "sagemaker:DescribeEndpointConfig",
    "sagemaker:DescribeInferenceComponent",
    "sagemaker:DescribeModel",
    "sagemaker:ListInferenceComponents",
    "sagemaker:ListTags",
}
STACK = {"cloudformation:DescribeStackEvents", "cloudformation:ListStackResources"}


def actions_of(stack: cdk.Stack) -> set[str]:
    """The actions of the operator's policy."""
    actions: set[str] = set()
    for statement in statement_list(synthesize(stack), "Operator"):
        actions.update(listed(statement["Action"]))
    return actions


def operator(stack: cdk.Stack) -> iam.Role:
    return iam.Role(stack, "Operator", assumed_by=iam.AccountRootPrincipal())


def test_an_operator_may_read_and_nothing_else(stack: cdk.Stack, tmp_path: Path) -> None:
    """A single-model endpoint has nothing to load, so the operator may not call it."""
    add_endpoint(stack, tmp_path).grant_operate(operator(stack))
    assert actions_of(stack) == READS | STACK


def test_the_stack_of_an_imported_endpoint_is_not_granted(stack: cdk.Stack) -> None:
    """It is not known, and diagnose reports that it could not be read."""
    TritonEndpoint.from_endpoint_name(stack, "Digits", "digits").grant_operate(operator(stack))
    assert actions_of(stack) == READS


def test_an_operator_of_several_endpoints_has_one_valid_policy(
    stack: cdk.Stack, tmp_path: Path
) -> None:
    """IAM refuses a policy in which two statements have the same id."""
    role = operator(stack)
    for name in ("First", "Second"):
        add_endpoint(stack, tmp_path / name, name).grant_operate(role)
    assert actions_of(stack) == READS | STACK


def requests(folder: Path, **members: Any) -> Path:
    """A file with one recorded request."""
    tensor = {"name": "x", "datatype": "FP32", "shape": [1], "data": [1.0]}
    request = {"name": "one", "inputs": [tensor], "outputs": [tensor], **members}
    path = folder / "requests.json"
    path.write_text(json.dumps({"version": 1, "requests": [request]}))
    return path


def test_verification_runs_when_configuration_or_requests_change(
    stack: cdk.Stack, tmp_path: Path
) -> None:
    """The resource refers to both, and its function may call this endpoint and read one object."""
    add_endpoint(stack, tmp_path, verify_responses=requests(tmp_path))

    template = synthesize(stack)

    check = only(template, "Custom::TritonVerification")
    (config,) = resources(template, "AWS::SageMaker::EndpointConfig")
    assert check["EndpointConfigName"] == {"Fn::GetAtt": [config, "EndpointConfigName"]}
    assert check["Variants"] == ["AllTraffic"]
    invoke, read, describe = statement_list(template, "VerificationPolicy")
    assert invoke["Action"] == "sagemaker:InvokeEndpoint"
    assert read["Action"] == "s3:GetObject"
    assert describe["Action"] == "cloudformation:DescribeStacks"


def test_a_target_model_on_a_single_model_endpoint_is_refused(
    stack: cdk.Stack, tmp_path: Path
) -> None:
    """Nothing is added to the stack."""
    recorded = requests(tmp_path, target_model="alpha")
    with pytest.raises(
        InvalidValueError, match=r'must not have a target_model .* got "alpha"; remove it'
    ):
        add_endpoint(stack, tmp_path, verify_responses=recorded)


def test_a_missing_file_is_refused_before_anything_is_added(
    stack: cdk.Stack, tmp_path: Path
) -> None:
    """The error names the file and the command that records one."""
    with pytest.raises(InvalidValueError, match=r"no\.json: .*invoke --record"):
        add_endpoint(stack, tmp_path, verify_responses=tmp_path / "no.json")
    assert stack.node.try_find_child("Endpoint") is None


def test_every_statement_is_one_that_iam_can_apply(stack: cdk.Stack, tmp_path: Path) -> None:
    """Each action exists, supports its resource,
    and has the narrowest resource that it supports.
    """
    endpoint = add_endpoint(stack, tmp_path, verify_responses=requests(tmp_path))
    endpoint.grant_operate(operator(stack))
    assert faults_of(policy_statements(synthesize(stack))) == []
