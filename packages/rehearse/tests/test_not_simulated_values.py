"""What an account does not simulate is unknown, and never a reason to refuse an app."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from shared_endpoint import deploy, trust

from cdk_rehearse import SimulatedAccount
from cdk_rehearse.stacks.stack import Stack
from constructs_triton_core.cloud_assembly.template import Template

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("loopback_stack")]

VPC = {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.0.0.0/16"}}


@pytest.fixture(scope="module")
def aws() -> Iterator[SimulatedAccount]:
    with SimulatedAccount() as account:
        yield account


def resource(type: str, **properties: Any) -> dict[str, Any]:
    return {"Type": type, "Properties": properties}


def created(aws: SimulatedAccount, name: str, **resources: Any) -> Stack:
    """Create a stack, which succeeds."""
    stack = deploy(aws, resources, name)
    assert stack.status == "CREATE_COMPLETE", stack.reason
    return stack


def test_policy_with_an_unknown_resource_applies(aws: SimulatedAccount) -> None:
    """IAM gets an ARN also for a value that is none, so that the rest of the policy applies."""
    statement = {
        "Effect": "Allow",
        "Action": ["s3:GetObject", {"Fn::GetAtt": ["Choice", "Action"]}],
        "Resource": [{"Ref": "Pool"}, {"Fn::GetAtt": ["Choice", "Bucket"]}, {"Ref": "Secret"}],
    }
    policy = {"Version": "2012-10-17", "Statement": [statement]}
    created(
        aws,
        "Policies",
        Secret=resource("AWS::SecretsManager::Secret"),
        Pool=resource("AWS::Cognito::UserPool"),
        Choice=resource("Datadog::Monitors::Monitor"),
        Role=resource("AWS::IAM::Role", AssumeRolePolicyDocument=trust("lambda"), RoleName="r"),
        Policy=resource(
            "AWS::IAM::Policy",
            PolicyName="p",
            PolicyDocument=policy,
            Roles=[{"Ref": "Role"}],
        ),
        Managed=resource("AWS::IAM::ManagedPolicy", PolicyDocument=policy, Roles=[{"Ref": "Role"}]),
    )
    found = aws.client("iam").get_role_policy(RoleName="r", PolicyName="p")["PolicyDocument"]
    assert found["Statement"][0]["Resource"][2].startswith("arn:aws:secretsmanager:us-east-1:")


MADE = {"Fn::GetAtt": ["Choice", "Made"]}


@pytest.mark.parametrize(
    "changed",
    [
        {"Condition": {"StringEquals": MADE}},
        {"Condition": MADE},
        {"Condition": {"NumericLessThan": {"aws:MultiFactorAuthAge": 300}}},
        {"Principal": MADE},
        {"Effect": MADE},
    ],
)
def test_trust_policy_with_an_unknown_part_is_kept(
    aws: SimulatedAccount, changed: dict[str, Any]
) -> None:
    """A resource may make the condition of a role, as of Kubernetes; the role is created and
    tagged.
    """
    document: dict[str, Any] = trust("lambda")
    (statement,) = document["Statement"]
    document["Statement"] = [{**statement, **changed}]
    role = resource("AWS::IAM::Role", AssumeRolePolicyDocument=document)
    resources = {"Choice": resource("Datadog::Monitors::Monitor"), "Role": role}
    created(aws, "Kubernetes", **resources)
    role["Properties"]["Tags"] = [{"Key": "a", "Value": "b"}]
    stack = deploy(aws, resources, "Kubernetes")
    assert stack.status == "UPDATE_COMPLETE", stack.reason
    name = stack.resources["Role"].physical.id
    assert aws.client("iam").get_role(RoleName=name)["Role"]["Tags"]
    assert aws.destroy("Kubernetes").status == "DELETE_COMPLETE"


@pytest.mark.parametrize("document", [MADE, {"Statement": MADE}, {"Statement": [MADE]}])
def test_policy_of_which_nothing_is_known_is_accepted(
    aws: SimulatedAccount, document: dict[str, Any]
) -> None:
    """A resource may make a statement, or all of a document."""
    policy = {"PolicyName": "p", "PolicyDocument": document}
    created(
        aws,
        "Made",
        Choice=resource("Datadog::Monitors::Monitor"),
        Role=resource("AWS::IAM::Role", AssumeRolePolicyDocument=trust("lambda"), RoleName="m"),
        Policy=resource("AWS::IAM::Policy", **policy, Roles=[{"Ref": "Role"}]),
    )
    assert aws.client("iam").list_role_policies(RoleName="m")["PolicyNames"] == ["p"]
    assert aws.destroy("Made").status == "DELETE_COMPLETE"


@pytest.mark.parametrize("zone", ["us-east-1-atl-1a", "dummy1a"])
def test_zone_that_is_not_simulated_takes_subnets(aws: SimulatedAccount, zone: str) -> None:
    """A Local Zone is named as not simulated, and its subnet says that it is there."""
    place = {"VpcId": {"Ref": "Vpc"}, "AvailabilityZone": zone}
    subnet = resource("AWS::EC2::Subnet", CidrBlock="10.0.0.0/24", **place)
    name = zone.replace("-", "")
    stack = created(aws, name, Vpc=VPC, Subnet=subnet)
    assert stack.resources["Subnet"].physical.attributes["AvailabilityZone"] == zone
    assert f"{name}/{zone}" in aws.not_simulated["Zone"]


def test_refusal_of_a_stand_in_is_none(aws: SimulatedAccount) -> None:
    """What a service or provider says about a stand-in says nothing about AWS."""
    unknown = {"Fn::GetAtt": ["Monitor", "Anything"]}
    created(
        aws,
        "Refused",
        Monitor=resource("Datadog::Monitors::Monitor"),
        Subnet=resource("AWS::EC2::Subnet", VpcId=unknown, CidrBlock=unknown),
        Vpc=resource("AWS::EC2::VPC", CidrBlock=unknown),
        Group=resource(
            "AWS::EC2::SecurityGroup",
            GroupDescription=unknown,
            VpcId={"Ref": "Vpc"},
            SecurityGroupIngress=[{"CidrIp": unknown, "FromPort": unknown, "IpProtocol": "tcp"}],
        ),
        Log=resource("AWS::Logs::LogGroup", RetentionInDays=unknown),
        Alias=resource("AWS::KMS::Alias", AliasName=unknown, TargetKeyId=unknown),
        Target=resource(
            "AWS::ApplicationAutoScaling::ScalableTarget",
            MinCapacity=unknown,
            MaxCapacity=2,
            ResourceId=unknown,
            ScalableDimension="sagemaker:variant:DesiredInstanceCount",
            ServiceNamespace="sagemaker",
        ),
    )


def test_inline_policy_of_the_older_version_is_accepted(aws: SimulatedAccount) -> None:
    """IAM takes an inline policy without ``Version``, which moto refuses."""
    statement = {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "*"}
    policy = {"PolicyName": "p", "PolicyDocument": {"Statement": [statement]}}
    role = resource("AWS::IAM::Role", AssumeRolePolicyDocument=trust("lambda"), Policies=[policy])
    beside = resource("AWS::IAM::Policy", **policy, Roles=[{"Ref": "Role"}])
    created(aws, "Older", Role=role, Policy=beside)


def test_what_is_beside_a_resource_that_is_not_simulated(aws: SimulatedAccount) -> None:
    """moto does not know the group of a schedule, nor a key or log group of another account."""
    role = "arn:aws:iam::123456789012:role/scheduling"
    target = {"Arn": "arn:aws:sqs:us-east-1:123456789012:jobs", "RoleArn": role}
    created(
        aws,
        "Beside",
        Group=resource("AWS::Scheduler::ScheduleGroup", Name="my-group"),
        Schedule=resource(
            "AWS::Scheduler::Schedule",
            GroupName={"Ref": "Group"},
            ScheduleExpression="rate(1 hour)",
            FlexibleTimeWindow={"Mode": "OFF"},
            Target=target,
        ),
        Alias=resource(
            "AWS::KMS::Alias",
            AliasName="alias/shared",
            TargetKeyId="1234abcd-12ab-34cd-56ef-1234567890ab",
        ),
    )
    assert aws.not_simulated["AWS::Scheduler::Schedule"] == ["Beside/Schedule"]


def test_messages_and_values_are_equal_in_each_run() -> None:
    """A refusal names the resource that an unknown value is of, and IDs do not change."""
    role = resource("AWS::IAM::Role", AssumeRolePolicyDocument=trust("lambda"))
    stage = resource("AWS::ApiGateway::Stage", RestApiId={"Ref": "Api"}, StageName="prod")
    api = resource("AWS::ApiGateway::RestApi", Name="a")
    found = []
    for _ in range(2):
        with SimulatedAccount() as account:
            shop = deploy(account, {"Api": api, "A": stage, "B": stage}, "Shop")
            first = deploy(account, {"Role": role, "Vpc": VPC, "Api": api}, "Ids")
            ids = [each.physical.id for each in first.resources.values()]
            found.append((shop.reason, ids))
    assert found[0] == found[1]
    assert "${Api}" in found[0][0]
    assert "not-simulated" not in found[0][0]


def test_unknown_values_of_conditions_rules_and_loops(aws: SimulatedAccount) -> None:
    """Conditions are assumed and named, rules never broken, and what a loop makes is unknown."""
    parameter = {"Type": "AWS::SSM::Parameter::Value<String>", "Default": "/absent"}
    loop = ["Name", {"Fn::Split": [",", {"Ref": "Stage"}]}, {"T${Name}": {"Type": "X::Y::Z"}}]
    body = {
        "Transform": "AWS::LanguageExtensions",
        "Parameters": {"Stage": parameter},
        "Rules": {"R": {"Assertions": [{"Assert": {"Fn::Equals": [{"Ref": "Stage"}, "a"]}}]}},
        "Conditions": {"IsLive": {"Fn::Equals": [{"Ref": "Stage"}, "live"]}},
        "Resources": {
            "Vpc": {**VPC, "Condition": "IsLive"},
            "Fn::ForEach::Topics": loop,
            "Log": resource("AWS::Logs::LogGroup", LogGroupName={"Ref": "TopicA"}),
        },
    }
    template = Template.checked(body, "", "template", "")
    stack = aws.stacks.add("Conditions")
    aws.deployer.deploy(stack, template, {})
    assert stack.status == "CREATE_COMPLETE", stack.reason
    assert [*stack.resources] == ["Log"]
    assert aws.not_simulated["condition"] == ["Conditions/IsLive"]
    assert aws.not_simulated["part of a template"] == ["Conditions/Fn::ForEach::Topics"]


def test_transform_may_add_what_others_refer_to(aws: SimulatedAccount) -> None:
    """SAM has sections, keys and resources of its own, which CloudFormation never sees."""
    function = {**resource("AWS::Serverless::Function", Handler="a.b"), "Connectors": {}}
    role = {"Fn::GetAtt": ["FunctionRole", "Arn"]}
    body = {
        "Transform": "AWS::Serverless-2016-10-31",
        "Globals": {"Function": {"Runtime": "python3.13"}},
        "Resources": {
            "Function": function,
            "Log": resource("AWS::Logs::LogGroup", LogGroupName={"Ref": "ServerlessRestApi"}),
            "Api": resource("AWS::Serverless::Api", DefinitionBody={"Fn::Sub": "${Api}"}),
        },
        "Outputs": {"Role": {"Value": role}},
    }
    stack = aws.stacks.add("Sam")
    aws.deployer.deploy(stack, Template.checked(body, "", "template", ""), {})
    assert stack.status == "CREATE_COMPLETE", stack.reason
    described = aws.client("cloudformation").describe_stacks(StackName="Sam")["Stacks"][0]
    assert described["Outputs"][0]["OutputValue"] == "${FunctionRole.Arn}"


@pytest.mark.parametrize(
    ("properties", "words"),
    [
        (
            {"VpcEndpointType": "Gateway", "RouteTableIds": [{"Ref": "Routes"}]},
            "already has a route with destination-prefix-list-id",
        ),
        (
            {"VpcEndpointType": "Interface", "PrivateDnsEnabled": True},
            "already exists in stack",
        ),
    ],
)
def test_second_endpoint_of_a_service_is_refused(
    aws: SimulatedAccount, properties: dict[str, Any], words: str
) -> None:
    """EC2 refuses it while the first one has its route or its name, which a renamed one meets."""
    endpoint = resource(
        "AWS::EC2::VPCEndpoint",
        VpcId={"Ref": "Vpc"},
        ServiceName="com.amazonaws.us-east-1.s3",
        **properties,
    )
    name = f"Endpoints{properties['VpcEndpointType']}"
    routes = resource("AWS::EC2::RouteTable", VpcId={"Ref": "Vpc"})
    created(aws, name, Vpc=VPC, Routes=routes, First=endpoint)
    renamed = deploy(aws, {"Vpc": VPC, "Routes": routes, "Second": endpoint}, name)
    assert renamed.status == "UPDATE_ROLLBACK_COMPLETE"
    assert words in renamed.reason
    assert aws.destroy(name).status == "DELETE_COMPLETE"


INCLUDE = {"Name": "AWS::Include", "Parameters": {"Location": "s3://bucket/more.yaml"}}


@pytest.mark.parametrize(
    "properties",
    [
        {"TopicName": "a", "Fn::Transform": INCLUDE},
        {"Fn::Transform": INCLUDE},
        {"Tags": [{"Key": "a", "Fn::Transform": INCLUDE}]},
    ],
)
def test_transform_beside_properties_makes_them_unknown(
    aws: SimulatedAccount, properties: dict[str, Any]
) -> None:
    """A macro may change what is beside it; the resource is created, updated and deleted."""
    resources = {
        "Topic": {"Type": "AWS::SNS::Topic", "Properties": properties},
        "Log": resource("AWS::Logs::LogGroup", LogGroupName={"Ref": "Topic"}),
    }
    created(aws, "Macro", **resources)
    resources["Log"]["Properties"]["RetentionInDays"] = 1
    assert deploy(aws, resources, "Macro").status == "UPDATE_COMPLETE"
    assert aws.destroy("Macro").status == "DELETE_COMPLETE"


def test_model_with_an_unknown_container_is_not_simulated(aws: SimulatedAccount) -> None:
    """An endpoint of which the container is unknown is created, and named as not simulated."""
    model = {"ExecutionRoleArn": "arn:aws:iam::123456789012:role/r", "PrimaryContainer": MADE}
    created(
        aws,
        "Unknown",
        Choice=resource("Datadog::Monitors::Monitor"),
        Model=resource("AWS::SageMaker::Model", **model),
    )
    assert aws.not_simulated["AWS::SageMaker::Model"] == ["Unknown/Model"]


def test_macro_may_change_each_property(aws: SimulatedAccount) -> None:
    """What only a macro reads is none of CloudFormation's properties."""
    role = {"Type": "AWS::IAM::Role", "Properties": {"Name": "r", "Permissions": ["s3"]}}
    bucket = {"Type": "AWS::S3::Bucket", "Properties": {"Tags": "#!PyPlate\noutput = []"}}
    body = {
        "Transform": ["AWS::LanguageExtensions", "PyPlate"],
        "Resources": {"Role": role, "Bucket": bucket, "Log": resource("AWS::Logs::LogGroup")},
    }
    stack = aws.stacks.add("Macros")
    aws.deployer.deploy(stack, Template.checked(body, "", "template", ""), {})
    assert stack.status == "CREATE_COMPLETE", stack.reason
    assert "Macros/Role" in aws.not_simulated["AWS::IAM::Role"]
    del body["Transform"]
    strict = aws.stacks.add("Strict")
    aws.deployer.deploy(strict, Template.checked(body, "", "template", ""), {})
    assert "'AssumeRolePolicyDocument' is a required property" in strict.reason
