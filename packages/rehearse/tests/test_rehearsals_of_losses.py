"""Rehearsals report what an update takes from roles, endpoints and stacks that stay."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from shared_endpoint import Resources, policy, trust
from small_assembly import codes, endpoint, rehearsal, write_assembly

from cdk_rehearse import rehearse
from constructs_triton_core.findings import Severity

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("loopback_stack")]
ROOT = Path(__file__).parents[3]
ALARM = {
    "AlarmName": "errors",
    "ComparisonOperator": "GreaterThanThreshold",
    "EvaluationPeriods": 1,
    "Namespace": "AWS/SageMaker",
    "MetricName": "Invocation5XXErrors",
    "Period": 60,
    "Statistic": "Sum",
    "Threshold": 1,
}


def _document(*actions: str) -> dict[str, Any]:
    document: dict[str, Any] = policy(*((action, "*") for action in actions))["Properties"][
        "PolicyDocument"
    ]
    return document


def watched(*actions: str) -> Resources:
    """An endpoint with a rollback alarm, whose role may do this beside reading its model."""
    resources = endpoint()
    resources["Alarm"] = {"Type": "AWS::CloudWatch::Alarm", "Properties": ALARM}
    routing = {"Type": "ALL_AT_ONCE", "WaitIntervalInSeconds": 60}
    resources["Endpoint"]["Properties"]["DeploymentConfig"] = {
        "BlueGreenUpdatePolicy": {"TrafficRoutingConfiguration": routing},
        "AutoRollbackConfiguration": {"Alarms": [{"AlarmName": "errors"}]},
    }
    resources["Endpoint"]["DependsOn"] = [
        *resources["Endpoint"].get("DependsOn", ()),
        "Alarm",
        "Beside",
    ]
    named = {"PolicyName": "beside", "Roles": [{"Ref": "Role"}]}
    document = _document(*actions, "sagemaker:ListTags")
    resources["Beside"] = {
        "Type": "AWS::IAM::Policy",
        "Properties": {**named, "PolicyDocument": document},
    }
    return resources


def test_role_must_stay_able_to_describe_the_rollback_alarms(tmp_path: Path) -> None:
    """The endpoint itself does not change, but its next update could not start."""
    old = watched("cloudwatch:DescribeAlarms")
    new = watched()

    (problem,) = rehearsal(tmp_path, old, new).problems

    assert problem.code == "rehearse-data-loses-access"
    assert "may not read rollback alarms: cloudwatch:DescribeAlarms" in problem.message
    assert rehearsal(tmp_path, old, old).problems == ()


@pytest.mark.parametrize("reads_before", [True, False])
def test_reader_that_may_read_no_more_is_a_warning(tmp_path: Path, reads_before: bool) -> None:
    """Another role may be meant to lose what the endpoint writes; only the user knows."""

    def captured(reads: bool) -> Resources:
        resources = endpoint()
        allowed = _document("s3:GetObject" if reads else "s3:ListBucket")
        resources["Out"] = {"Type": "AWS::S3::Bucket"}
        resources["Reader"] = {
            "Type": "AWS::IAM::Role",
            "Properties": {
                "AssumeRolePolicyDocument": trust("lambda"),
                "Policies": [{"PolicyName": "reads", "PolicyDocument": allowed}],
            },
        }
        resources["Config"]["Properties"]["DataCaptureConfig"] = {
            "InitialSamplingPercentage": 1,
            "DestinationS3Uri": {"Fn::Join": ["", ["s3://", {"Ref": "Out"}, "/captured"]]},
            "CaptureOptions": [{"CaptureMode": "Input"}],
        }
        return resources

    severities = []
    for problem in rehearsal(tmp_path, captured(reads_before), captured(False)).problems:
        if "role Reader may not read captured data" in problem.message:
            severities.append(problem.severity)

    assert severities == ([Severity.WARNING] if reads_before else [])


@pytest.mark.parametrize("is_kept", [True, False])
def test_image_repository_must_stay_and_allow_the_role(tmp_path: Path, is_kept: bool) -> None:
    """An instance pulls its image when it starts, so its repository and the policy of it count."""
    old = endpoint()
    container = old["Model"]["Properties"]["PrimaryContainer"]
    container["Image"] = "123456789012.dkr.ecr.us-east-1.amazonaws.com/acme:1"
    old["Images"] = {"Type": "AWS::ECR::Repository", "Properties": {"RepositoryName": "acme"}}
    new = copy.deepcopy(old)
    denied = {"Effect": "Deny", "Principal": "*", "Action": "ecr:BatchGetImage"}
    new["Images"]["Properties"]["RepositoryPolicyText"] = {
        "Version": "2012-10-17",
        "Statement": [denied],
    }
    if not is_kept:
        del new["Images"]

    found = rehearsal(tmp_path, old, new)

    assert "rehearse-reader-loses-access" in codes(found)


def test_variants_have_different_names(tmp_path: Path) -> None:
    """No document says so, so the refusal is a warning."""
    new = endpoint()
    new["Config"]["Properties"]["ProductionVariants"] *= 2

    (problem,) = rehearsal(tmp_path, endpoint(), new).problems

    assert problem.code == "rehearse-update-fails"
    assert problem.severity is Severity.WARNING


def test_changed_scaling_policy_keeps_its_arn(tmp_path: Path) -> None:
    """An update in place is no replacement, so that the cleanup deletes nothing."""
    old = {**endpoint(scaled_to=4), "Scaling": _target_tracking(60)}
    new = {**endpoint(scaled_to=4), "Scaling": _target_tracking(90)}
    assert rehearsal(tmp_path, old, new).problems == ()

    new["Target"]["Properties"]["MinCapacity"] = 9
    assert codes(rehearsal(tmp_path, old, new)) == {"rehearse-update-fails"}


def _target_tracking(seconds: int) -> dict[str, Any]:
    metric = {"PredefinedMetricType": "SageMakerVariantInvocationsPerInstance"}
    tracking = {
        "TargetValue": 10,
        "PredefinedMetricSpecification": metric,
        "ScaleInCooldown": seconds,
    }
    properties = {
        "PolicyName": "tracking",
        "PolicyType": "TargetTrackingScaling",
        "ScalingTargetId": {"Ref": "Target"},
        "TargetTrackingScalingPolicyConfiguration": tracking,
    }
    return {"Type": "AWS::ApplicationAutoScaling::ScalingPolicy", "Properties": properties}


def test_library_in_the_current_folder_is_known(tmp_path: Path) -> None:
    """The processes of a script that imports only this package find a library
    that is developed here.
    """
    folder = write_assembly(tmp_path / "app", {"Topic": {"Type": "AWS::SNS::Topic"}})
    script = tmp_path / "script.py"
    script.write_text(
        "from cdk_rehearse import rehearse\n"
        "from constructs_triton_core.processes.children import import_path\n"
        f"rehearse(None, {str(folder)!r}, failures='none', orders=1)\n"
        f"print({str(ROOT)!r} in import_path())\n"
    )
    done = subprocess.run(
        [sys.executable, script], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.stdout == "True\n", done.stderr


def test_templates_alone_are_selected_by_either_name(tmp_path: Path) -> None:
    """``--stack`` may name the stack as OLD does or as NEW does."""
    for name in ("shop", "new"):
        resources = {"Topic": {"Type": "AWS::SNS::Topic"}}
        (tmp_path / f"{name}.json").write_text(json.dumps({"Resources": resources}))
    for name in ("shop", "new"):
        found = rehearse(
            tmp_path / "shop.json", tmp_path / "new.json", stacks=[name], failures="none", orders=1
        )
        assert list(found.status.values()) == ["UPDATE_COMPLETE"]


@pytest.mark.parametrize("role_stays", [True, False])
def test_caller_loses_nothing_that_is_deleted_with_it(tmp_path: Path, role_stays: bool) -> None:
    """A caller whose policy is deleted before its endpoint, or before itself, needs no permission.

    The hint, to allow the action, could not be followed.
    """
    bucket = {"Ref": "Out"}
    allowed = {"PolicyName": "calls", "PolicyDocument": _document("s3:GetObject", "s3:PutObject")}
    caller = {"AssumeRolePolicyDocument": trust("lambda")}
    resources = {
        **endpoint(),
        "Out": {"Type": "AWS::S3::Bucket"},
        "Caller": {"Type": "AWS::IAM::Role", "Properties": caller},
        "Calls": {
            "Type": "AWS::IAM::Policy",
            "Properties": {**allowed, "Roles": [{"Ref": "Caller"}]},
            # The policy names the endpoint, so it is deleted first.
            "DependsOn": "Endpoint",
        },
    }
    output = {"S3OutputPath": {"Fn::Join": ["", ["s3://", bucket, "/answers"]]}}
    resources["Config"]["Properties"]["AsyncInferenceConfig"] = {"OutputConfig": output}
    kept = {"Out": resources["Out"]}
    if role_stays:
        kept["Caller"] = resources["Caller"]

    found = rehearsal(tmp_path, resources, kept)

    assert not any("role Caller" in problem.message for problem in found.problems)
