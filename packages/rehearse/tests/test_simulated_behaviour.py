"""What the simulated account does when it is not calm: orders, rollbacks, duplicates,
quotas and launches.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ClientError
from shared_endpoint import TRUST, Resources, deploy, policy, served

from cdk_rehearse import Behaviour, SimulatedAccount
from cdk_rehearse.behaviour import CALM
from cdk_rehearse.stacks.change import order
from cdk_rehearse.stacks.stack import Stack
from constructs_triton_core.cloud_assembly.template import Template
from constructs_triton_core.errors import InvalidValueError

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("loopback_stack")]
OLD, NEW = "one.tar.gz", "two.tar.gz"
UNFRIENDLY = Behaviour.unfriendly(1)


def reading(archive: str, readable: str) -> Resources:
    """An endpoint whose role may read these archives."""
    return served(archive, ("s3:GetObject", f"arn:aws:s3:::models/{readable}"), ("ecr:*", "*"))


def topics(count: int) -> dict[str, Any]:
    return {
        f"Topic{number}": {"Type": "AWS::SNS::Topic", "Properties": {}} for number in range(count)
    }


def test_orders_depend_on_the_seed_and_keep_dependencies() -> None:
    """Independent resources are in another order for another seed;
    a dependency always comes first.
    """
    body = {**topics(5), "Last": {"Type": "AWS::SNS::Topic", "DependsOn": ["Topic0", "Topic1"]}}
    template = Template({"Resources": body})
    behaviours = [replace(UNFRIENDLY, seed=seed) for seed in range(20)]

    orders = [order(template, behaviour, "change") for behaviour in behaviours]

    assert orders == [order(template, behaviour, "change") for behaviour in behaviours]
    assert len(set(orders)) > 10
    for created in orders:
        assert created.index("Last") > max(created.index("Topic0"), created.index("Topic1"))
    for behaviour in behaviours:
        deleted = order(template, behaviour, "delete", is_reversed=True)
        assert deleted.index("Last") < min(deleted.index("Topic0"), deleted.index("Topic1"))
    assert order(template, CALM, "change") == template.order


def test_injected_failure_is_rolled_back(aws: SimulatedAccount) -> None:
    """A failing change rolls the stack back, whether the service carried it out or not."""
    stack = deploy(aws, topics(4))
    assert stack.status == "CREATE_COMPLETE"
    topic = {"Type": "AWS::SNS::Topic", "Properties": {"DisplayName": "new"}}
    changed = dict.fromkeys(topics(4), topic)
    for seed in range(4):
        aws.behaviour = Behaviour(seed=seed, failure_rate=0.9)
        deploy(aws, changed, stack.name)
        assert stack.status == "UPDATE_ROLLBACK_COMPLETE"
        assert "Internal Failure" in stack.reason
        for deployed in stack.resources.values():
            found = aws.client("sns").get_topic_attributes(TopicArn=deployed.physical.id)
            assert not found["Attributes"].get("DisplayName")


def test_inline_policies_of_a_role_have_a_quota(aws: SimulatedAccount) -> None:
    """Beyond 10,240 characters IAM refuses the policy with its own words."""
    role = {"Role": {"Type": "AWS::IAM::Role", "Properties": {"AssumeRolePolicyDocument": TRUST}}}
    long = policy(
        *[("s3:GetObject", f"arn:aws:s3:::models/{number:0>150}") for number in range(50)]
    )
    stack = deploy(aws, {**role, "Policy": long})
    assert stack.status == "ROLLBACK_COMPLETE"
    assert "Maximum policy size of 10240 bytes exceeded for role" in stack.reason


def test_managed_policies_have_quotas(aws: SimulatedAccount) -> None:
    """IAM refuses a managed policy of more than 6,144 characters, and the eleventh of a role."""
    iam = aws.client("iam")
    statement = {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "*"}
    short = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    long = json.dumps(
        {"Version": "2012-10-17", "Statement": [{**statement, "Resource": "a" * 6200}]}
    )
    with pytest.raises(ClientError, match="Cannot exceed quota for PolicySize: 6144"):
        iam.create_policy(PolicyName="long", PolicyDocument=long)
    iam.create_role(RoleName="full", AssumeRolePolicyDocument=json.dumps(TRUST))
    arns = []
    for number in range(11):
        created = iam.create_policy(PolicyName=f"short{number}", PolicyDocument=short)
        arns.append(created["Policy"]["Arn"])
    for arn in arns[:10]:
        iam.attach_role_policy(RoleName="full", PolicyArn=arn)
    with pytest.raises(ClientError, match="Cannot exceed quota for PoliciesPerRole: 10"):
        iam.attach_role_policy(RoleName="full", PolicyArn=arns[10])


def test_new_policies_take_effect_later(aws: SimulatedAccount) -> None:
    """The first requests of a role may miss a new policy,
    and a removed policy is missed at once.
    """
    iam = aws.client("iam")
    iam.create_role(RoleName="slow", AssumeRolePolicyDocument=json.dumps(TRUST))
    document = json.dumps(policy(("s3:GetObject", "*"))["Properties"]["PolicyDocument"])
    iam.put_role_policy(RoleName="slow", PolicyName="read", PolicyDocument=document)
    aws.behaviour = _slow_for("read")

    role = f"arn:aws:iam::{aws.api.account}:role/slow"
    effective = aws.access.policies.effective
    assert [len(effective(role)) for _ in range(5)] == [0, 0, 0, 1, 1]

    iam.delete_role_policy(RoleName="slow", PolicyName="read")
    assert effective(role) == []


def _slow_for(policy_name: str) -> Behaviour:
    """Return a behaviour in which three requests miss the policy of this name."""
    for seed in range(50):
        behaviour = Behaviour(seed=seed, propagation=3)
        if behaviour.draw("propagation", policy_name) >= 0.75:
            return behaviour
    raise AssertionError("no seed is slow for this policy")


def test_update_needs_the_permissions_of_both_fleets(aws: SimulatedAccount) -> None:
    """An update fails with the reason when the role lost the permission for the old archive."""
    stack = deploy(aws, reading(OLD, OLD))
    assert stack.status == "CREATE_COMPLETE"
    aws.behaviour = Behaviour(launches_old_fleet=True)
    deploy(aws, reading(NEW, NEW), stack.name)
    assert stack.status == "UPDATE_ROLLBACK_COMPLETE"
    assert f"Could not access model data at s3://models/{OLD}: 403" in stack.reason
    assert aws.fleets.losses != []
    aws.fleets.forget()
    assert deploy(aws, reading(NEW, "*"), stack.name).status == "UPDATE_COMPLETE"
    assert aws.fleets.losses == []
    assert aws.destroy(stack.name).status == "DELETE_COMPLETE"


@pytest.mark.parametrize(
    ("behaviour", "status", "in_use"),
    [
        (Behaviour(endpoint_update="fails"), "UPDATE_ROLLBACK_COMPLETE", 0),
        (Behaviour(endpoint_update="reverts"), "UPDATE_COMPLETE", 2),
    ],
    ids=["fails", "reverts"],
)
def test_update_that_sagemaker_does_not_keep(
    aws: SimulatedAccount, behaviour: Behaviour, status: str, in_use: int
) -> None:
    """The endpoint keeps the old configuration; if nothing says so,
    what it uses cannot be deleted.
    """
    stack = deploy(aws, reading(OLD, "*"))
    before = endpoint_config(aws, stack)
    aws.behaviour = behaviour
    assert deploy(aws, reading(NEW, "*"), stack.name).status == status
    assert endpoint_config(aws, stack) == before
    listed = aws.client("cloudformation").list_stack_resources(StackName=stack.name)[
        "StackResourceSummaries"
    ]
    assert "DELETE_COMPLETE" not in [event["ResourceStatus"] for event in listed]
    refused = [event.reason for event in stack.events if event.status == "DELETE_FAILED"]
    assert ["is in use by endpoint" in reason for reason in refused] == [True] * in_use


def test_endpoint_has_the_deployment_of_its_last_update(aws: SimulatedAccount) -> None:
    """``DescribeEndpoint`` returns how the last deployment shifted the traffic,
    as an app asked for.
    """
    stack, found = None, []
    for archive, kind in ((OLD, "ALL_AT_ONCE"), (NEW, "CANARY")):
        routing = {"Type": kind, "WaitIntervalInSeconds": 60}
        deployment = {"BlueGreenUpdatePolicy": {"TrafficRoutingConfiguration": routing}}
        resources = reading(archive, "*")
        resources["Endpoint"]["Properties"]["DeploymentConfig"] = deployment
        stack = deploy(aws, resources, *([stack.name] if stack else []))
        name = stack.resources["Endpoint"].physical.attributes["EndpointName"]
        described = aws.client("sagemaker").describe_endpoint(EndpointName=name)
        found.append((deployment, described["LastDeploymentConfig"]))
    assert [wanted == given for wanted, given in found] == [True, True]


def endpoint_config(aws: SimulatedAccount, stack: Stack) -> str:
    """The configuration that the stack's endpoint runs."""
    name = stack.resources["Endpoint"].physical.attributes["EndpointName"]
    found: str = aws.client("sagemaker").describe_endpoint(EndpointName=name)["EndpointConfigName"]
    return found


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"failing": {"Role": "befor"}}, r"failing\['Role'\]: .*did you mean \"before\"\?"),
        ({"endpoint_update": "revert"}, 'endpoint_update: .*did you mean "reverts"?'),
        ({"failing_delete": "Endpoint"}, r"failing_delete: .*write \['Endpoint'\]"),
        ({"without_capacity": ["ml.g5.xlage"]}, 'did you mean "ml.g5.xlarge"?'),
        ({"quotas": {"g5.xlarge": 1}}, "ml.g5.xlarge"),
        ({"failure_rate": 20}, "failure_rate: must be from 0 to 1, got 20"),
    ],
)
def test_a_typing_error_in_a_behaviour_is_an_error(wrong: dict[str, Any], message: str) -> None:
    """A failure that never happens would make a test of it succeed."""
    with pytest.raises(InvalidValueError, match=message):
        Behaviour(**wrong)
