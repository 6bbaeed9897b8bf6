"""Deploys stacks with the CDK's command line, and reads with boto3 what became of them."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
from botocore.exceptions import ClientError

CDK = Path(__file__).resolve().parents[2] / "node_modules" / ".bin" / "cdk"
_PAUSE_SECONDS = 15.0


def caller() -> str:
    """Which account and Region the environment's credentials belong to."""
    sts = boto3.client("sts")
    return f"Account {sts.get_caller_identity()['Account']}, Region {sts.meta.region_name}"


@dataclass(frozen=True)
class Outcome:
    """The state of a stack after a deployment, and the first reason of a failure."""

    status: str
    reason: str

    @property
    def is_created(self) -> bool:
        """Whether the stack exists as the template describes it."""
        return self.status == "CREATE_COMPLETE"

    def __str__(self) -> str:
        return f"{self.status}: {self.reason}" if self.reason else self.status


@dataclass(frozen=True)
class Account:
    """The account and Region of the environment's credentials."""

    directory: Path
    """Contains one assembly per release of the stacks."""
    wait_minutes: float

    def client(self, service: str) -> Any:
        """A boto3 client."""
        make: Any = boto3.client  # typed by the name of the service
        return make(service)

    def client_with(self, service: str, credentials: Mapping[str, str]) -> Any:
        """A boto3 client with the credentials of a role."""
        make: Any = boto3.client
        return make(
            service,
            aws_access_key_id=credentials["AccessKeyId"],
            aws_secret_access_key=credentials["SecretAccessKey"],
            aws_session_token=credentials["SessionToken"],
        )

    def deploy(self, stack: str, release: int) -> Outcome:
        """Deploy a release of a stack. A failure is an outcome as well."""
        app = self.directory / str(release)
        done = self._cdk("deploy", "--app", str(app), "--require-approval", "never", stack)
        try:
            (found,) = self.client("cloudformation").describe_stacks(StackName=stack)["Stacks"]
        except ClientError:
            raise RuntimeError(
                f"cdk deploy did not create {stack}: {done.stdout[-2000:]}"
            ) from None
        reason = "" if done.returncode == 0 else self._first_failure(stack)
        return Outcome(found["StackStatus"], reason)

    def destroy(self, stack: str) -> None:
        """Delete a stack with the objects of its buckets and the logs of its endpoints.

        Raises:
            RuntimeError: the stack could not be deleted.
        """
        try:
            resources = self._resources(stack)
        except ClientError:
            return  # nothing was deployed
        for bucket in resources.get("AWS::S3::Bucket", []):
            self._empty(bucket)
        endpoints = self._endpoint_names(resources.get("AWS::SageMaker::Endpoint", []))
        done = self._cdk("destroy", "--app", str(self.directory / "1"), "--force", stack)
        components = resources.get("AWS::SageMaker::InferenceComponent", [])
        groups = [f"/aws/sagemaker/Endpoints/{name}" for name in endpoints]
        groups += [
            f"/aws/sagemaker/InferenceComponents/{arn.rpartition('/')[2]}" for arn in components
        ]
        for group in [*groups, *resources.get("AWS::Logs::LogGroup", [])]:
            self.delete_log_group(group)
        if done.returncode != 0:
            raise RuntimeError(
                f"{stack} could not be deleted, and costs money: {done.stdout[-2000:]}"
            )

    def endpoint(self, stack: str, output: str = "Name") -> dict[str, Any]:
        """The description of the endpoint whose name is an output of the stack."""
        name = self.output(stack, output)
        described: dict[str, Any] = self.client("sagemaker").describe_endpoint(EndpointName=name)
        return described

    def output(self, stack: str, key: str) -> str:
        """An output of a stack."""
        (found,) = self.client("cloudformation").describe_stacks(StackName=stack)["Stacks"]
        return {each["OutputKey"]: str(each["OutputValue"]) for each in found["Outputs"]}[key]

    def config_exists(self, name: str) -> bool:
        """Whether an endpoint configuration exists."""
        try:
            self.client("sagemaker").describe_endpoint_config(EndpointConfigName=name)
        except ClientError:
            return False
        return True

    def wait(self, is_done: Callable[[], bool]) -> bool:
        """Wait until something is true; returns whether it became true in time."""
        deadline = time.monotonic() + self.wait_minutes * 60
        while not is_done():
            if time.monotonic() >= deadline:
                return False
            time.sleep(_PAUSE_SECONDS)
        return True

    def _cdk(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(CDK), *arguments],
            cwd=self.directory,
            check=False,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    def _first_failure(self, stack: str) -> str:
        pages = (
            self.client("cloudformation")
            .get_paginator("describe_stack_events")
            .paginate(StackName=stack)
        )
        failures = [
            f"{each['LogicalResourceId']}: {each.get('ResourceStatusReason', '')}"
            for page in pages
            for each in page["StackEvents"]
            if each["ResourceStatus"].endswith("_FAILED")
        ]
        return (
            failures[-1] if failures else "unknown reason"
        )  # the newest event is the first in the list

    def _resources(self, stack: str) -> dict[str, list[str]]:
        pages = (
            self.client("cloudformation")
            .get_paginator("list_stack_resources")
            .paginate(StackName=stack)
        )
        found: dict[str, list[str]] = {}
        for page in pages:
            for each in page["StackResourceSummaries"]:
                found.setdefault(each["ResourceType"], []).append(
                    each.get("PhysicalResourceId", "")
                )
        return found

    def _endpoint_names(self, arns: Collection[str]) -> list[str]:
        """Return the names of endpoints, which their ARNs have in lower case only."""
        pages = self.client("sagemaker").get_paginator("list_endpoints").paginate()
        listed = (each for page in pages for each in page["Endpoints"])
        return [each["EndpointName"] for each in listed if each["EndpointArn"] in arns]

    def _empty(self, bucket: str) -> None:
        s3 = self.client("s3")
        for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket):
            for each in page.get("Contents", []):
                s3.delete_object(Bucket=bucket, Key=each["Key"])

    def delete_log_group(self, name: str) -> None:
        """Delete a log group, if it exists."""
        logs = self.client("logs")
        try:
            logs.delete_log_group(logGroupName=name)
        except logs.exceptions.ResourceNotFoundException:
            return
