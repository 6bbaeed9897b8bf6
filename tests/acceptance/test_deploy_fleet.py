"""A fleet that has scaled to four instances, when its scaling is removed and
when its stack is deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import RemovalPolicy
from fleet_app import STACK, FleetState, synthesize
from stack_view import StackView

from cdk_rehearse import SimulatedAccount
from cdk_rehearse.steps import Step

BUDGET_MINUTES = 2

Deploy = Callable[[FleetState], str]


@pytest.fixture
def aws() -> Iterator[SimulatedAccount]:
    with SimulatedAccount() as account:
        account.bootstrap()
        yield account


@pytest.fixture
def deploy(aws: SimulatedAccount, tmp_path: Path) -> Deploy:
    """Deploys a state of the stack and returns the stack's status."""

    def run(state: FleetState) -> str:
        name = f"state-{len(list(tmp_path.iterdir()))}"
        return aws.deploy(synthesize(tmp_path, name, state), STACK).status

    return run


def desired_count(view: StackView) -> int:
    (variant,) = view.endpoint("SingleName")["ProductionVariants"]
    return int(variant["DesiredInstanceCount"])


@pytest.mark.parametrize(
    ("unscaled", "expected"),
    [
        (FleetState(label=2, is_scaled=False, retains_counts=True), 4),
        (FleetState(label=2, is_scaled=False, initial_instance_count=4), 4),
        (FleetState(label=2, is_scaled=False), 1),
    ],
    ids=["retained", "set", "neither"],
)
def test_fleet_without_its_scaling(
    aws: SimulatedAccount, deploy: Deploy, unscaled: FleetState, expected: int
) -> None:
    """The documented ways keep all instances, with new content and then with
    another instance type.
    """
    view = StackView(aws, STACK)
    assert deploy(FleetState()) == "CREATE_COMPLETE"
    view.set_desired_instance_count("SingleName", 4)
    config = view.endpoint("SingleName")["EndpointConfigName"]
    assert deploy(unscaled) == "UPDATE_COMPLETE"
    assert (desired_count(view), view.scalable_targets("SingleName")) == (expected, [])
    if expected == 1:  # what the pages warn of
        return
    scaled = FleetState(
        initial_instance_count=unscaled.initial_instance_count, instance_type="ml.g5.2xlarge"
    )
    assert deploy(scaled) == "UPDATE_COMPLETE"
    assert view.endpoint("SingleName")["EndpointConfigName"] != config
    assert (desired_count(view), len(view.scalable_targets("SingleName"))) == (4, 1)


def test_retained_endpoint_has_all_that_it_needs(aws: SimulatedAccount, deploy: Deploy) -> None:
    """After the deletion of the stack each instance can start again;
    the page's commands delete the rest.
    """
    assert deploy(FleetState(removal_policy=RemovalPolicy.RETAIN)) == "CREATE_COMPLETE"
    view = StackView(aws, STACK)
    name, bucket = view.output("SingleName"), _bucket(view)
    role = view.model("SingleName")["ExecutionRoleArn"].rpartition("/")[2]
    view.set_desired_instance_count("SingleName", 4)
    assert aws.destroy(STACK).status == "DELETE_COMPLETE"
    aws.fleets.forget()
    aws.fleets.inspect(Step("end", "DELETE_COMPLETE"))
    assert aws.fleets.losses == []
    iam = aws.client("iam")
    assert len(iam.list_role_policies(RoleName=role)["PolicyNames"]) == 1  # the grant of the app
    _delete_as_documented(aws, name, bucket)
    assert aws.client("sagemaker").list_endpoints()["Endpoints"] == []
    assert bucket not in [each["Name"] for each in aws.client("s3").list_buckets()["Buckets"]]


@pytest.mark.parametrize(
    ("policy", "kept"),
    [
        (
            RemovalPolicy.RETAIN,
            {"Endpoint", "EndpointConfig", "Model", "ManagedPolicy", "Role", "Policy"},
        ),
        (RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE, set()),
    ],
    ids=["RETAIN", "RETAIN_ON_UPDATE_OR_DELETE"],
)
def test_failed_first_deployment_leaves_what_the_page_lists(
    aws: SimulatedAccount, deploy: Deploy, policy: RemovalPolicy, kept: set[str]
) -> None:
    """Buckets and log groups stay, and an endpoint only with RETAIN; the next attempt succeeds."""
    assert deploy(FleetState(removal_policy=policy, is_broken=True)) == "ROLLBACK_COMPLETE"
    events = aws.stack(STACK).events
    left = {each.type.rpartition("::")[2] for each in events if each.status == "DELETE_SKIPPED"}
    assert left == {"Bucket", "LogGroup"} | kept
    assert bool(aws.client("sagemaker").list_endpoints()["Endpoints"]) is bool(kept)
    assert aws.destroy(STACK).status == "DELETE_COMPLETE"
    assert deploy(FleetState(removal_policy=policy)) == "CREATE_COMPLETE"


def _bucket(view: StackView) -> str:
    source = view.model("SingleName")["PrimaryContainer"]["ModelDataSource"]["S3DataSource"][
        "S3Uri"
    ]
    return str(source).removeprefix("s3://").partition("/")[0]


def _delete_as_documented(aws: SimulatedAccount, name: str, bucket: str) -> None:
    """The commands of docs/guides/cost.md, as boto3 calls."""
    sagemaker, s3 = aws.client("sagemaker"), aws.client("s3")
    config: Any = sagemaker.describe_endpoint(EndpointName=name)["EndpointConfigName"]
    variants = sagemaker.describe_endpoint_config(EndpointConfigName=config)["ProductionVariants"]
    sagemaker.delete_endpoint(EndpointName=name)
    sagemaker.delete_endpoint_config(EndpointConfigName=config)
    for each in variants:
        sagemaker.delete_model(ModelName=each["ModelName"])
    for found in s3.list_objects_v2(Bucket=bucket)["Contents"]:
        s3.delete_object(Bucket=bucket, Key=found["Key"])
    s3.delete_bucket(Bucket=bucket)
