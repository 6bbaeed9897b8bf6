"""What CloudFormation checks for every type: identifiers, types of logical IDs,
quotas and exports.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from shared_endpoint import deploy, trust

from cdk_rehearse import SimulatedAccount
from cdk_rehearse.errors import ApiError
from cdk_rehearse.providers.provider import Provider
from cdk_rehearse.services.resource_schemas import resource_schema
from cdk_rehearse.stacks.rules import _IDENTIFYING, refusals
from constructs_triton_core.cloud_assembly.template import Template

TARGET = {
    "ResourceId": "table/orders",
    "ScalableDimension": "dynamodb:table:ReadCapacityUnits",
    "ServiceNamespace": "dynamodb",
    "MinCapacity": 1,
    "MaxCapacity": 2,
    "RoleARN": "arn:aws:iam::123456789012:role/scaling",
}
STATEMENT = {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::acme-models/*"}
DOCUMENT = {"Version": "2012-10-17", "Statement": [STATEMENT]}
ROLE = "arn:aws:iam::123456789012:role/any"
ALARM = {
    "ComparisonOperator": "GreaterThanThreshold",
    "EvaluationPeriods": 1,
    "Threshold": 1,
    "Period": 60,
}
FIXED = {"Type": "fixed-response", "FixedResponseConfig": {"StatusCode": "404"}}
NAMED: dict[str, dict[str, Any]] = {
    "AWS::S3::Bucket": {"BucketName": "acme-models"},
    "AWS::S3::BucketPolicy": {
        "Bucket": "acme-models",
        "PolicyDocument": {"Version": "2012-10-17", "Statement": [{**STATEMENT, "Principal": "*"}]},
    },
    "AWS::SNS::Topic": {"TopicName": "acme"},
    "AWS::CloudWatch::Dashboard": {"DashboardName": "acme", "DashboardBody": "{}"},
    "AWS::CloudWatch::Alarm": {
        "AlarmName": "acme",
        "Namespace": "A",
        "MetricName": "B",
        "Statistic": "Sum",
        **ALARM,
    },
    "AWS::Logs::LogGroup": {"LogGroupName": "acme"},
    "AWS::IAM::Role": {"RoleName": "acme", "AssumeRolePolicyDocument": trust("sagemaker")},
    "AWS::IAM::ManagedPolicy": {"ManagedPolicyName": "acme", "PolicyDocument": DOCUMENT},
    "AWS::IAM::ServiceLinkedRole": {"AWSServiceName": "es.amazonaws.com"},
    "AWS::SSM::Parameter": {"Name": "/acme", "Type": "String", "Value": "a"},
    "AWS::ECR::Repository": {"RepositoryName": "acme"},
    "AWS::DynamoDB::Table": {
        "TableName": "acme",
        "KeySchema": [{"AttributeName": "a", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "a", "AttributeType": "S"}],
    },
    "AWS::SQS::Queue": {"QueueName": "acme"},
    "AWS::Events::Rule": {"Name": "acme", "ScheduleExpression": "rate(1 day)"},
    "AWS::SecretsManager::Secret": {"Name": "acme"},
    "AWS::ECS::Cluster": {"ClusterName": "acme"},
    "AWS::ECS::Service": {"ServiceName": "acme", "Cluster": "acme"},
    "AWS::Cognito::UserPoolDomain": {"UserPoolId": "us-east-1_a", "Domain": "acme"},
    "AWS::ElasticLoadBalancingV2::LoadBalancer": {"Name": "acme", "Subnets": ["subnet-a"]},
    "AWS::ElasticLoadBalancingV2::TargetGroup": {"Name": "acme"},
    "AWS::Lambda::Function": {"FunctionName": "acme", "Role": ROLE, "Code": {"ZipFile": "a"}},
    "AWS::KMS::Alias": {"AliasName": "alias/acme", "TargetKeyId": "a"},
    "AWS::StepFunctions::StateMachine": {
        "StateMachineName": "acme",
        "RoleArn": ROLE,
        "Definition": {"StartAt": "A"},
    },
    "AWS::Scheduler::Schedule": {
        "Name": "acme",
        "ScheduleExpression": "rate(1 day)",
        "FlexibleTimeWindow": {"Mode": "OFF"},
        "Target": {"Arn": "arn:aws:sqs:us-east-1:123456789012:acme", "RoleArn": ROLE},
    },
    "AWS::IAM::RolePolicy": {
        "PolicyName": "acme",
        "RoleName": "outside",
        "PolicyDocument": {
            "Version": "2012-10-17",
            "Statement": {"Effect": "Allow", "Action": "s3:ListAllMyBuckets", "Resource": "*"},
        },
    },
    "AWS::ApplicationAutoScaling::ScalableTarget": TARGET,
    "AWS::ApiGateway::Resource": {"PathPart": "{id}", "ParentId": "a", "RestApiId": "b"},
    "AWS::ApiGatewayV2::Route": {"RouteKey": "GET /orders", "ApiId": "a"},
    "AWS::ElasticLoadBalancingV2::Listener": {
        "Port": 80,
        "LoadBalancerArn": "a",
        "DefaultActions": [FIXED],
    },
    "AWS::ElasticLoadBalancingV2::ListenerRule": {
        "Priority": 1,
        "ListenerArn": "a",
        "Actions": [FIXED],
        "Conditions": [{"Field": "path-pattern", "Values": ["/orders"]}],
    },
    "AWS::Lambda::EventSourceMapping": {
        "EventSourceArn": "arn:aws:sqs:us-east-1:123456789012:acme",
        "FunctionName": "acme",
    },
}


@pytest.fixture(scope="module")
def plain() -> Iterator[SimulatedAccount]:
    with SimulatedAccount() as account:
        account.api.assumes_existing = True
        yield account


def _one(type: str, **properties: Any) -> dict[str, Any]:
    return {"Type": type, "Properties": {**NAMED.get(type, {}), **properties}}


def _deploy(account: SimulatedAccount, name: str, body: dict[str, Any]) -> Any:
    stack = account.stacks.find(name) or account.stacks.add(name)
    account.deployer.deploy(stack, Template(body), {})
    return stack


@pytest.mark.parametrize("type", NAMED)
def test_a_name_that_moves_to_another_logical_id_collides(
    plain: SimulatedAccount, type: str
) -> None:
    """The new resource is refused while the old one exists,
    and not after the deletion of the stack.
    """
    name = f"Moved{type.replace(':', '')}"
    bucket = {"Bucket": _one("AWS::S3::Bucket")} if type == "AWS::S3::BucketPolicy" else {}
    if type == "AWS::KMS::Alias":
        NAMED[type]["TargetKeyId"] = plain.client("kms").create_key()["KeyMetadata"]["KeyId"]
    stack = deploy(plain, {**bucket, "A": _one(type)}, name)
    assert stack.status == "CREATE_COMPLETE", stack.reason
    deploy(plain, {**bucket, "B": _one(type)}, name)
    assert stack.status == "UPDATE_ROLLBACK_COMPLETE"
    assert f"already exists in stack {stack.id}" in stack.reason
    assert [*stack.resources] == [*bucket, "A"]
    other = deploy(plain, {"B": _one(type)}, f"Other{name}")
    assert other.status == "ROLLBACK_COMPLETE"
    plain.deployer.delete(other)
    plain.deployer.delete(stack)
    again = deploy(plain, {**bucket, "B": _one(type)}, name)
    assert again.status == "CREATE_COMPLETE", again.reason
    plain.deployer.delete(again)


def test_each_simulated_type_with_a_name_is_in_the_list() -> None:
    """The list above has all types with a provider whose template can give the name,
    SageMaker's apart.
    """
    others = {
        "AWS::ApplicationAutoScaling::ScalingPolicy",
        "AWS::EC2::SecurityGroup",
        "AWS::EC2::Subnet",
    }
    named = {
        kind
        for kind in Provider.by_type
        if kind.startswith("AWS::") and resource_schema(kind).identifying[0]
    }
    missing = {each for each in named - NAMED.keys() - others if "SageMaker" not in each}
    assert missing == set()


def test_the_facts_name_types_and_properties_that_exist() -> None:
    """A type without a schema, or a misspelled property, would never be compared."""
    for kind, names in _IDENTIFYING.items():
        first = {name.partition(".")[0] for name in names}
        assert first <= resource_schema(kind).body["properties"].keys(), kind


NESTED_OR_WITHOUT_NAME: dict[str, dict[str, Any]] = {
    "AWS::AppSync::Resolver": {"FieldName": "me", "TypeName": "Query", "ApiId": "a"},
    "AWS::ApiGateway::UsagePlanKey": {"KeyId": "a", "UsagePlanId": "b", "KeyType": "API_KEY"},
    "AWS::CloudFront::OriginAccessControl": {
        "OriginAccessControlConfig": {
            "Name": "acme",
            "OriginAccessControlOriginType": "s3",
            "SigningBehavior": "always",
            "SigningProtocol": "sigv4",
        }
    },
    "AWS::EFS::MountTarget": {
        "FileSystemId": "fs-0123456789abcdef0",
        "SubnetId": "subnet-0123456789abcdef0",
        "SecurityGroups": ["sg-0123456789abcdef0"],
    },
    "AWS::Lambda::Url": {"TargetFunctionArn": "acme", "AuthType": "NONE"},
}


@pytest.mark.parametrize("type", NESTED_OR_WITHOUT_NAME)
def test_what_exists_once_collides_under_another_logical_id(
    plain: SimulatedAccount, type: str
) -> None:
    """A resource that its service has once within another one is refused beside the old one."""
    declared = {"Type": type, "Properties": NESTED_OR_WITHOUT_NAME[type]}
    name = f"Once{type.replace(':', '')}"
    stack = deploy(plain, {"A": declared}, name)
    assert stack.status == "CREATE_COMPLETE", stack.reason
    deploy(plain, {"B": declared}, name)
    assert f"already exists in stack {stack.id}" in stack.reason


def test_a_path_has_one_variable_part(plain: SimulatedAccount) -> None:
    """A variable under another name is refused beside the old one, and a fixed part is not."""
    stack = deploy(plain, {"A": _one("AWS::ApiGateway::Resource", ParentId="r")}, "Paths")
    deploy(plain, {"B": _one("AWS::ApiGateway::Resource", ParentId="r", PathPart="{n}")}, "Paths")
    assert stack.status == "UPDATE_ROLLBACK_COMPLETE"
    deploy(plain, {"B": _one("AWS::ApiGateway::Resource", ParentId="r", PathPart="n")}, "Paths")
    assert stack.status == "UPDATE_COMPLETE"


def test_a_harmless_replacement_does_not_collide(plain: SimulatedAccount) -> None:
    """A renamed resource, its way back, a failed attempt and its repetition have free names."""
    for name in ("one", "two", "one"):
        stack = deploy(plain, {"A": _one("AWS::SNS::Topic", TopicName=name)}, "Renamed")
        assert stack.status in ("CREATE_COMPLETE", "UPDATE_COMPLETE"), stack.reason
    wrong = _one("AWS::SNS::Topic", TopicName="one", DisplayName={"Ref": "AWS::NoValue"})
    failing = {
        "B": _one("AWS::SQS::Queue"),
        "C": _one("AWS::SNS::Topic", TopicName="three"),
        "A": wrong,
    }
    failing["C"]["Properties"]["Unknown"] = "property"
    for _ in range(2):
        deploy(plain, failing, "Renamed")
        assert stack.status == "UPDATE_ROLLBACK_COMPLETE"
        assert "Unknown" in stack.reason
    plain.deployer.delete(stack)


def test_a_retained_resource_keeps_its_name(plain: SimulatedAccount) -> None:
    """Without a stack, the reason names none."""
    kept = {**_one("AWS::DynamoDB::Table", TableName="kept"), "DeletionPolicy": "Retain"}
    stack = deploy(plain, {"A": kept}, "Kept")
    plain.deployer.delete(stack)
    again = deploy(plain, {"B": {**kept, "Type": "AWS::DynamoDB::Table"}}, "Kept")
    assert again.reason == "B: kept already exists"


def test_the_type_of_a_logical_id_does_not_change(plain: SimulatedAccount) -> None:
    """The update is refused before anything changes, for custom resources too."""
    stack = deploy(plain, {"Thing": _one("AWS::SNS::Topic", TopicName="thing")}, "Typed")
    deploy(plain, {"New": _one("AWS::SQS::Queue"), "Thing": _one("AWS::ECS::Cluster")}, "Typed")
    assert stack.status == "UPDATE_ROLLBACK_COMPLETE"
    assert stack.reason == (
        "Update of resource type is not permitted. The new template modifies resource type of the "
        "following resources: [Thing]"
    )
    assert not any(event.logical_id == "New" for event in stack.events)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (
            {"Resources": {f"R{n}": {"Type": "AWS::SNS::Topic"} for n in range(501)}},
            "resources, 501",
        ),
        ({"Outputs": {f"O{n}": {"Value": "a"} for n in range(201)}}, "outputs, 201"),
        ({"Parameters": {f"P{n}": {"Type": "String"} for n in range(201)}}, "parameters, 201"),
        ({"Mappings": {f"M{n}": {} for n in range(201)}}, "mappings, 201"),
        ({"Description": "é" * 513}, "'Description' length is greater than 1024"),
        ({"Metadata": "a" * 1_000_000}, "may not exceed 1000000 bytes"),
        ({"Resources": {"My-Topic": {"Type": "AWS::SNS::Topic"}}}, "My-Topic"),
        ({"Resources": {"a" * 256: {"Type": "AWS::SNS::Topic"}}}, "aaaa"),
    ],
)
def test_a_quota_of_templates_is_an_error(body: dict[str, Any], reason: str) -> None:
    """Each template is one over a quota of CloudFormation."""
    assert reason in "".join(refusals(Template(body), {}))


@pytest.mark.parametrize("name", ["my_stack", "1st", "a" * 129, ""])
def test_a_stack_has_a_name_that_cloudformation_accepts(plain: SimulatedAccount, name: str) -> None:
    """Letters, digits and hyphens, beginning with a letter, at most 128."""
    request = {"StackName": name, "TemplateBody": "{}"}
    with pytest.raises(ApiError, match="must match"):
        plain.cloudformation.answer("CreateStack", request)


def _exporting(*values: str, name: str = "Shared") -> dict[str, Any]:
    outputs = {
        f"O{n}": {"Value": value, "Export": {"Name": name}} for n, value in enumerate(values)
    }
    return {"Resources": {"A": {"Type": "AWS::SNS::Topic"}}, "Outputs": outputs}


def test_an_export_has_one_owner_and_a_value(plain: SimulatedAccount) -> None:
    """Neither a second stack nor a second output can have the name; a deleted stack frees it."""
    first = _deploy(plain, "First", _exporting("a"))
    assert _deploy(plain, "First", _exporting("b")).status == "UPDATE_COMPLETE"
    second = _deploy(plain, "Second", _exporting("a"))
    assert second.reason == "Export with name Shared is already exported by stack First"
    plain.deployer.delete(first)
    plain.deployer.delete(second)
    assert _deploy(plain, "Second", _exporting("a")).status == "CREATE_COMPLETE"
    twice = _deploy(plain, "Third", _exporting("a", "b", name="Twice"))
    assert "already exported by stack Third" in twice.reason
    empty = _deploy(plain, "Fourth", _exporting(" ", name="Empty"))
    assert (
        empty.reason
        == "Cannot export output O0. Exported values must not be empty or whitespace-only."
    )


def test_application_auto_scaling_has_created_its_role(plain: SimulatedAccount) -> None:
    """A template cannot create the service-linked role of a service that has a scalable target."""
    target = _one("AWS::ApplicationAutoScaling::ScalableTarget", ServiceNamespace="ecs")
    name = "ecs.application-autoscaling.amazonaws.com"
    role = _one("AWS::IAM::ServiceLinkedRole", AWSServiceName=name)
    first = deploy(plain, {"Role": role, "Target": target}, "Scaled")
    assert first.status == "CREATE_COMPLETE", first.reason
    plain.deployer.delete(first)
    deploy(plain, {"Target": target}, "Scaled")
    stack = deploy(plain, {"Target": target, "Role": role}, "Scaled")
    assert stack.reason == f"Role: {name} already exists"
