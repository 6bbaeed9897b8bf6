"""Harmless edits: resources and sections that are added to a template beside what it has."""

from __future__ import annotations

import copy
from typing import Any

from shared_endpoint import trust

from .bases import ROOT, allow, arn, document, ref, resource
from .mutant import Body
from .named import SIMULATED

_CODE = {"ZipFile": "exports.handler = async () => {}"}
_ALARM, _ = SIMULATED["AWS::CloudWatch::Alarm"]
_KEYS = [{"AttributeName": "id", "KeyType": "HASH"}]
_ATTRIBUTES = [{"AttributeName": "id", "AttributeType": "S"}]
_PASS = '{"StartAt": "End", "States": {"End": {"Type": "Pass", "End": true}}}'
_ROLE = resource("AWS::IAM::Role", AssumeRolePolicyDocument=trust("lambda"))
_KEY = resource("AWS::KMS::Key", KeyPolicy=document(allow("kms:*", "*", Principal=ROOT)))
_OUTSIDE = "arn:aws:sqs:us-east-1:123456789012:acme"

ADDED: dict[str, dict[str, Any]] = {
    "dashboard": {
        "AddedBoard": resource("AWS::CloudWatch::Dashboard", DashboardBody='{"widgets": []}')
    },
    "alarm": {"AddedAlarm": resource("AWS::CloudWatch::Alarm", **_ALARM)},
    "topic": {"AddedTopic": resource("AWS::SNS::Topic")},
    "queue": {"AddedQueue": resource("AWS::SQS::Queue", VisibilityTimeout=60)},
    "table": {
        "AddedTable": resource(
            "AWS::DynamoDB::Table",
            KeySchema=_KEYS,
            AttributeDefinitions=_ATTRIBUTES,
            BillingMode="PAY_PER_REQUEST",
        )
    },
    "stored parameter": {
        "AddedParameter": resource("AWS::SSM::Parameter", Type="String", Value="one")
    },
    "bucket": {"AddedBucket": resource("AWS::S3::Bucket")},
    "key and alias": {
        "AddedKey": _KEY,
        "AddedAlias": resource(
            "AWS::KMS::Alias",
            AliasName={"Fn::Sub": "alias/${AWS::StackName}-added"},
            TargetKeyId=ref("AddedKey"),
        ),
    },
    "log group and metric filter": {
        "AddedLogs": resource("AWS::Logs::LogGroup", RetentionInDays=7),
        "AddedFilter": resource(
            "AWS::Logs::MetricFilter",
            LogGroupName=ref("AddedLogs"),
            FilterPattern="ERROR",
            MetricTransformations=[
                {"MetricName": "Errors", "MetricNamespace": "Acme", "MetricValue": "1"}
            ],
        ),
    },
    "rule of an event bus": {
        "AddedRule": resource(
            "AWS::Events::Rule",
            ScheduleExpression="rate(1 day)",
            Targets=[{"Id": "queue", "Arn": _OUTSIDE}],
        )
    },
    "role": {"AddedRole": _ROLE},
    "managed policy": {
        "AddedManaged": resource(
            "AWS::IAM::ManagedPolicy", PolicyDocument=document(allow("s3:ListAllMyBuckets", "*"))
        )
    },
    "function": {
        "AddedFunctionRole": _ROLE,
        "AddedFunction": resource(
            "AWS::Lambda::Function",
            Code=_CODE,
            Role=arn("AddedFunctionRole"),
            Runtime="nodejs22.x",
            Handler="index.handler",
        ),
    },
    "state machine": {
        "AddedMachineRole": resource("AWS::IAM::Role", AssumeRolePolicyDocument=trust("states")),
        "AddedMachine": resource(
            "AWS::StepFunctions::StateMachine",
            RoleArn=arn("AddedMachineRole"),
            DefinitionString=_PASS,
        ),
    },
    "cluster of containers": {"AddedCluster": resource("AWS::ECS::Cluster")},
    "secret": {"AddedSecret": resource("AWS::SecretsManager::Secret", GenerateSecretString={})},
    "repository of images": {"AddedImages": resource("AWS::ECR::Repository")},
    "network": {"AddedVpc": resource("AWS::EC2::VPC", CidrBlock="10.77.0.0/16")},
}
"""Resources by what is added; none refers to what the template has."""
_SECTIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "unused parameter": ("Parameters", {"AddedSize": {"Type": "Number", "Default": 3}}),
    "unused condition": ("Conditions", {"AddedCondition": {"Fn::Equals": ["a", "b"]}}),
    "unused mapping": ("Mappings", {"AddedMapping": {"a": {"b": "c"}}}),
    "output": ("Outputs", {"AddedOutput": {"Value": {"Ref": "AWS::Region"}}}),
    "export": (
        "Outputs",
        {
            "AddedExport": {
                "Value": {"Ref": "AWS::StackName"},
                "Export": {"Name": {"Fn::Sub": "${AWS::StackName}-it"}},
            }
        },
    ),
}


def add_resources(body: Body, name: str) -> bool:
    """Add the resources of a name of :data:`ADDED`."""
    body["Resources"] = {**body["Resources"], **copy.deepcopy(ADDED[name])}
    return True


def add_section(body: Body, name: str) -> bool:
    """Add a member to a section of the template."""
    section, members = _SECTIONS[name]
    body[section] = {**body.get(section, {}), **copy.deepcopy(members)}
    return True


SECTIONS = tuple(_SECTIONS)
