"""Failures of steps, each in a copy of the process that holds the account."""

from __future__ import annotations

import os
import signal
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from small_assembly import rehearsal

from cdk_rehearse import SimulatedAccount
from cdk_rehearse.copies import Copy, Original, copy_process
from cdk_rehearse.providers.platform import Topic
from cdk_rehearse.providers.provider import Physical, Request
from constructs_triton_core.errors import ConstructsTritonError

TOPICS = {f"T{number}": {"Type": "AWS::SNS::Topic", "Properties": {}} for number in range(4)}


@pytest.fixture
def aws() -> Iterator[SimulatedAccount]:
    with SimulatedAccount() as account:
        yield account


def _copied(aws: SimulatedAccount, folder: Path) -> Copy | Original:
    return aws.copy(lambda: copy_process("while step 1, Topic, fails", str(folder)))


def test_copy_of_an_account_changes_nothing_in_it(aws: SimulatedAccount, tmp_path: Path) -> None:
    """A copy has what exists, another URL that answers, and buckets of its own."""
    aws.api.create_bucket("first")
    side = _copied(aws, tmp_path)
    if isinstance(side, Original):
        with side:
            aws.client("s3").create_bucket(Bucket="second")
            with urllib.request.urlopen(aws.endpoint_url, timeout=30) as page:
                is_answered = page.status == 200
            names = [each["Name"] for each in aws.client("s3").list_buckets()["Buckets"]]
            side.send((aws.endpoint_url, is_answered, names))
    assert isinstance(side, Copy)
    url, is_answered, names = side.receive()
    side.forget()
    assert url != aws.endpoint_url
    assert is_answered
    assert names == ["first", "second"]
    assert [each["Name"] for each in aws.client("s3").list_buckets()["Buckets"]] == ["first"]


def test_copy_that_ends_without_an_answer_is_one_error(
    aws: SimulatedAccount, tmp_path: Path
) -> None:
    """The error names the step and how the process ended."""
    side = _copied(aws, tmp_path)
    if isinstance(side, Original):
        os.kill(os.getpid(), signal.SIGKILL)
    assert isinstance(side, Copy)
    pid = side.pid
    with pytest.raises(
        ConstructsTritonError, match="while step 1, Topic, fails, its process ended with SIGKILL"
    ):
        side.receive()
    side.end()
    with pytest.raises(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


def test_failures_share_the_way_up_to_their_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With four steps that fail, each is carried out once more than with none."""
    created = tmp_path / "created"
    create = Topic.create

    def counted(provider: Topic, request: Request) -> Physical:
        with created.open("a") as log:
            log.write(f"{request.logical_id}\n")
        return create(provider, request)

    monkeypatch.setattr(Topic, "create", counted)
    (tmp_path / "work").mkdir()
    rehearsal(tmp_path / "work", None, TOPICS)
    calm = len(created.read_text().split())
    found = rehearsal(tmp_path / "work", None, TOPICS, failures="each")
    assert len(created.read_text().split()) == calm + calm + len(TOPICS)
    assert [(each.step, each.status) for each in found.failures] == [
        (number, "ROLLBACK_COMPLETE") for number in range(1, 5)
    ]
    assert not found.errors
