"""What a service may refuse, and updates beside it that it accepts."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from public_reports import REPORTS, Resources

from cdk_rehearse.updates.data_changes import data_changes
from cdk_rehearse.updates.possible_refusals import possible_refusals
from cdk_rehearse.updates.versions import StackVersion, Version
from constructs_triton_core.cloud_assembly.template import Template


def _version(resources: Resources) -> Version:
    return Version((StackVersion("S", Template({"Resources": resources})),))


def _changed(report: str, change: Callable[[Resources, Resources], object]) -> Any:
    """The resources of a report, before and after, with a change that makes the update right."""
    old, new = map(copy.deepcopy, REPORTS[report])  # both may have the same parts
    change(old, new)
    return _version(old), _version(new)


def _properties(resources: Resources, name: str) -> Resources:
    found: Resources = resources[name]["Properties"]
    return found


def _waits_for_stage(_: Resources, new: Resources) -> None:
    new["Plan"]["DependsOn"] = ["Stage"]


def _has_no_name(old: Resources, new: Resources) -> None:
    for resources in (old, new):
        del _properties(resources, "Service")["ServiceName"]


def _changes_the_function(_: Resources, new: Resources) -> None:
    _properties(new, "F")["Description"] = "another"


def _keeps_the_providers(_: Resources, new: Resources) -> None:
    _properties(new, "Cluster")["CapacityProviders"] = ["FARGATE", "FARGATE_SPOT"]


def _is_a_minor_version(_: Resources, new: Resources) -> None:
    for name in ("Db", "Writer"):
        _properties(new, name)["EngineVersion"] = "13.12"


def _names_the_group(_: Resources, new: Resources) -> None:
    _properties(new, "Db")["DBInstanceParameterGroupName"] = {"Ref": "Group15"}


def _only_adds_subnets(_: Resources, new: Resources) -> None:
    new["Subnet1"] = REPORTS["aws/aws-cdk#15879"][0]["Subnet1"]
    _properties(new, "Group")["SubnetIds"].append({"Ref": "Subnet1"})


def _keeps_one_zone(_: Resources, new: Resources) -> None:
    _properties(new, "Second")["SubnetId"] = {"Ref": "SubnetB"}


def _replaces_the_group_too(_: Resources, new: Resources) -> None:
    new["Other"] = new.pop("Group")
    _properties(new, "Listener")["DefaultActions"][0]["TargetGroupArn"] = {"Ref": "Other"}


def _updates_by_another_call(old: Resources, new: Resources) -> None:
    for resources in (old, new):
        call = json.loads(_properties(resources, "Configuration")["Update"])
        call["action"] = "updateDeploymentConfig"
        _properties(resources, "Configuration")["Update"] = json.dumps(call)


@pytest.mark.parametrize(
    ("report", "change"),
    [
        ("aws/serverless-application-model#1560", _waits_for_stage),
        ("aws/aws-cdk#29826", _has_no_name),
        ("aws/aws-cdk#28252", _changes_the_function),
        ("aws/aws-cdk#15366", _keeps_the_providers),
        ("aws/aws-cdk#21758", _is_a_minor_version),
        ("aws/aws-cdk#26072", _names_the_group),
        ("aws/aws-cdk#15879", _only_adds_subnets),
        ("aws/aws-cdk#25838", _updates_by_another_call),
        ("aws/aws-cdk#10170", _keeps_one_zone),
        ("aws/aws-cdk#847", _replaces_the_group_too),
    ],
)
def test_right_update_has_no_warning(
    report: str, change: Callable[[Resources, Resources], None]
) -> None:
    """The update of a report is a warning, and is none with what makes it right."""
    old, new = REPORTS[report]
    assert len(list(possible_refusals(_version(old), _version(new)))) == 1
    assert list(possible_refusals(*_changed(report, change))) == []


def test_first_deployment_may_not_find_its_stage() -> None:
    """A resource that names a stage by its text may be created before it, without OLD too."""
    _, new = REPORTS["aws/serverless-application-model#1560"]
    (problem,) = possible_refusals(Version(()), _version(new))
    assert (problem.path, problem.stack) == ("Plan", "S")


def _custom(kind: str, **properties: Any) -> Resources:
    return {"Type": f"Custom::{kind}", "Properties": {"ServiceToken": "arn:f", **properties}}


def _calls(table: str) -> Resources:
    parameters = {"TableName": table, "Id": "PHYSICAL:RESOURCEID:"}
    physical = {"physicalResourceId": {"id": table}}
    create = {"service": "DynamoDB", "action": "putItem", **physical}
    delete = {"service": "DynamoDB", "action": "deleteItem", "parameters": parameters}
    return _custom("AWS", Create=json.dumps(create), Delete=json.dumps(delete))


@pytest.mark.parametrize(
    ("old", "new", "deletes"),
    [
        (_calls("a"), _calls("a"), "calls DynamoDB.deleteItem"),
        (_calls("a"), _calls("b"), ""),
        (
            _custom("AWSCDK-EKS-HelmChart", ClusterName="c", Release="shop"),
            _custom("AWSCDK-EKS-HelmChart", ClusterName="c", Release="shop", Version="2"),
            "uninstalls the release shop",
        ),
        (
            _custom("LogRetention", LogGroupName="g", RemovalPolicy="destroy"),
            _custom("LogRetention", LogGroupName="g"),
            "deletes the log group g",
        ),
        (_custom("LogRetention", LogGroupName="g"), _custom("LogRetention", LogGroupName="g"), ""),
        (
            _custom("S3BucketNotifications", BucketName="b"),
            _custom("S3BucketNotifications", BucketName="b"),
            "removes the notifications of the bucket",
        ),
        (
            _custom("AWSCDK-EKS-KubernetesResource", ClusterName="c", Manifest="[]"),
            _custom("AWSCDK-EKS-KubernetesResource", ClusterName="d", Manifest="[]"),
            "",
        ),
        (_custom("Own"), _custom("Own"), ""),
    ],
)
def test_custom_resource_under_another_logical_id(
    old: Resources, new: Resources, deletes: str
) -> None:
    """What the old one deletes last is reported if the new one is about the same thing."""
    changes = data_changes(_version({"A": old}), _version({"B": new})).changes
    assert [(change.kind, change.causes) for change in changes] == (
        [("moved", ("B", deletes))] if deletes else []
    )


def test_resource_that_an_update_adds_has_no_former_properties() -> None:
    """A new stage of an API, which nothing names by its text, is no possible refusal."""
    topic = {"Type": "AWS::SNS::Topic", "Properties": {}}
    stage = {
        "Type": "AWS::ApiGateway::Stage",
        "Properties": {"RestApiId": "a1b2c3", "StageName": "prod"},
    }
    old, new = _version({"Topic": topic}), _version({"Topic": topic, "Stage": stage})
    assert list(possible_refusals(old, new)) == []


_TOPIC: Resources = {"Type": "AWS::SNS::Topic", "Properties": {}}


def _named(value: Any) -> Resources:
    return {"Type": "AWS::SNS::Topic", "Properties": {"DisplayName": value}}


@pytest.mark.parametrize(
    ("value", "warned"),
    [
        ({"Fn::GetAtt": ["Topic", "Label"]}, True),
        ({"Fn::Sub": "a ${Topic.Label}"}, True),
        ({"Fn::Sub": ["a ${Topic.Label}", {"Topic.Label": "b"}]}, False),
        ({"Fn::GetAtt": ["Topic", "TopicName"]}, False),
        ({"Fn::GetAtt": ["Topic", "DeliveryStatusLogging.Label"]}, False),
        ({"Fn::GetAtt": "Custom.Label"}, False),
    ],
)
def test_attribute_that_no_schema_has_is_a_warning(value: Any, warned: bool) -> None:
    """A schema may be older than an attribute; what the deployed version asks for exists."""
    resources = {"Topic": _TOPIC, "Custom": _custom("Own"), "Other": _named(value)}
    old, new = _version({"Topic": _TOPIC}), _version(resources)
    assert [problem.path for problem in possible_refusals(old, new)] == ["Topic"] * warned
    assert list(possible_refusals(new, new)) == []


@pytest.mark.parametrize(
    ("model", "warned"),
    [
        ({"PrimaryContainer": {"ModelDataUrl": "s3://a/b.tar.gz"}}, True),
        ({"Containers": [{"Image": "a"}]}, True),
        ({"Containers": [{"Image": "a"}], "ExecutionRoleArn": "arn:r"}, False),
        ({"PrimaryContainer": {"ModelPackageName": "arn:p"}}, False),
    ],
)
def test_model_without_a_role_is_a_warning(model: Resources, warned: bool) -> None:
    """CreateModel does not require the role, which reads the files and pulls the image."""
    new = _version({"M": {"Type": "AWS::SageMaker::Model", "Properties": model}})
    assert [problem.path for problem in possible_refusals(Version(()), new)] == ["M"] * warned
    assert list(possible_refusals(new, new)) == []
