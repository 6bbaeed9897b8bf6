"""A resource with a fixed name for each type, and what it needs beside it."""

from __future__ import annotations

from typing import Any

from shared_endpoint import IMAGE, ROLE, component, shared, trust

from .samples import minimal, name_of

_TARGET = {
    "Arn": "arn:aws:sqs:us-east-1:123456789012:acme",
    "RoleArn": {"Fn::GetAtt": ["Role", "Arn"]},
}
_CONFIG = {"Fn::GetAtt": ["Config", "EndpointConfigName"]}
_VARIANT = shared()["Config"]["Properties"]["ProductionVariants"][0]
_READS = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Action": "s3:GetObject", "Resource": "*"}],
}

BESIDE: dict[str, Any] = {
    "Key": {
        "Type": "AWS::KMS::Key",
        "Properties": {
            "KeyPolicy": {
                "Version": "2012-10-17",
                "Statement": [
                    {
                        "Effect": "Allow",
                        "Action": "kms:*",
                        "Resource": "*",
                        "Principal": {"AWS": {"Fn::Sub": "arn:aws:iam::${AWS::AccountId}:root"}},
                    }
                ],
            }
        },
    },
    "Topic": {"Type": "AWS::SNS::Topic", "Properties": {"DisplayName": "beside"}},
    **{name: each for name, each in shared().items() if name != "One"},
    "FunctionRole": {
        "Type": "AWS::IAM::Role",
        "Properties": {"AssumeRolePolicyDocument": trust("lambda")},
    },
}
"""What samples refer to, by logical ID."""

SIMULATED: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "AWS::CloudWatch::Alarm": (
        {
            "Namespace": "AWS/SQS",
            "MetricName": "ApproximateAgeOfOldestMessage",
            "Statistic": "Maximum",
            "Period": 60,
            "EvaluationPeriods": 1,
            "Threshold": 1,
            "ComparisonOperator": "GreaterThanThreshold",
        },
        (),
    ),
    "AWS::CloudWatch::Dashboard": ({"DashboardBody": '{"widgets": []}'}, ()),
    "AWS::ElasticLoadBalancingV2::LoadBalancer": ({"Subnets": ["subnet-0123456789abcdef0"]}, ()),
    "AWS::IAM::ManagedPolicy": ({"PolicyDocument": _READS}, ()),
    "AWS::IAM::Role": ({"AssumeRolePolicyDocument": trust("lambda")}, ()),
    "AWS::KMS::Alias": ({"TargetKeyId": {"Ref": "Key"}}, ("Key",)),
    "AWS::Lambda::Function": (
        {
            "Code": {"ZipFile": "def handler(event, context): pass"},
            "Role": {"Fn::GetAtt": ["FunctionRole", "Arn"]},
            "Runtime": "python3.12",
            "Handler": "index.handler",
        },
        ("FunctionRole",),
    ),
    "AWS::SSM::Parameter": ({"Type": "String", "Value": "one"}, ()),
    "AWS::SageMaker::Endpoint": ({"EndpointConfigName": _CONFIG}, ("Role", "Policy", "Config")),
    "AWS::SageMaker::EndpointConfig": (
        {"ExecutionRoleArn": ROLE, "ProductionVariants": [_VARIANT]},
        ("Role", "Policy"),
    ),
    "AWS::SageMaker::InferenceComponent": (
        component("Model")["Properties"],
        ("Role", "Policy", "Model", "Config", "Endpoint"),
    ),
    "AWS::SageMaker::Model": (
        {"ExecutionRoleArn": ROLE, "PrimaryContainer": {"Image": IMAGE}},
        ("Role", "Policy"),
    ),
    "AWS::Scheduler::Schedule": (
        {
            "FlexibleTimeWindow": {"Mode": "OFF"},
            "ScheduleExpression": "rate(1 day)",
            "Target": _TARGET,
        },
        ("Role",),
    ),
    "AWS::StepFunctions::StateMachine": (
        {
            "RoleArn": {"Fn::GetAtt": ["FunctionRole", "Arn"]},
            "DefinitionString": (
                '{"StartAt": "End", "States": {"End": {"Type": "Pass", "End": true}}}'
            ),
        },
        ("FunctionRole",),
    ),
}
"""Properties of types that refer to others or that the schema does not require,
and what they refer to.
"""


def named(type: str, name_property: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """A resource of a type with a fixed name, and the resources beside it."""
    given, needs = SIMULATED.get(type, ({}, ()))
    name = name_of(type, name_property)
    properties = {**given, name_property: name} if given else minimal(type, **{name_property: name})
    return {"Type": type, "Properties": properties}, {each: BESIDE[each] for each in needs}
