"""What rehearsals find in the life of a stack: networks in use, busy components,
log groups, quotas.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from shared_endpoint import Resources, component, scaled, shared
from small_assembly import codes, endpoint, rehearsal

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("loopback_stack")]

LOG_GROUP = {
    "Type": "AWS::Logs::LogGroup",
    "Properties": {"LogGroupName": "/aws/sagemaker/Endpoints/digits"},
}
RETAIN = {"DeletionPolicy": "Retain"}


def in_a_network(**policies: dict[str, str]) -> Resources:
    """An endpoint that is retained with its model,
    in a subnet and a security group of the stack.
    """
    network = {
        "Net": {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.0.0.0/16"}},
        "Subnet": {
            "Type": "AWS::EC2::Subnet",
            "Properties": {"VpcId": {"Ref": "Net"}, "CidrBlock": "10.0.0.0/24"},
        },
        "Group": {
            "Type": "AWS::EC2::SecurityGroup",
            "Properties": {"VpcId": {"Ref": "Net"}, "GroupDescription": "of the endpoint"},
        },
    }
    resources = {name: {**each, **RETAIN} for name, each in endpoint().items()}
    resources["Model"]["Properties"]["VpcConfig"] = {
        "Subnets": [{"Ref": "Subnet"}],
        "SecurityGroupIds": [{"Fn::GetAtt": ["Group", "GroupId"]}],
    }
    attaches = {"Effect": "Allow", "Action": "ec2:*", "Resource": "*"}
    resources["Policy"]["Properties"]["PolicyDocument"]["Statement"].append(attaches)
    return {
        **{name: {**each, **policies.get(name, {})} for name, each in network.items()},
        **resources,
    }


@pytest.mark.parametrize(
    ("policies", "kept"),
    [
        ({}, "Group"),
        ({"Group": RETAIN}, "Subnet"),
        ({"Group": RETAIN, "Subnet": RETAIN, "Net": RETAIN}, ""),
    ],
)
def test_network_of_a_retained_endpoint_cannot_be_deleted(
    tmp_path: Path, policies: dict[str, dict[str, str]], kept: str
) -> None:
    """EC2 refuses to delete what has network interfaces;
    the report names the resource and the endpoint.
    """
    found = rehearsal(tmp_path, None, in_a_network(**policies))
    assert found.deletion is not None
    assert codes(found) == ({"rehearse-deletion-fails"} if kept else set())
    if kept:
        assert f"[{kept}]" in found.deletion.reason
        assert "a network interface of endpoint digits" in found.deletion.reason
        assert "in another stack" in found.problems[0].hint
        assert "S" not in [leftover.logical_id for leftover in found.deletion.leftovers]


def busy(maximum: int, memory: int) -> Resources:
    """A component that scales out to two of four GPUs, beside one that always has two."""
    return shared(
        maximum,
        Model2=shared()["Model"],
        Two=component("Model2", copies=2, memory=memory),
        **scaled(),
    )


@pytest.mark.parametrize(("instances", "found"), [(1, {"rehearse-update-fails"}), (2, set())])
def test_update_needs_room_beside_the_copies_of_busy_components(
    tmp_path: Path, instances: int, found: set[str]
) -> None:
    """Before the update, components with scaling run as many copies as their
    maximum and the fleet allow.
    """
    report = rehearsal(tmp_path, busy(instances, 8192), busy(instances, 9216))
    assert codes(report) == found
    if found:
        assert "raise max_instance_count" in report.problems[0].hint


def with_log_group(*, denies: bool, name: str = "digits") -> Resources:
    """An endpoint whose role may write logs, and the log group of the endpoint."""
    resources = endpoint(name=name)
    statements = resources["Policy"]["Properties"]["PolicyDocument"]["Statement"]
    statements.append({"Effect": "Allow", "Action": "logs:*", "Resource": "*"})
    if denies:
        statements.append({"Effect": "Deny", "Action": "logs:CreateLogGroup", "Resource": "*"})
    return {"LogGroup": LOG_GROUP, **resources}


@pytest.mark.parametrize(
    ("denies", "found"), [(False, {"rehearse-log-group-returns"}), (True, set())]
)
def test_log_group_may_return_after_its_deletion(
    tmp_path: Path, denies: bool, found: set[str]
) -> None:
    """Late events create it again if the role allowed that; then the next deployment fails."""
    for report in (
        rehearsal(tmp_path, None, with_log_group(denies=denies)),
        rehearsal(tmp_path, with_log_group(denies=denies), None),
    ):
        assert codes(report) - {"rehearse-data-lost"} == found
        assert {problem.code for problem in report.errors} <= {"rehearse-data-lost"}


def test_log_group_of_another_endpoint_or_a_retained_one_does_not_return(tmp_path: Path) -> None:
    """Only the log group of a deleted endpoint is in the way of the next deployment."""
    assert codes(rehearsal(tmp_path, None, with_log_group(denies=False, name="letters"))) == set()
    resources = with_log_group(denies=False)
    resources["LogGroup"] = {**resources["LogGroup"], **RETAIN}
    assert codes(rehearsal(tmp_path, None, resources)) == set()


def test_both_instance_types_of_an_update_need_quota(tmp_path: Path) -> None:
    """The new fleet starts beside the old one, which has another type."""
    old, new = endpoint(instance_type="ml.g5.xlarge"), endpoint(instance_type="ml.g6.xlarge")
    (counted,) = rehearsal(tmp_path, old, new).instances
    assert (counted.before, counted.peak, counted.after) == (1, 2, 1)
    assert counted.peak_by_type == {"ml.g5.xlarge": 1, "ml.g6.xlarge": 1}


def retaining(value: bool) -> dict[str, Any]:
    resources = endpoint()
    resources["Endpoint"]["Properties"]["RetainAllVariantProperties"] = value
    return resources


def test_update_with_the_same_configuration_depends_on_aws(tmp_path: Path) -> None:
    """AWS does not document whether it starts new instances."""
    found = rehearsal(tmp_path, retaining(False), retaining(True), orders=2)
    note = "whether step 1, Endpoint, starts new instances for the same configuration"
    assert note in found.depends_on_aws
    assert codes(found) == set()
