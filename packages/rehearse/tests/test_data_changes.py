"""What an update does to data, from two templates alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cdk_rehearse import rehearse
from cdk_rehearse.services.resource_schemas import resource_schema
from cdk_rehearse.updates.data_changes import data_changes
from cdk_rehearse.updates.data_types import data_types
from cdk_rehearse.updates.lost_data import lost_data_problems
from cdk_rehearse.updates.versions import NONE, StackVersion, Version
from constructs_triton_core.cloud_assembly.template import Template
from constructs_triton_core.errors import TemplateError

Resources = dict[str, Any]


def _resource(type: str, policy: str | None = "Delete", **properties: Any) -> Resources:
    policies = {} if policy is None else dict.fromkeys(POLICIES, policy)
    return {"Type": type, "Properties": properties, **policies}


POLICIES = ("DeletionPolicy", "UpdateReplacePolicy")
KEY = [{"AttributeName": "id", "KeyType": "HASH"}]
TABLE = _resource("AWS::DynamoDB::Table", KeySchema=KEY)
VPC = {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.0.0.0/16"}}
OTHER_VPC = {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.1.0.0/16"}}


def _version(resources: Resources, **stacks: Resources) -> Version:
    every = {"S": resources, **stacks}
    return Version(
        tuple(StackVersion(name, Template({"Resources": each})) for name, each in every.items())
    )


def _database(policy: str | None = "Delete", **properties: Any) -> Resources:
    return _resource("AWS::RDS::DBInstance", policy, **{"Engine": "mysql", **properties})


def _cache(**properties: Any) -> Resources:
    return _resource("AWS::ElastiCache::ReplicationGroup", **properties)


def _subnet_group(subnet: Any) -> Resources:
    properties = {"DBSubnetGroupDescription": "d", "SubnetIds": [subnet]}
    return {"Type": "AWS::RDS::DBSubnetGroup", "Properties": properties}


def _calls(name: str, delete: bool = True) -> Resources:
    physical_id = {"physicalResourceId": {"id": name}}
    calls = {"Create": {"service": "S3", "action": "putObject", **physical_id}}
    calls["Update"] = calls["Create"]
    if delete:
        calls["Delete"] = {"service": "S3", "action": "deleteObject"}
    texts = {request: json.dumps(call) for request, call in calls.items()}
    return {"Type": "Custom::AWS", "Properties": {"ServiceToken": "arn:f", **texts}}


def _deployment(prefix: str, retains: str = "false") -> Resources:
    return _resource(
        "Custom::CDKBucketDeployment",
        RetainOnDelete=retains,
        DestinationBucketName={"Ref": "B"},
        DestinationBucketKeyPrefix=prefix,
    )


CASES: dict[str, tuple[Resources, Resources, tuple[str, ...]]] = {
    "replaced": (
        {"T": TABLE},
        {"T": _resource("AWS::DynamoDB::Table", KeySchema=[*KEY, *KEY])},
        ("T", "replaced", "lost"),
    ),
    "another engine": (
        {"D": _database()},
        {"D": _database(Engine="postgres")},
        ("D", "replaced", "lost"),
    ),
    "conditionally replaced": (
        {"C": _cache(AuthToken="one")},
        {"C": _cache()},
        ("C", "may be replaced", "lost"),
    ),
    "replaced by a replacement": (
        {
            "Vpc": VPC,
            "F": _resource("AWS::RDS::DBInstance", DBSubnetGroupName={"Ref": "G"}),
            "G": {"Type": "AWS::RDS::DBSubnetGroup", "Properties": {"DBSubnetGroupName": "a"}},
        },
        {
            "Vpc": VPC,
            "F": _resource("AWS::RDS::DBInstance", DBSubnetGroupName={"Ref": "G"}),
            "G": {"Type": "AWS::RDS::DBSubnetGroup", "Properties": {"DBSubnetGroupName": "b"}},
        },
        ("F", "replaced", "lost"),
    ),
    "value that may be the same": (
        {
            "K": _resource("AWS::KMS::Key", "Retain"),
            "D": _database(KmsKeyId={"Fn::GetAtt": ["K", "Arn"]}),
        },
        {"K": _resource("AWS::KMS::Key", "Retain"), "D": _database(KmsKeyId="arn:aws:kms:key/1")},
        ("D", "may be replaced", "lost"),
    ),
    "database without a policy": (
        {"D": _database(None), "Vpc": VPC},
        {"Vpc": VPC},
        ("D", "removed", "snapshot"),
    ),
    "renamed and retained": (
        {"T": _resource("AWS::DynamoDB::Table", "Retain", KeySchema=KEY)},
        {"U": _resource("AWS::DynamoDB::Table", "Retain", KeySchema=KEY)},
        ("T", "removed", "kept"),
    ),
    "protected": (
        {"T": _resource("AWS::DynamoDB::Table", DeletionProtectionEnabled=True, KeySchema=KEY)},
        {"T": _resource("AWS::DynamoDB::Table", DeletionProtectionEnabled=True, KeySchema=[])},
        ("T", "replaced", "kept"),
    ),
    "bucket": (
        {"B": _resource("AWS::S3::Bucket"), "Vpc": VPC},
        {"Vpc": VPC},
        ("B", "removed", "kept if not empty"),
    ),
    "bucket that the CDK empties": (
        {
            "B": _resource("AWS::S3::Bucket"),
            "E": _resource("Custom::S3AutoDeleteObjects", BucketName={"Ref": "B"}),
        },
        {"Vpc": VPC},
        ("B", "removed", "lost"),
    ),
    "bucket that stays and is emptied": (
        {
            "B": _resource("AWS::S3::Bucket"),
            "E": _resource("Custom::S3AutoDeleteObjects", BucketName={"Ref": "B"}),
        },
        {"B": _resource("AWS::S3::Bucket", "Retain")},
        ("B", "emptied", "lost"),
    ),
    "destination of a deployment": (
        {"B": _resource("AWS::S3::Bucket"), "P": _deployment("a")},
        {"B": _resource("AWS::S3::Bucket"), "P": _deployment("b")},
        ("P", "may be emptied", "lost"),
    ),
    "image repository": (
        {"R": _resource("AWS::ECR::Repository", EmptyOnDelete=True)},
        {"Vpc": VPC},
        ("R", "removed", "lost"),
    ),
    "policy of a function": (
        {"T": {**TABLE, "DeletionPolicy": {"Ref": "Policy"}}, "Vpc": VPC},
        {"Vpc": VPC},
        ("T", "removed", "unknown"),
    ),
    "unprotected": (
        {"T": _resource("AWS::DynamoDB::Table", "Retain", KeySchema=KEY)},
        {"T": TABLE},
        ("T", "unprotected", "lost"),
    ),
    "shorter retention": (
        {"L": _resource("AWS::Logs::LogGroup")},
        {"L": _resource("AWS::Logs::LogGroup", RetentionInDays=7)},
        ("L", "expires", "lost"),
    ),
    "physical ID": ({"C": _calls("a")}, {"C": _calls("b")}, ("C", "new id", "lost")),
}


@pytest.mark.parametrize("case", CASES)
def test_change_of_data_is_found(case: str) -> None:
    """The change names the resource, what happens to it, and what becomes of its data."""
    old, new, expected = CASES[case]
    (found,) = data_changes(_version(old), _version(new)).changes
    assert (found.logical_id, found.kind, found.fate) == expected


EMPTIES = [{"Key": "aws-cdk:auto-delete-objects", "Value": "true"}]
HARMLESS: dict[str, tuple[Resources, Resources]] = {
    "auto_delete_objects with a tag turned off": (
        {
            "B": _resource("AWS::S3::Bucket", Tags=EMPTIES),
            "E": _resource("Custom::S3AutoDeleteObjects", BucketName={"Ref": "B"}),
        },
        {"B": _resource("AWS::S3::Bucket", "Retain")},
    ),
    "a tag": ({"T": TABLE}, {"T": {**TABLE, "Properties": {"KeySchema": KEY, "Tags": []}}}),
    "retained without a successor": (
        {"T": _resource("AWS::DynamoDB::Table", "Retain", KeySchema=KEY), "Vpc": VPC},
        {"Vpc": VPC},
    ),
    "a name that CloudFormation refuses to replace": (
        {"T": _resource("AWS::DynamoDB::Table", TableName="t", KeySchema=KEY)},
        {"T": _resource("AWS::DynamoDB::Table", TableName="t", KeySchema=[])},
    ),
    "an instance of a cluster, which holds the data": (
        {"D": _database(None, DBClusterIdentifier="c"), "Vpc": VPC},
        {"Vpc": VPC},
    ),
    "properties that RDS changes in place": (
        {"D": _database(MultiAZ=False, BackupRetentionPeriod=1, AvailabilityZone="us-east-1a")},
        {"D": _database(MultiAZ=True, BackupRetentionPeriod=7)},
    ),
    "a name that CloudFormation refuses to replace, where it may do so": (
        {
            "C": _resource(
                "AWS::ElastiCache::ReplicationGroup", ReplicationGroupId="c", AuthToken="a"
            )
        },
        {"C": _resource("AWS::ElastiCache::ReplicationGroup", ReplicationGroupId="c")},
    ),
    "a read replica, whose data is that of its source": (
        {"D": _database(SourceDBInstanceIdentifier="shop"), "Vpc": VPC},
        {"Vpc": VPC},
    ),
    "a longer retention": (
        {"L": _resource("AWS::Logs::LogGroup", RetentionInDays=7)},
        {"L": _resource("AWS::Logs::LogGroup", RetentionInDays=30)},
    ),
    "a physical ID without a call at its deletion": (
        {"C": _calls("a", delete=False)},
        {"C": _calls("b", delete=False)},
    ),
    "a deployment that keeps its objects": (
        {"B": _resource("AWS::S3::Bucket"), "P": _deployment("a", "true")},
        {"B": _resource("AWS::S3::Bucket"), "P": _deployment("b", "true")},
    ),
    "the same value in another form": (
        {"D": _database(DBName="shop")},
        {"D": _database(DBName={"Fn::Join": ["", ["sh", "op"]]})},
    ),
}


@pytest.mark.parametrize("case", HARMLESS)
def test_change_that_keeps_data_is_silent(case: str) -> None:
    """Nothing is reported where no data is deleted, moved or exposed."""
    old, new = HARMLESS[case]
    assert data_changes(_version(old), _version(new)).changes == ()


def test_condition_and_parameter_decide() -> None:
    """A resource whose condition becomes false is removed, by the values of the parameters."""
    body = {
        "Parameters": {"Stage": {"Type": "String"}},
        "Conditions": {"IsProd": {"Fn::Equals": [{"Ref": "Stage"}, "prod"]}},
        "Resources": {"T": {**TABLE, "Condition": "IsProd"}, "Vpc": VPC},
    }
    before, after = (
        Version((StackVersion("S", Template(body), parameters={"Stage": stage}),))
        for stage in ("prod", "dev")
    )
    (found,) = data_changes(before, after).changes
    assert (found.kind, found.fate) == ("removed", "lost")
    assert data_changes(after, before).changes == ()


def test_transform_may_add_what_is_missing() -> None:
    """Of a deployed SAM app, OLD has queues that only the transform of NEW adds again."""
    queue = {"Queue": _queue(), "Vpc": VPC}
    sam = {"Transform": "AWS::Serverless-2016-10-31", "Resources": {"Vpc": VPC}}
    changes = data_changes(_version(queue), Version((StackVersion("S", Template(sam)),)))
    assert [change.kind for change in changes.changes] == ["may be removed"]
    (problem,) = lost_data_problems(changes)
    assert problem.code == "rehearse-data-may-be-lost"


def test_loop_of_unknown_size_may_add_what_is_missing() -> None:
    """A template with a part that only a deployment knows may still have what it does not show."""
    template = Template({"Resources": {"Vpc": VPC}}, unknown_parts=("Fn::ForEach::Queues",))
    changes = data_changes(_version({"Queue": _queue()}), Version((StackVersion("S", template),)))
    assert [change.kind for change in changes.changes] == ["may be removed"]


def test_stack_that_is_gone_is_deleted() -> None:
    """Each stack is compared by its name, also where logical IDs are the same."""
    found = data_changes(_version({"T": TABLE}, B={"T": TABLE}), _version({"T": TABLE})).changes
    assert [(each.stack, each.logical_id, each.kind) for each in found] == [("B", "T", "removed")]
    assert len(data_changes(_version({"T": TABLE}, B={"T": TABLE}), NONE).changes) == 2


def test_resource_without_data_may_be_replaced() -> None:
    """What the schema calls conditional is named, although no data depends on it."""
    service = {"Type": "AWS::ECS::Service", "Properties": {"LaunchType": "EC2"}}
    other = {"Type": "AWS::ECS::Service", "Properties": {"LaunchType": "FARGATE"}}
    found = data_changes(_version({"A": service}), _version({"A": other}))
    assert found.may_be_replaced == (("S", "A", ("LaunchType",)),)


def test_types_with_data_exist() -> None:
    """Each type that holds data has a resource schema."""
    assert all(resource_schema(kind).body for kind in data_types())
    assert {"AWS::ECR::Repository", "AWS::DynamoDB::Table"} <= data_types()


def _written(folder: Path, name: str, resources: Resources) -> str:
    path = folder / f"{name}.json"
    path.write_text(json.dumps({"Resources": resources}))
    return str(path)


def _queue(**properties: Any) -> Resources:
    return _resource("AWS::SQS::Queue", **properties)


def test_nested_stack_is_compared_too(tmp_path: Path) -> None:
    """Its resources are compared, and a nested stack that is retained keeps its data."""
    body = {"Resources": {"T": TABLE}}
    (tmp_path / "nested.json").write_text(json.dumps(body))
    (tmp_path / "manifest.json").write_text("{}")
    child = {
        "Type": "AWS::CloudFormation::Stack",
        "Properties": {"TemplateURL": "https://b.s3.amazonaws.com/nested.json"},
        "Metadata": {"aws:asset:path": "nested.json"},
    }

    def version(resources: Resources) -> Version:
        template = Template({"Resources": {"Vpc": VPC, **resources}})
        return Version((StackVersion("S", template, tmp_path),))

    (found,) = data_changes(version({"N": child}), version({})).changes
    assert (found.stack, found.logical_id, found.kind) == ("S/N", "T", "removed")
    retained = version({"N": {**child, "DeletionPolicy": "Retain"}})
    assert data_changes(retained, version({})).changes == ()


@pytest.mark.e2e
def test_two_rehearsals_are_equal(tmp_path: Path) -> None:
    """IDs that a service generates, such as those in a reason, are the same in each run."""
    subnet = {"VpcId": {"Ref": "Vpc"}, "CidrBlock": "10.1.0.0/16"}
    new = {"Vpc": VPC, "Subnet": {"Type": "AWS::EC2::Subnet", "Properties": subnet}}
    path = _written(tmp_path, "new", new)
    first, second = (rehearse(None, path, failures="none", orders=1) for _ in range(2))
    assert first.errors
    assert first == second


@pytest.mark.e2e
def test_refusal_does_not_hide_lost_data(tmp_path: Path) -> None:
    """The table comes first, although the update is refused at the queue before it."""
    table: dict[str, Any] = {
        "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
        "BillingMode": "PAY_PER_REQUEST",
    }
    old = {
        "Work": _queue(QueueName="work"),
        "Orders": _resource("AWS::DynamoDB::Table", KeySchema=KEY, **table),
    }
    days = {"AttributeDefinitions": [{"AttributeName": "day", "AttributeType": "S"}]}
    by_day = [{"AttributeName": "day", "KeyType": "HASH"}]
    new = {
        "Jobs": _queue(QueueName="work"),
        "Orders": {
            **_resource("AWS::DynamoDB::Table", KeySchema=by_day, **{**table, **days}),
            "DependsOn": ["Jobs"],
        },
    }
    versions = _written(tmp_path, "old", old), _written(tmp_path, "new", new)
    found = rehearse(*versions, failures="none", orders=1)
    assert [(problem.code, problem.path) for problem in found.errors] == [
        ("rehearse-data-lost", "Work"),
        ("rehearse-data-lost", "Orders"),
        ("rehearse-name-collision", "Jobs"),
    ]

    known = ["rehearse-data-lost@Orders", "rehearse-data-lost@Work", "rehearse-name-collision@Jobs"]
    found = rehearse(*versions, failures="none", orders=1, acknowledge=known)
    assert found.errors == []
    assert len(found.acknowledged) == 3
    assert found.unused_acknowledgements == ()


@pytest.mark.e2e
def test_old_version_that_cannot_be_deployed_does_not_hide_lost_data(tmp_path: Path) -> None:
    """What the two versions alone show is in the error."""
    old = {"Jobs": _queue(), "Topic": {"Type": "AWS::SNS::Topic", "Properties": {"No": 1}}}
    new = {"Topic": {"Type": "AWS::SNS::Topic", "Properties": {}}}
    versions = _written(tmp_path, "old", old), _written(tmp_path, "new", new)
    with pytest.raises(TemplateError, match="OLD cannot be deployed") as error:
        rehearse(*versions, failures="none", orders=1)
    assert "Jobs: error[rehearse-data-lost]: this AWS::SQS::Queue is removed" in str(error.value)
