"""The CloudFormation template of an endpoint that a search needs for a while.

An EventBridge schedule in the stack deletes the endpoint when it expires, without this machine. Its role may
do only this. It does not delete the stack: CloudFormation would need its permission for every resource of the
stack, the role itself included. Without the endpoint the stack costs nothing; ``tune --clean`` deletes it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from constructs_triton.measuring.tuning.deployed.place import AwsPlace

__all__ = ["TIME_FORMAT", "Variant", "make_template"]

#: Of the expiry in the schedule and in the tag, in UTC.
TIME_FORMAT = "%Y-%m-%dT%H:%M:%S"
# A schedule is tried again for a day, for example while the endpoint cannot be deleted yet.
_RETRY = {"MaximumEventAgeInSeconds": 86400, "MaximumRetryAttempts": 185}


@dataclass(frozen=True, slots=True)
class Variant:
    """A production variant.

    Args:
        name: Name of the variant.
        data_url: Archive of its model, or the prefix of a multi-model endpoint.
        model: Model to serve; empty on a multi-model endpoint.
    """

    name: str
    data_url: str
    model: str = ""

    def container(self, image: str) -> dict[str, Any]:
        """Return the container definition of the model."""
        shared = {"Image": image, "ModelDataUrl": self.data_url}
        if not self.model:
            return {**shared, "Mode": "MultiModel"}
        return {**shared, "Environment": {"SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": self.model}}


def make_template(
    name: str, place: AwsPlace, variants: Sequence[Variant], expires: datetime
) -> dict[str, Any]:
    """Return the template of an endpoint with one instance for each variant.

    Args:
        name: Name of the endpoint.
        place: Instance type, image and role.
        variants: The variants; with several, a caller chooses one of them.
        expires: When the endpoint is deleted.
    """
    models = {
        f"Model{number}": _model(f"{name}-{number}", place, each) for number, each in enumerate(variants)
    }
    config = [_variant(place, f"Model{number}", each) for number, each in enumerate(variants)]
    return {
        "Description": f"A search of constructs-triton tune; its endpoint is deleted at {expires:%H:%M} UTC",
        "Resources": {
            **models,
            "Config": _resource(
                "SageMaker::EndpointConfig", EndpointConfigName=name, ProductionVariants=config
            ),
            "Endpoint": {
                **_resource(
                    "SageMaker::Endpoint",
                    EndpointName=name,
                    EndpointConfigName={"Fn::GetAtt": ["Config", "EndpointConfigName"]},
                ),
                # The schedule exists before there is anything to pay for, and until there is nothing more.
                "DependsOn": ["Expiry"],
            },
            "ExpiryRole": _expiry_role(name),
            "Expiry": _expiry(name, expires),
        },
    }


def _resource(type: str, **properties: Any) -> dict[str, Any]:
    return {"Type": f"AWS::{type}", "Properties": properties}


def _model(name: str, place: AwsPlace, variant: Variant) -> dict[str, Any]:
    return _resource(
        "SageMaker::Model",
        ModelName=name,
        ExecutionRoleArn=place.role,
        PrimaryContainer=variant.container(place.image),
    )


def _variant(place: AwsPlace, model: str, variant: Variant) -> dict[str, Any]:
    ami = place.inference_ami_version
    return {
        "VariantName": variant.name,
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
    return _resource(
        "IAM::Role",
        AssumeRolePolicyDocument={"Version": "2012-10-17", "Statement": [trusted]},
        Policies=[
            {
                "PolicyName": "DeleteEndpoint",
                "PolicyDocument": {"Version": "2012-10-17", "Statement": [allowed]},
            }
        ],
    )


def _expiry(name: str, expires: datetime) -> dict[str, Any]:
    target = {
        "Arn": {"Fn::Sub": "arn:${AWS::Partition}:scheduler:::aws-sdk:sagemaker:deleteEndpoint"},
        "RoleArn": {"Fn::GetAtt": ["ExpiryRole", "Arn"]},
        "Input": json.dumps({"EndpointName": name}),
        "RetryPolicy": _RETRY,
    }
    return _resource(
        "Scheduler::Schedule",
        Name=name,
        ScheduleExpression=f"at({expires:{TIME_FORMAT}})",
        ScheduleExpressionTimezone="UTC",
        FlexibleTimeWindow={"Mode": "OFF"},
        Target=target,
    )
