"""How an account answers the questions about stopped endpoints and about Triton's own metrics."""

from __future__ import annotations

import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import boto3
from botocore.exceptions import ClientError

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_tools.operations.stopping.aws_calls import AwsCalls
from constructs_triton_tools.operations.stopping.stop import (
    prepare_stop,
    start_endpoint,
    stop_endpoint,
)

from .account import Account

_STOPPED, _PUBLISHED = "TritonAccountCheckStopped", "TritonAccountCheckPublished"


def stopped(account: Account) -> str:
    """Stop an endpoint of a stack, deploy another model meanwhile, start it, and deploy again."""
    created = account.deploy(_STOPPED, 1)
    if not created.is_created:
        return f"create {created}"
    name = account.output(_STOPPED, "Name")
    capacities = [{"VariantName": "AllTraffic", "DesiredInstanceCount": 2}]
    account.client("sagemaker").update_endpoint_weights_and_capacities(
        EndpointName=name, DesiredWeightsAndCapacities=capacities
    )
    account.wait(lambda: account.endpoint(_STOPPED)["EndpointStatus"] == "InService")
    before = _policies(account, name)
    aws = AwsCalls(boto3.Session(), timedelta(hours=1))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "stopped.json"
        stop_endpoint(aws, prepare_stop(aws, name, file, force=True), file)
        drift = _drift(account)
        night = account.deploy(_STOPPED, 2)
        try:
            start_endpoint(aws, name, file, now=datetime.now(UTC))
        except InvalidValueError as error:
            return f"create {created}; update at night {night}; start failed: {error}"
    is_same = _policies(account, name) == before
    (variant,) = account.endpoint(_STOPPED)["ProductionVariants"]
    return (
        f"create {created}; drift of the stopped endpoint {drift}; update at night {night}; "
        f"started with the deployment configuration and {variant.get('DesiredInstanceCount')} "
        f"instances wanted; policies with {'the same' if is_same else 'other'} ARNs; "
        f"{_repaired(account)}; next update {account.deploy(_STOPPED, 3)}"
    )


def published(account: Account) -> str:
    """Look for the metrics of a model in CloudWatch, and for the policy on its queue time."""
    created = account.deploy(_PUBLISHED, 1)
    if not created.is_created:
        return f"create {created}"
    client = account.client("cloudwatch")

    def names() -> list[str]:
        found = client.list_metrics(Namespace="Triton")["Metrics"]
        return sorted({str(each["MetricName"]) for each in found})

    account.wait(lambda: bool(names()))
    policies = _policies(account, account.output(_PUBLISHED, "Name"))
    return (
        f"create {created}; metrics in namespace Triton: {', '.join(names()) or 'none'}; "
        f"policies that were accepted: {len(policies)}"
    )


def _policies(account: Account, endpoint_name: str) -> list[str]:
    found: dict[str, Any] = account.client("application-autoscaling").describe_scaling_policies(
        ServiceNamespace="sagemaker", ResourceId=f"endpoint/{endpoint_name}/variant/AllTraffic"
    )
    return sorted(str(each["PolicyARN"]) for each in found["ScalingPolicies"])


def _drift(account: Account) -> str:
    """What drift detection says of an endpoint that is deleted."""
    client = account.client("cloudformation")
    try:
        resources = client.describe_stack_resources(StackName=_STOPPED)["StackResources"]
        ids = {each["ResourceType"]: each["LogicalResourceId"] for each in resources}
        endpoint = ids["AWS::SageMaker::Endpoint"]
        found = client.detect_stack_resource_drift(StackName=_STOPPED, LogicalResourceId=endpoint)
    except ClientError as error:
        return f"not detected ({error.response['Error']['Message']})"
    return str(found["StackResourceDrift"]["StackResourceDriftStatus"])


def _repaired(account: Account) -> str:
    """Continue the rollback of the update that failed at night."""
    client = account.client("cloudformation")

    def status() -> str:
        return str(client.describe_stacks(StackName=_STOPPED)["Stacks"][0]["StackStatus"])

    if status() != "UPDATE_ROLLBACK_FAILED":
        return "no rollback to continue"
    try:
        client.continue_update_rollback(StackName=_STOPPED)
    except ClientError as error:
        return f"continued rollback refused ({error.response['Error']['Message']})"
    account.wait(lambda: not status().endswith("IN_PROGRESS"))
    return f"continued rollback {status()}"
