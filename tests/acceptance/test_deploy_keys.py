"""The encryption key of a repository changes on a loopback AWS,
and deployments of its models fail.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import Duration, RemovalPolicy
from keys_app import ASSETS, STACK, KeyState, synthesize

from cdk_rehearse import Behaviour, SimulatedAccount
from cdk_rehearse.errors import StackError
from cdk_rehearse.stacks.stack import Stack

BUDGET_MINUTES = 2

STRANGER = "models/trained-0123abcd.tar.gz"
CHANGES = [("K1", "K2"), ("K1", None), (None, "K1")]
#: Resources in a random order; during an update and its rollback, instances of both fleets are
#: launched.
UNORDERED = Behaviour(seed=3, random_order=True, launches_old_fleet=True)


@dataclass
class Account:
    """A loopback AWS in which one stack is deployed in several states."""

    aws: SimulatedAccount
    directory: Path

    def deploy(self, state: KeyState) -> Stack:
        """Deploy a state of the stack."""
        name = f"state-{len(list(self.directory.iterdir()))}"
        return self.aws.deploy(synthesize(self.directory, name, state), STACK)

    @property
    def bucket(self) -> str:
        return self.aws.stack(STACK).output_values["Bucket"]

    def add_model(self) -> None:
        """Add an archive that no deployment knows, as a training job does."""
        self.aws.client("s3").put_object(Bucket=self.bucket, Key=STRANGER, Body=b"trained")

    def objects(self) -> dict[str, str | None]:
        """The logical id of each object's KMS key."""
        names = {
            each.physical.attributes["Arn"]: name[:2]
            for name, each in self.aws.stack(STACK).resources.items()
            if each.request.type == "AWS::KMS::Key"
        }
        found = self.aws.access.s3_needs.bucket(self.bucket).keys
        return {key: names.get(each.kms_key_id) for key, each in found.items()}

    def damage_index(self) -> None:
        self.aws.client("s3").put_object(Bucket=self.bucket, Key="models/index.json", Body=b"{")


@pytest.fixture
def account(tmp_path: Path) -> Iterator[Account]:
    with SimulatedAccount() as aws:
        aws.bootstrap()
        yield Account(aws, tmp_path)


@pytest.mark.parametrize(("old", "new"), CHANGES)
def test_change_of_the_key_keeps_every_model_readable(account: Account, old: Any, new: Any) -> None:
    """The old key is removed too; archives, files, index and foreign archives have the new one.

    So has the folder of files of an earlier content, to which a later deployment returns.
    """
    kept = tuple(key for key in (new,) if key)
    assert account.deploy(KeyState(old, label=2)).status == "CREATE_COMPLETE"
    assert account.deploy(KeyState(old)).status == "UPDATE_COMPLETE"
    account.add_model()
    account.aws.behaviour = UNORDERED
    stack = account.deploy(KeyState(new, keys=kept))
    assert (stack.status, account.aws.fleets.losses) == ("UPDATE_COMPLETE", []), stack.reason
    assert set(account.objects().values()) == {new}
    stack = account.deploy(KeyState(new, keys=kept, label=2))
    assert (stack.status, account.aws.fleets.losses) == ("UPDATE_COMPLETE", []), stack.reason
    assert account.aws.destroy(STACK).status == "DELETE_COMPLETE"


@pytest.mark.parametrize(("old", "new"), CHANGES)
def test_rollback_returns_to_the_old_key(account: Account, old: Any, new: Any) -> None:
    """After a failure every object has the old key again, and no instance lacked a permission."""
    assert account.deploy(KeyState(old)).status == "CREATE_COMPLETE"
    account.add_model()
    before = account.objects()
    account.aws.behaviour = UNORDERED
    stack = account.deploy(KeyState(new, label=2, is_broken=True))
    assert (stack.status, account.aws.fleets.losses) == ("UPDATE_ROLLBACK_COMPLETE", []), (
        stack.reason
    )
    after = account.objects()
    assert {key: after[key] for key in before} == before == dict.fromkeys(before, old)


@pytest.mark.parametrize(
    ("new", "change"),
    [
        ("K2", {"label": 2}),
        (None, {"label": 2, "prune_after": Duration.days(1)}),
        ("K2", {"shares_bucket": True}),
    ],
    ids=["content", "content and pruning", "two repositories in a bucket"],
)
def test_key_changes_together_with_something_else(account: Account, new: Any, change: Any) -> None:
    """The old key is removed too, and the first content can be deployed again."""
    shares_bucket = "shares_bucket" in change
    assert account.deploy(KeyState("K1", shares_bucket=shares_bucket)).status == "CREATE_COMPLETE"
    account.aws.behaviour = UNORDERED
    state = KeyState(new, keys=tuple(key for key in (new,) if key), **change)
    for label in dict.fromkeys((state.label, 1)):
        stack = account.deploy(replace(state, label=label))
        assert (stack.status, account.aws.fleets.losses) == ("UPDATE_COMPLETE", []), stack.reason
        assert set(account.objects().values()) == {new}


def test_key_changes_and_the_update_of_the_endpoint_fails(account: Account) -> None:
    """SageMaker fails the update of the endpoint of files,
    so the objects have the old key again.
    """
    assert account.deploy(KeyState("K1")).status == "CREATE_COMPLETE"
    before = account.objects()
    account.aws.behaviour = replace(UNORDERED, endpoint_update="fails")
    stack = account.deploy(KeyState("K2", label=2))
    assert (stack.status, account.aws.fleets.losses) == ("UPDATE_ROLLBACK_COMPLETE", []), (
        stack.reason
    )
    assert {account.objects()[key] for key in before} == {"K1"}


