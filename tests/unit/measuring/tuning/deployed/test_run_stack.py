"""The stack of a search in AWS, in a simulated account."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from moto.servicequotas.responses import ServiceQuotasResponse

from cdk_rehearse import Behaviour, SimulatedAccount
from constructs_triton.cli import main
from constructs_triton_core.aws_reader import AwsReader, make_session
from constructs_triton_tools.measuring.tuning.deployed import run_stack
from constructs_triton_tools.measuring.tuning.deployed.place import AwsPlace
from constructs_triton_tools.measuring.tuning.deployed.policies import policy_document
from constructs_triton_tools.measuring.tuning.deployed.run_stack import (
    StackFailedError,
    create_stack,
    delete_stack,
    find_stacks,
)
from constructs_triton_tools.measuring.tuning.deployed.run_template import make_template

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("loopback_stack")]

TRUSTED = {"Effect": "Allow", "Principal": {"Service": "sagemaker.amazonaws.com"}, "Action": "sts:AssumeRole"}
TRUST = {"Version": "2012-10-17", "Statement": [TRUSTED]}
ROLE = "arn:aws:iam::123456789012:role/models"
NAME = f"{run_stack.NAME_PREFIX}0a1b2c3d-1"
ARCHIVE = f"{run_stack.NAME_PREFIX}0a1b2c3d/a.tar.gz"
TENSORS = 'input { name: "X" data_type: TYPE_FP32 dims: 4 } output { name: "Y" data_type: TYPE_FP32 dims: 4 }'
EXPIRES = datetime(2040, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimulatedAccount]:
    """An account with a bucket, an archive, and a role with the policy that ``--policy models`` prints."""
    monkeypatch.setattr(run_stack, "PAUSE_SECONDS", 0.05)
    with SimulatedAccount() as account:
        for name, value in account.variables().items():
            monkeypatch.setenv(name, value)
        account.client("s3").create_bucket(Bucket="archives")
        account.client("s3").put_object(Bucket="archives", Key=ARCHIVE, Body=b"")
        iam = account.client("iam")
        iam.create_role(RoleName="models", AssumeRolePolicyDocument=json.dumps(TRUST))
        allowed = json.dumps(policy_document("models", ROLE, "archives"))
        iam.put_role_policy(RoleName="models", PolicyName="allowed", PolicyDocument=allowed)
        yield account


@pytest.fixture
def reader(aws: SimulatedAccount) -> AwsReader:
    return AwsReader(make_session())


def create(reader: AwsReader, expires: datetime = EXPIRES) -> None:
    place = AwsPlace(
        instance_type="ml.g5.xlarge", role=ROLE, bucket="archives", reader=reader, usd_per_hour=1.4
    )
    urls = dict.fromkeys(("present", "best"), f"s3://archives/{ARCHIVE}")
    template = make_template(NAME, place, urls, "m", expires)
    create_stack(reader, NAME, template, expires=expires, bucket="archives")


def keys(aws: SimulatedAccount) -> int:
    return int(aws.client("s3").list_objects_v2(Bucket="archives")["KeyCount"])


def test_schedule_deletes_the_endpoint_and_nothing_else(aws: SimulatedAccount, reader: AwsReader) -> None:
    """The schedule calls DeleteEndpoint at the expiry, with a role that may only delete this endpoint."""
    create(reader)
    assert aws.not_simulated.keys() <= {"existing bucket", "existing role"}
    schedule = aws.client("scheduler").get_schedule(Name=NAME)
    assert schedule["ScheduleExpression"] == "at(2040-01-02T03:04:05)"
    assert schedule["Target"]["Arn"] == "arn:aws:scheduler:::aws-sdk:sagemaker:deleteEndpoint"
    assert json.loads(schedule["Target"]["Input"]) == {"EndpointName": NAME}
    role = schedule["Target"]["RoleArn"].rpartition("/")[2]
    policy = aws.client("iam").get_role_policy(RoleName=role, PolicyName="DeleteEndpoint")["PolicyDocument"]
    (allowed,) = policy["Statement"]
    assert allowed["Action"] == "sagemaker:DeleteEndpoint"
    assert allowed["Resource"].endswith(f":endpoint/{NAME}")
    assert aws.client("iam").list_attached_role_policies(RoleName=role)["AttachedPolicies"] == []


def test_stack_whose_endpoint_expired_can_be_deleted(aws: SimulatedAccount, reader: AwsReader) -> None:
    """After the schedule deleted the endpoint, deleting the stack succeeds."""
    create(reader)
    aws.client("sagemaker").delete_endpoint(EndpointName=NAME)
    delete_stack(reader, NAME)
    assert [each.status for each in aws.stacks.all] == ["DELETE_COMPLETE"]


def test_failed_creation_names_the_reason_and_can_be_deleted(
    aws: SimulatedAccount, reader: AwsReader
) -> None:
    """An endpoint that cannot be created is an error with SageMaker's reason; its stack is deleted."""
    aws.behaviour = Behaviour(failing={"Endpoint": "before"})
    with pytest.raises(StackFailedError, match=f"stack {NAME}: .") as error:
        create(reader)
    assert not error.value.is_of_account
    delete_stack(reader, NAME)
    assert [each.status for each in aws.stacks.all] == ["DELETE_COMPLETE"]


