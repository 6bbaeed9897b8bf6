"""The simulated account fails at chosen steps, and records what each step did to running fleets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from botocore.exceptions import ClientError
from shared_endpoint import Resources, deploy, served

from cdk_rehearse import Behaviour, SimulatedAccount
from cdk_rehearse.failures import Attempt, attempt, fail_each_change
from cdk_rehearse.stacks.stack import Stack
from cdk_rehearse.steps import Step, When

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("loopback_stack")]

NAME = "Failing"


def with_topic(archive: str, topic: str = "old", **more: Any) -> Resources:
    """An endpoint of one archive, and after it a topic whose name changes in place."""
    properties = {"DisplayName": topic}
    after = {"Type": "AWS::SNS::Topic", "Properties": properties, "DependsOn": ["Endpoint"]}
    return {**served(archive, **{"retains": True, **more}), "Topic": after}


OLD, NEW = with_topic("one.tar.gz"), with_topic("two.tar.gz", topic="new")
CHANGES = [
    Step("replace", "Model"),
    Step("replace", "Config"),
    Step("update", "Endpoint"),
    Step("update", "Topic"),
]


@pytest.fixture
def running(aws: SimulatedAccount) -> SimulatedAccount:
    """The account with an endpoint that was scaled out to four instances."""
    scale(deploy(aws, OLD, NAME), aws, 4)
    return aws


def scale(stack: Stack, aws: SimulatedAccount, count: int) -> None:
    """Set the number of instances, as Application Auto Scaling does."""
    name = stack.resources["Endpoint"].physical.attributes["EndpointName"]
    wanted = [{"VariantName": "AllTraffic", "DesiredInstanceCount": count}]
    aws.client("sagemaker").update_endpoint_weights_and_capacities(
        EndpointName=name, DesiredWeightsAndCapacities=wanted
    )


def test_scaling_keeps_the_weight(running: SimulatedAccount) -> None:
    """A request that names only the count leaves the weight of the variant."""
    name = running.stack(NAME).resources["Endpoint"].physical.attributes["EndpointName"]
    (variant,) = running.client("sagemaker").describe_endpoint(EndpointName=name)[
        "ProductionVariants"
    ]
    assert (variant["CurrentInstanceCount"], variant["CurrentWeight"]) == (4, 1)


def update(aws: SimulatedAccount, resources: Resources = NEW) -> Callable[[], Stack]:
    return lambda: deploy(aws, resources, NAME)


def test_every_failure_of_an_update_returns_to_the_old_state(running: SimulatedAccount) -> None:
    """Each change fails before and after its service,
    and the rollback restores endpoint and topic.
    """
    before = running.stack(NAME).resources

    attempts = list(fail_each_change(running, update(running), CHANGES))

    expected = [(step, when) for step in CHANGES for when in ("before", "after")]
    assert [(failed.failed, failed.when) for failed in attempts] == expected
    for failed in attempts:
        assert failed.statuses == ("UPDATE_ROLLBACK_COMPLETE",), failed
        assert failed.drops == (), failed
        assert failed.leftovers == [], failed
        assert not [reading for reading in failed.readings if reading.refusal]
    assert running.stack(NAME).resources == before

    assert update(running)().status == "UPDATE_COMPLETE"
    assert running.fleets.drops == []


@pytest.mark.parametrize(("policy", "is_left"), [("Retain", True), ("RetainExceptOnCreate", False)])
def test_rollback_keeps_what_the_update_created(
    running: SimulatedAccount, policy: str, is_left: bool
) -> None:
    """An update leaves a new bucket that the template retains,
    and not the new half of a replacement.
    """
    kept = {"DeletionPolicy": policy, "UpdateReplacePolicy": "Retain"}
    added = {"Added": {"Type": "AWS::S3::Bucket", **kept}, "Model": {**NEW["Model"], **kept}}
    running.behaviour = Behaviour(failing={"Topic": "after"})
    before = names_of_what_is_listed(running)
    stack = update(running, {**NEW, **added})()
    assert stack.status == "UPDATE_ROLLBACK_COMPLETE"
    skipped = [event.logical_id for event in stack.events if event.status == "DELETE_SKIPPED"]
    assert skipped == ["Added"] * is_left
    left = names_of_what_is_listed(running) - before
    assert [name.rpartition("-")[0] for name in left] == ["failing-added"] * is_left


def names_of_what_is_listed(aws: SimulatedAccount) -> set[str]:
    """The models and buckets of the account."""
    models = aws.client("sagemaker").list_models()["Models"]
    buckets = aws.client("s3").list_buckets()["Buckets"]
    return {model["ModelName"] for model in models} | {bucket["Name"] for bucket in buckets}


def fail_each_restore(
    aws: SimulatedAccount, deploy: Callable[[], Stack], last: Step
) -> Iterator[Attempt]:
    """Fail each step of a rollback, after the ``last`` change of the update has failed."""
    failing = replace(aws.behaviour, failing={last.subject: "after"})
    moments: tuple[When, ...] = ("before", "after")
    steps = attempt(aws, deploy, failing, last, "after").steps
    restored = [step for step in steps if step.action == "restore"]
    for step, when in product(restored, moments):
        fails_twice = replace(failing, failing_restore={step.subject: when})
        yield attempt(aws, deploy, fails_twice, step, when)


def test_failed_rollback_can_be_continued(running: SimulatedAccount) -> None:
    """Each step of the rollback fails; ContinueUpdateRollback completes it with the old content."""
    before = running.stack(NAME).resources
    attempts = list(fail_each_restore(running, update(running), CHANGES[-1]))
    assert len(attempts) == 2 * len(CHANGES)
    for failed in attempts:
        assert failed.statuses == ("UPDATE_ROLLBACK_FAILED", "UPDATE_ROLLBACK_COMPLETE"), failed
        restored = [step for step in failed.steps if step.action == "restore"]
        assert len(restored) == len(set(restored)) == len(CHANGES)
        assert failed.drops == ()
        assert failed.leftovers == []

    assert running.stack(NAME).resources == before
    topic = before["Topic"].physical.id
    attributes = running.client("sns").get_topic_attributes(TopicArn=topic)["Attributes"]
    assert attributes["DisplayName"] == "old"


def test_rollback_is_continued_through_the_api(running: SimulatedAccount) -> None:
    """ContinueUpdateRollback is refused in any other state;
    a deployment is refused until it has ended.
    """
    client = running.client("cloudformation")
    with pytest.raises(ClientError, match="is in CREATE_COMPLETE state and can not be rolled back"):
        client.continue_update_rollback(StackName=NAME)
    running.behaviour = Behaviour(
        failing={"Topic": "after"}, failing_restore={"Endpoint": "before"}
    )
    assert update(running)().status == "UPDATE_ROLLBACK_FAILED"
    with pytest.raises(
        ClientError, match="is in UPDATE_ROLLBACK_FAILED state and can not be updated"
    ):
        client.create_change_set(
            StackName=NAME, ChangeSetName="next", TemplateBody='{"Resources": {}}'
        )
    running.behaviour = Behaviour()
    client.continue_update_rollback(StackName=NAME)
    client.get_waiter("stack_rollback_complete").wait(StackName=NAME, WaiterConfig={"Delay": 0.1})
    assert running.stack(NAME).status == "UPDATE_ROLLBACK_COMPLETE"
    assert update(running)().status == "UPDATE_COMPLETE"


def test_update_without_retained_counts_drops_a_scaled_fleet(running: SimulatedAccount) -> None:
    """The step, the endpoint and both counts are recorded;
    a fleet that was not scaled does not drop.
    """
    assert update(running, with_topic("two.tar.gz", retains=False))().status == "UPDATE_COMPLETE"
    (drop,) = running.fleets.drops
    assert drop.after.moment == Step("update", "Endpoint")
    assert (drop.before.count, drop.after.count) == (4, 1)
    assert str(drop).endswith("variant AllTraffic: 4 instances became 1")

    scale(running.stack(NAME), running, 1)
    update(running, with_topic("one.tar.gz", retains=False, count=2))()
    update(running, with_topic("one.tar.gz", retains=False, count=1))()
    assert running.fleets.drops == [drop]


@pytest.mark.parametrize("is_sent", [False, True])
def test_end_of_retained_counts_may_drop_a_scaled_fleet(
    running: SimulatedAccount, is_sent: bool
) -> None:
    """AWS does not document whether the change of this property alone is sent to SageMaker."""
    running.behaviour = Behaviour(updates_with_the_same_config=is_sent)
    assert update(running, with_topic("one.tar.gz", retains=False))().status == "UPDATE_COMPLETE"
    drops = [(drop.before.count, drop.after.count) for drop in running.fleets.drops]
    assert drops == ([(4, 1)] if is_sent else [])


def test_failed_creation_is_deleted(aws: SimulatedAccount) -> None:
    """After each failure of a first deployment the stack is rolled back,
    deleted and created again.
    """
    names = iter(f"{NAME}{number}" for number in range(100))
    steps = [Step("create", name) for name in OLD]
    for failed in fail_each_change(aws, lambda: deploy(aws, OLD, next(names)), steps):
        assert failed.statuses == ("ROLLBACK_COMPLETE", "DELETE_COMPLETE"), failed
        assert failed.leftovers == [], failed
    assert aws.client("sagemaker").list_endpoints()["Endpoints"] == []


def test_failed_deletion_can_be_repeated(running: SimulatedAccount) -> None:
    """DELETE_FAILED names the resource, and the second attempt deletes the rest."""
    running.behaviour = replace(running.behaviour, failing_delete=["Config"])
    assert running.destroy(NAME).status == "DELETE_FAILED"
    assert "failed to delete: [Config]" in running.stack(NAME).reason
    running.behaviour = Behaviour()
    assert running.destroy(NAME).status == "DELETE_COMPLETE"
