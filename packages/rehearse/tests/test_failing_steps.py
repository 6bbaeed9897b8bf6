"""Failures of steps, each in a copy of the process that holds the account."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from small_assembly import rehearsal

from cdk_rehearse import SimulatedAccount, copies
from cdk_rehearse.account import copy_account
from cdk_rehearse.copies import Copy, Original, copy_process
from cdk_rehearse.providers.platform import Topic
from cdk_rehearse.providers.provider import Deployed, Physical, Request
from constructs_triton_core.errors import ConstructsTritonError

TOPICS = {f"T{number}": {"Type": "AWS::SNS::Topic", "Properties": {}} for number in range(4)}


@pytest.fixture
def aws() -> Iterator[SimulatedAccount]:
    with SimulatedAccount() as account:
        yield account


def _copied(aws: SimulatedAccount, folder: Path) -> Copy | Original:
    return copy_account(aws, lambda: copy_process("while step 1, Topic, fails", str(folder)))


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


def test_copy_ends_with_its_own_copies(aws: SimulatedAccount, tmp_path: Path) -> None:
    """A signal ends both at once, so that neither goes on behind the block of the copy."""
    side = _copied(aws, tmp_path)
    if isinstance(side, Original):
        with side:
            inner = _copied(aws, tmp_path)
            if isinstance(inner, Copy):
                side.send(inner.pid)
            time.sleep(60)
    assert isinstance(side, Copy)
    inner_pid = side.receive()
    started = time.monotonic()
    side.end()
    assert time.monotonic() - started < 8
    with suppress(OSError):
        while time.monotonic() - started < 30:
            os.kill(inner_pid, 0)
            if "Z" in Path(f"/proc/{inner_pid}/stat").read_text().split():
                return
        pytest.fail("the inner copy still runs")


def test_process_is_copied_when_no_request_is_running(aws: SimulatedAccount) -> None:
    """A lock of a library that another thread holds would stay locked in the copy for ever."""
    request = threading.Thread(target=time.sleep, args=(0.5,))
    request.start()
    running: list[bool] = []

    def copied() -> Copy:
        running.append(request.is_alive())
        return Copy(0, socket.socket(), "", 0.0)

    copy_account(aws, copied).close()
    assert running == [False]


@pytest.fixture
def created(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """Return the logical IDs of all topics that were created, in whatever process."""
    log = tmp_path / "created"
    create = Topic.create

    def counted(provider: Topic, request: Request) -> Physical:
        with log.open("a") as lines:
            lines.write(f"{request.logical_id}\n")
        return create(provider, request)

    monkeypatch.setattr(Topic, "create", counted)
    return lambda: log.read_text().split()


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """Return the folder of the assemblies."""
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def test_failures_share_the_way_up_to_their_step(
    work: Path, created: Callable[[], list[str]]
) -> None:
    """With four steps that fail, each is carried out once more than with none."""
    rehearsal(work, None, TOPICS)
    calm = len(created())
    found = rehearsal(work, None, TOPICS, failures="each")
    assert len(created()) == calm + calm + len(TOPICS)
    assert [(failure.step, failure.status) for failure in found.failures] == [
        (number, "ROLLBACK_COMPLETE") for number in range(1, 5)
    ]
    assert not found.errors


def test_old_is_deployed_once(work: Path, created: Callable[[], list[str]]) -> None:
    """The failures of an update begin with the account in which OLD is deployed already."""
    old = {"T0": TOPICS["T0"]}
    found = rehearsal(work, old, TOPICS, failures="each")
    assert [failure.status for failure in found.failures] == ["UPDATE_ROLLBACK_COMPLETE"] * 3
    assert created().count("T0") == 1


def _in_copies(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Let the copies of this process do something else than delete a topic."""
    delete, original = Topic.delete, os.getpid()

    def deleted(provider: Topic, current: Deployed) -> None:
        if os.getpid() != original:
            act()
        delete(provider, current)

    monkeypatch.setattr(Topic, "delete", deleted)


@pytest.mark.parametrize(
    ("act", "end"),
    [
        (lambda: time.sleep(60), "its process did not answer for 1 s"),
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "its process ended with SIGKILL"),
    ],
    ids=["waits for ever", "is killed"],
)
def test_failure_that_does_not_end_is_an_error(
    work: Path, monkeypatch: pytest.MonkeyPatch, act: Callable[[], object], end: str
) -> None:
    """The error names the step that failed, and no process is left."""
    monkeypatch.setattr(copies, "_MOST_SECONDS", 1.0)
    _in_copies(monkeypatch, act)
    with pytest.raises(ConstructsTritonError, match=f"with step 1, T0, that fails, {end}"):
        rehearsal(work, None, {"T0": TOPICS["T0"]}, failures="each")
