"""The CloudFormation template of an endpoint that a search needs for a while.

An EventBridge schedule in the stack deletes the endpoint when it expires, without this machine. Its role may
do only this. It does not delete the stack: CloudFormation would need its permission for every resource of the
stack, the role itself included. Without the endpoint the stack costs nothing; ``tune --clean`` deletes it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from constructs_triton_tools.measuring.tuning.deployed.instances import AwsInstances
from constructs_triton_tools.measuring.tuning.deployed.run_stack import TIME_FORMAT

__all__ = ["make_template"]

# A schedule is tried again for a day, for example while the endpoint cannot be deleted yet.
_RETRY = {"MaximumEventAgeInSeconds": 86400, "MaximumRetryAttempts": 185}


def make_template(
    name: str, place: AwsInstances, data_urls: Mapping[str, str], model: str, expires: datetime
) -> dict[str, Any]:
    """Return the template of an endpoint with one instance for each variant.

    Args:
        name: Name of the endpoint.
        place: Instance type, image and role.
        data_urls: Archive of each variant by its name; of a multi-model endpoint, the prefix of its archives.
        model: Model to serve; empty for a multi-model endpoint.
        expires: When the endpoint is deleted.
    """
    kind: dict[str, Any] = {"Mode": "MultiModel"}
    if model:
        kind = {"Environment": {"SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": model}}
    models = {
        f"Model{number}": _resource(
            "SageMaker::Model",
            ModelName=f"{name}-{number}",
            ExecutionRoleArn=place.role,
            PrimaryContainer={"Image": place.image, "ModelDataUrl": url, **kind},
        )
        for number, url in enumerate(data_urls.values())
    }
    variants = [_variant(place, *each) for each in zip(data_urls, models, strict=True)]
    endpoint = _resource(
        "SageMaker::Endpoint",
        EndpointName=name,
        EndpointConfigName={"Fn::GetAtt": ["Config", "EndpointConfigName"]},
    )
    return {
        "Description": f"A search of constructs-triton tune; its endpoint is deleted at {expires:%H:%M} UTC",
        "Resources": {
            **models,
            "Config": _resource(
                "SageMaker::EndpointConfig", EndpointConfigName=name, ProductionVariants=variants
            ),
            # The schedule exists before there is anything to pay for, and until there is nothing more.
            "Endpoint": {**endpoint, "DependsOn": ["Expiry"]},
            "ExpiryRole": _expiry_role(name),
            "Expiry": _expiry(name, expires),
        },
    }


def _resource(type: str, **properties: Any) -> dict[str, Any]:
    return {"Type": f"AWS::{type}", "Properties": properties}


def _variant(place: AwsInstances, name: str, model: str) -> dict[str, Any]:
    ami = place.inference_ami_version
    return {
        "VariantName": name,
        "ModelName": {"Fn::GetAtt": [model, "ModelName"]},
        "InstanceType": place.instance_type,
        "InitialInstanceCount": 1,
        "InitialVariantWeight": 1,
        **({"InferenceAmiVersion": ami} if ami else {}),
    }


def _expiry_role(name: str) -> dict[str, Any]:
    arn = f"arn:${{AWS::Partition}}:sagemaker:${{AWS::Region}}:${{AWS::AccountId}}:endpoint/{name}"
    allowed = {"Effect": "Allow", "Action": "sagemaker:DeleteEndpoint", "Resource": {"Fn::Sub": arn}}
    trusted = {
        "Effect": "Allow",
        "Action": "sts:AssumeRole",
        "Principal": {"Service": "scheduler.amazonaws.com"},
        "Condition": {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}},
    }
    policy = {"Version": "2012-10-17", "Statement": [allowed]}
    return _resource(
        "IAM::Role",
        AssumeRolePolicyDocument={"Version": "2012-10-17", "Statement": [trusted]},
        Policies=[{"PolicyName": "DeleteEndpoint", "PolicyDocument": policy}],
    )


def _expiry(name: str, expires: datetime) -> dict[str, Any]:
    return _resource(
        "Scheduler::Schedule",
        Name=name,
        ScheduleExpression=f"at({expires:{TIME_FORMAT}})",
        ScheduleExpressionTimezone="UTC",
        FlexibleTimeWindow={"Mode": "OFF"},
        Target={
            "Arn": {"Fn::Sub": "arn:${AWS::Partition}:scheduler:::aws-sdk:sagemaker:deleteEndpoint"},
            "RoleArn": {"Fn::GetAtt": ["ExpiryRole", "Arn"]},
            "Input": json.dumps({"EndpointName": name}),
            "RetryPolicy": _RETRY,
        },
    )