@pytest.mark.parametrize("unreadable", ["", STRANGER], ids=["every object", "an archive of others"])
def test_objects_that_cannot_be_decrypted_fail_the_update(
    account: Account, unreadable: str
) -> None:
    """No new content is written, and the reason names the property that allows the key."""
    account.deploy(KeyState("K2"))
    account.add_model()
    old_key = _key(account, "K1")
    _encrypt(account, old_key, unreadable)
    before = set(account.objects())
    stack = account.deploy(KeyState("K2", label=2))
    assert stack.status == "UPDATE_ROLLBACK_COMPLETE", stack.reason
    assert f"{unreadable or 'index.json'}: cannot be decrypted" in stack.reason
    assert (
        f'previous_encryption_keys=[kms.Key.from_key_arn(self, "PreviousKey", "{old_key}")]'
        in stack.reason
    )
    assert set(account.objects()) == before
    assert account.deploy(KeyState("K2", label=2, previous=("K1",))).status == "UPDATE_COMPLETE"
    account.aws.fleets.forget()  # those of instances that had no permission before
    assert account.deploy(KeyState("K2", label=3)).status == "UPDATE_COMPLETE"
    assert account.aws.fleets.losses == []


def test_archives_are_pruned_once_their_days_have_passed(account: Account) -> None:
    """The function sees the days that the behaviour adds; what lost its name earlier is deleted."""
    states = [KeyState(None, label=label, prune_after=Duration.days(30)) for label in (1, 2, 3)]
    account.deploy(states[0])
    first = set(account.objects())
    account.deploy(states[1])
    assert first <= set(account.objects())
    account.aws.behaviour = Behaviour(days_passed=31)
    assert account.deploy(states[2]).status == "UPDATE_COMPLETE"
    assert not {key for key in first - {"models/index.json"} if "files/" not in key} & set(
        account.objects()
    )


def test_damaged_index_fails_an_update_and_not_its_rollback(account: Account) -> None:
    """The reason says what to delete and how to continue;
    the rollback leaves the index as it is.
    """
    account.deploy(KeyState(None))
    account.damage_index()
    stack = account.deploy(KeyState(None, label=2))
    assert stack.status == "UPDATE_ROLLBACK_COMPLETE", stack.reason
    assert "models/index.json: is not an index of models" in stack.reason
    assert "run cdk rollback" in stack.reason
    account.aws.client("s3").delete_object(Bucket=account.bucket, Key="models/index.json")
    assert account.deploy(KeyState(None, label=2)).status == "UPDATE_COMPLETE"


@pytest.mark.parametrize("removal_policy", [RemovalPolicy.DESTROY, RemovalPolicy.RETAIN])
def test_failed_creation_can_be_rolled_back(
    account: Account, removal_policy: RemovalPolicy
) -> None:
    """A missing archive fails the creation; a bucket that is retained is named with a command."""
    _let_everyone_list_the_assets(account)
    stack = account.deploy(KeyState(None, missing_archive=True, removal_policy=removal_policy))
    assert stack.status == "ROLLBACK_COMPLETE", stack.reason
    buckets = [each["Name"] for each in account.aws.client("s3").list_buckets()["Buckets"]]
    retained = [name for name in buckets if name != ASSETS]
    assert len(retained) == (removal_policy is RemovalPolicy.RETAIN)
    assert all(f"aws s3 ls --recursive s3://{name}" in stack.reason for name in retained)
    assert account.aws.destroy(STACK).status == "DELETE_COMPLETE"


def test_stack_whose_rollback_failed_is_not_updated(account: Account) -> None:
    """CloudFormation refuses it until the rollback has been continued."""
    stack = account.deploy(KeyState(None))
    stack.enter("UPDATE_ROLLBACK_FAILED")
    with pytest.raises(
        StackError, match="is in UPDATE_ROLLBACK_FAILED state and can not be updated"
    ):
        account.deploy(KeyState(None, label=2))


def _key(account: Account, name: str) -> str:
    resources = account.aws.stack(STACK).resources
    (arn,) = [
        each.physical.attributes["Arn"] for key, each in resources.items() if key.startswith(name)
    ]
    return str(arn)


def _encrypt(account: Account, key: str, prefix: str) -> None:
    """Give the objects the key, as version 0.1 left them after a change of the key."""
    s3, bucket = account.aws.client("s3"), account.bucket
    for each in s3.list_objects_v2(Bucket=bucket, Prefix=prefix)["Contents"]:
        source = {"Bucket": bucket, "Key": each["Key"]}
        s3.copy_object(
            Bucket=bucket,
            Key=each["Key"],
            CopySource=source,
            ServerSideEncryption="aws:kms",
            SSEKMSKeyId=key,
        )


def _let_everyone_list_the_assets(account: Account) -> None:
    """Without this permission S3 answers 403 for a missing archive,
    and the function repeats the request.
    """
    statement = {
        "Effect": "Allow",
        "Principal": "*",
        "Action": "s3:ListBucket",
        "Resource": f"arn:aws:s3:::{ASSETS}",
    }
    policy = {"Version": "2012-10-17", "Statement": [statement]}
    account.aws.client("s3").put_bucket_policy(Bucket=ASSETS, Policy=json.dumps(policy))