def test_missing_instances_are_not_the_fault_of_a_candidate(
    aws: SimulatedAccount, reader: AwsReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A creation that fails because of the account's limit does not refuse the candidate."""
    aws.behaviour = Behaviour(failing={"Endpoint": "before"})
    limit = "The account-level service limit 'ml.g5.xlarge for endpoint usage' is 0 Instances"
    monkeypatch.setattr(run_stack, "_first_failure", lambda *_: limit)
    with pytest.raises(StackFailedError, match="is 0 Instances") as error:
        create(reader)
    assert error.value.is_of_account


def test_clean_lists_and_deletes_what_a_search_has_left(
    aws: SimulatedAccount, reader: AwsReader, capsys: pytest.CaptureFixture[str]
) -> None:
    """``tune --clean`` waits for a confirmation, then deletes stacks and archives of searches only."""
    aws.client("s3").put_object(Bucket="archives", Key="other", Body=b"")
    create(reader, datetime.now(UTC) - timedelta(minutes=1))
    assert [each.is_expired for each in find_stacks(reader)] == [True]
    assert main(["tune", "--clean"]) == 2
    text = capsys.readouterr()
    assert f"{NAME}  CREATE_COMPLETE  expired" in text.out
    assert "add --yes" in text.err
    assert keys(aws) == 2
    assert main(["tune", "--clean", "--yes", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"deleted": [NAME]}
    assert list(find_stacks(reader)) == []
    assert keys(aws) == 1
    assert main(["tune", "--clean", "--yes"]) == 0
    assert "Searches have left nothing." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("instances", "words", "message"),
    [
        (0, [], "'ml.g5.xlarge for endpoint usage' must be at least 1 in us-east-1, got 0"),
        (9, ["--budget-usd", "3"], "--budget-usd: 20 minutes may cost 3.29 USD, got 3"),
        (1, [], "tune: waits for a confirmation, but this is not a terminal; add --yes"),
    ],
    ids=["quota", "budget", "confirmation"],
)
def test_nothing_is_created_before_money_is_allowed(
    aws: SimulatedAccount,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    *,
    instances: int,
    words: list[str],
    message: str,
) -> None:
    """A quota of 0, a budget that is too small and a missing --yes end the command before any stack."""
    quota = {"QuotaName": "ml.g5.xlarge for endpoint usage", "Value": instances}
    # moto does not have this operation.
    answer = json.dumps({"Quotas": [quota]})
    monkeypatch.setattr(ServiceQuotasResponse, "list_service_quotas", lambda _: answer, raising=False)
    (tmp_path / "m" / "1").mkdir(parents=True)
    (tmp_path / "m" / "1" / "model.py").write_text("class TritonPythonModel: pass\n")
    (tmp_path / "m" / "config.pbtxt").write_text(f'backend: "python" max_batch_size: 8 {TENSORS}')
    given = ["--instance-type", "ml.g5.xlarge", "--role", ROLE, "--bucket", "archives"]
    price = ["--price-per-hour", "1.41", "--latency-ms", "100", *words]
    assert main(["tune", str(tmp_path), *given, *price]) == 2
    text = capsys.readouterr().err
    assert message in text
    if instances == 1:
        assert "cost      up to 3.29 USD" in text
        assert "in any case after 70 minutes" in text
        assert "The quota is 1 instance" in text
    assert aws.stacks.all == []
