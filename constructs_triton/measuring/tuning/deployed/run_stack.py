"""The CloudFormation stack of an endpoint that a search needs for a while.

An EventBridge schedule in the stack deletes the endpoint when it expires, without this machine. Its role may
do only this. It does not delete the stack: CloudFormation would need its permission for every resource of the
stack, the role itself included. Without the endpoint the stack costs nothing; ``tune --clean`` deletes it.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from constructs_triton.errors import ConstructsTritonError, InvalidValueError
from constructs_triton.measuring.tuning.deployed.place import AwsPlace
from constructs_triton.operations.aws_reader import AwsReader, describe_failure

__all__ = [
    "NAME_PREFIX",
    "FoundStack",
    "RunStack",
    "StackFailedError",
    "Variant",
    "delete_archives",
    "find_stacks",
    "template",
]

NAME_PREFIX = "constructs-triton-tune-"
EXPIRES_TAG, ARCHIVES_TAG = "constructs-triton:expires", "constructs-triton:archives"
PAUSE_SECONDS = 10.0
_TIME_FORMAT = "%Y-%m-%dT%H:%M:%S"
_ARCHIVES = re.compile(rf"s3://([a-z0-9.-]+)/({NAME_PREFIX}[0-9a-f]+/)")
#: The account has no instances, or AWS has none: other candidates fail for the same reason.
_NO_INSTANCE = ("InsufficientInstanceCapacity", "ResourceLimitExceeded", "service limit")
# A schedule is tried again for a day, for example while the endpoint cannot be deleted yet.
_RETRY = {"MaximumEventAgeInSeconds": 86400, "MaximumRetryAttempts": 185}


class StackFailedError(ConstructsTritonError):
    """A stack of a search could not be created or deleted.

    Args:
        message: What failed.
        is_of_account: Whether the account or AWS is the reason, and not the model.
    """

    def __init__(self, message: str, *, is_of_account: bool = True) -> None:
        super().__init__(message)
        self.is_of_account = is_of_account


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


# --- the template -----------------------------------------------------------------------------------------


def template(name: str, place: AwsPlace, variants: Sequence[Variant], expires: datetime) -> dict[str, Any]:
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
        ScheduleExpression=f"at({expires:{_TIME_FORMAT}})",
        ScheduleExpressionTimezone="UTC",
        FlexibleTimeWindow={"Mode": "OFF"},
        Target=target,
    )


# --- one stack --------------------------------------------------------------------------------------------


class RunStack:
    """A stack of a search, which has the name of its endpoint.

    Args:
        reader: Calls AWS.
        name: Name of the stack.
        report: Called with what takes minutes.
    """

    def __init__(self, reader: AwsReader, name: str, report: Callable[[str], None]) -> None:
        self.name = name
        self._reader = reader
        self._report = report
        self._id = name

    def create(self, body: Mapping[str, Any], expires: datetime, archives: str) -> None:
        """Create the stack and wait until its endpoint is in service.

        Args:
            body: The template.
            expires: When the endpoint is deleted.
            archives: Where the archives are, for ``tune --clean``.

        Raises:
            StackFailedError: it cannot be created.
        """
        self._report(f"creates the endpoint {self.name}, which takes minutes")
        tags = {EXPIRES_TAG: f"{expires:{_TIME_FORMAT}}Z", ARCHIVES_TAG: archives}
        answer = self._call(
            "create_stack",
            TemplateBody=json.dumps(body),
            Capabilities=["CAPABILITY_IAM"],
            Tags=[{"Key": key, "Value": value} for key, value in tags.items()],
        )
        self._id = answer["StackId"]
        status = self._wait()
        if status != "CREATE_COMPLETE":
            reason = self._first_failure() or status
            is_of_account = any(word in reason for word in _NO_INSTANCE)
            raise StackFailedError(f"stack {self.name}: {reason}", is_of_account=is_of_account)

    def delete(self) -> None:
        """Delete the stack and wait; one that does not exist is no error.

        Raises:
            StackFailedError: it cannot be deleted.
        """
        self._report(f"deletes the endpoint {self.name}")
        status = self._delete()
        if status == "DELETE_FAILED" and not self._has_endpoint():
            status = self._delete(RetainResources=["Endpoint"])
        if status != "DELETE_COMPLETE":
            raise StackFailedError(f"stack {self.name}: {status}; look at its events in CloudFormation")

    def _delete(self, **request: Any) -> str:
        self._call("delete_stack", **request)
        try:
            return self._wait()
        except StackFailedError:
            if self._id == self.name:
                return "DELETE_COMPLETE"  # only the ARN finds a deleted stack
            raise

    def _has_endpoint(self) -> bool:
        """Whether the endpoint exists; the schedule may have deleted it.

        Whether CloudFormation then deletes the stack without this help is not settled.
        """
        found = self._reader.read("sagemaker", "list_endpoints", NameContains=self.name)
        names = [each["EndpointName"] for each in found.get("Endpoints", ())]
        return self.name in names or not found

    def _wait(self) -> str:
        while True:
            (stack,) = self._call("describe_stacks")["Stacks"]
            status = str(stack["StackStatus"])
            if not status.endswith("_IN_PROGRESS"):
                return status
            time.sleep(PAUSE_SECONDS)

    def _first_failure(self) -> str:
        events = reversed(self._call("describe_stack_events")["StackEvents"])
        failed = (each for each in events if each.get("ResourceStatus") == "CREATE_FAILED")
        return next((str(each.get("ResourceStatusReason", "")) for each in failed), "")

    def _call(self, operation: str, **request: Any) -> dict[str, Any]:
        from botocore.exceptions import ClientError

        try:
            return self._reader.require("cloudformation", operation, StackName=self._id, **request)
        except ClientError as error:
            raise StackFailedError(f"{describe_failure('cloudformation', error)}") from None


# --- all stacks -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FoundStack:
    """A stack that a search has left, or that runs now.

    Args:
        name: Name of the stack.
        status: Its status.
        expires: When its endpoint is deleted.
        bucket: Bucket of the archives; empty if the tag does not say.
        prefix: Where in the bucket they are.
    """

    name: str
    status: str
    expires: datetime
    bucket: str
    prefix: str

    @property
    def is_expired(self) -> bool:
        """Whether its endpoint was deleted by the schedule."""
        return self.expires <= datetime.now(UTC)


def find_stacks(reader: AwsReader) -> Iterator[FoundStack]:
    """Yield the stacks of searches in the account and Region.

    Raises:
        InvalidValueError: AWS cannot be reached, or refuses the call.
    """
    for page in reader.pages("cloudformation", "describe_stacks"):
        for stack in page["Stacks"]:
            tags = {tag["Key"]: tag["Value"] for tag in stack.get("Tags", ())}
            is_ours = stack["StackName"].startswith(NAME_PREFIX) and EXPIRES_TAG in tags
            if is_ours and stack["StackStatus"] != "DELETE_COMPLETE":
                yield _found(stack, tags)


def _found(stack: Mapping[str, Any], tags: Mapping[str, str]) -> FoundStack:
    try:
        expires = datetime.strptime(tags[EXPIRES_TAG], f"{_TIME_FORMAT}Z").replace(tzinfo=UTC)
    except ValueError:
        raise InvalidValueError(
            f"stack {stack['StackName']}: the tag {EXPIRES_TAG} is not a time; delete the stack yourself"
        ) from None
    archives = _ARCHIVES.fullmatch(tags.get(ARCHIVES_TAG, ""))
    bucket, prefix = archives.groups() if archives else ("", "")
    return FoundStack(stack["StackName"], stack["StackStatus"], expires, bucket, prefix)


def delete_archives(reader: AwsReader, bucket: str, prefix: str) -> int:
    """Delete the archives of a search, and return how many there were.

    Raises:
        StackFailedError: S3 refuses it.
    """
    from botocore.exceptions import ClientError

    count = 0
    try:
        for page in reader.pages("s3", "list_objects_v2", Bucket=bucket, Prefix=prefix):
            keys = [{"Key": each["Key"]} for each in page.get("Contents", ())]
            if keys:
                reader.require("s3", "delete_objects", Bucket=bucket, Delete={"Objects": keys})
                count += len(keys)
    except ClientError as error:
        raise StackFailedError(describe_failure("s3", error)) from None
    return count
