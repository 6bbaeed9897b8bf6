"""A night without an endpoint: ``constructs-triton stop`` and ``start`` on moto's account."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from moto import mock_aws
from night_account import (
    DEPLOYMENT,
    FILE,
    KEY,
    NAME,
    NightAccount,
    phase,
    start,
    stop,
    use,
)

from constructs_triton.cli import main


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[NightAccount]:
    with mock_aws():
        account = NightAccount()
        account.add_endpoint()
        account.add_operation()
        use(account, monkeypatch, tmp_path)
        yield account


def test_everything_comes_back(account: NightAccount, capsys: pytest.CaptureFixture[str]) -> None:
    """Counts, weights, tags, deployment configuration, target, policy and action,
    on each of two nights.
    """
    before = account.state()
    for _night in range(2):
        account.calls.clear()
        assert stop() == 0
        assert not account.exists()
        assert phase() == "stopped"
        assert start() == 0
        assert phase() == "started"
        assert account.state() == before
        assert account.params_of("CreateEndpoint")[0]["DeploymentConfig"] == DEPLOYMENT
    assert "is stopped; digits.stopped.json has what creates it again" in capsys.readouterr().out


def test_nothing_changes_without_confirmation(
    account: NightAccount, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command prints what it would delete, writes no file and returns 2."""
    before = account.state()
    assert main(["stop", NAME]) == 2
    assert main(["stop", NAME, "--json"]) == 2
    assert account.state() == before
    assert not FILE.exists()
    out, err = capsys.readouterr()
    assert json.loads(out)["error"].startswith("--yes: nothing was done")
    assert "Delete endpoint digits and its scaling? [y/N]" in err
    assert "deletes scaling of endpoint/digits/variant/main: 2 to 6" in err
    assert "deletes scaling policy load" in err
    assert "deletes scheduled action morning" in err


STEPS_OF_STOP = (
    "DescribeEndpoint",
    "DescribeEndpointConfig",
    "ListInferenceComponents",
    "DescribeModel",
    "ListTags",
    "DescribeScalableTargets",
    "DescribeScalingPolicies",
    "DescribeScheduledActions",
    "DeregisterScalableTarget",
    "DeleteEndpoint",
)
STEPS_OF_START = (
    "DescribeEndpoint",
    "CreateEndpoint",
    "UpdateEndpointWeightsAndCapacities",
    "RegisterScalableTarget",
    "PutScalingPolicy",
    "PutScheduledAction",
)


@pytest.mark.parametrize(
    ("step", "is_undone"),
    [
        *((step, False) for step in STEPS_OF_STOP),
        *((step, True) for step in ("DeregisterScalableTarget", "DeleteEndpoint")),
    ],
)
def test_failed_stop_is_repeated_or_undone(
    account: NightAccount, step: str, is_undone: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same command stops the endpoint; a start loses nothing,
    and creates no endpoint that is there.
    """
    before = account.state()
    account.failing = {step: "AccessDeniedException"}
    assert stop() == 2
    assert f":{step}: access denied; add this permission to your role" in capsys.readouterr().err
    assert not account.failing
    assert FILE.exists() == (step in ("DeregisterScalableTarget", "DeleteEndpoint"))
    account.calls.clear()
    if not is_undone:
        assert stop() == 0
        assert not account.exists()
    assert start() == 0
    assert account.state() == before
    assert ("CreateEndpoint" in account.names_of_calls()) is not is_undone


@pytest.mark.parametrize("step", STEPS_OF_START)
@pytest.mark.parametrize("repeated", ["start", "stop"])
def test_failed_start_is_repeated(account: NightAccount, step: str, repeated: str) -> None:
    """After a failure of any step, start goes on; or stop deletes what there is,
    and the file stays whole.
    """
    before = account.state()
    assert stop() == 0
    account.failing = {step: "ValidationException"}
    assert start() == 2
    assert not account.failing
    if repeated == "stop":
        assert stop() == 0
        assert not account.exists()
    assert start() == 0
    assert account.state() == before


@pytest.mark.parametrize("failed_write", [1, 2])
@pytest.mark.parametrize("command", [stop, start])
def test_file_survives_a_full_disk(
    account: NightAccount,
    command: Any,
    failed_write: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A write that fails leaves the file before it,
    and before the first write nothing is deleted.
    """
    before = account.state()
    if command is start:
        assert stop() == 0
    written = []
    fsync = os.fsync

    def full(descriptor: int) -> None:
        written.append(descriptor)
        if len(written) == failed_write:
            raise OSError(28, "No space left on device")
        fsync(descriptor)

    account.calls.clear()
    monkeypatch.setattr(os, "fsync", full)
    assert command() == 2
    assert "no space left on device" in capsys.readouterr().err
    if failed_write == 1:
        assert not {"DeleteEndpoint", "DeregisterScalableTarget", "CreateEndpoint"} & set(
            account.names_of_calls()
        )
    assert command() == 0
    assert account.exists() == (command is start)
    assert start() == 0
    assert account.state() == before


def test_morning_without_capacity_is_repeated(
    account: NightAccount, capsys: pytest.CaptureFixture[str]
) -> None:
    """An endpoint that fails is reported with SageMaker's reason;
    the next start deletes and creates it.
    """
    before = account.state()
    assert stop() == 0
    account.status_of_new = "Creating"
    account.while_waiting = lambda: account.set_status("Failed")
    account.described["FailureReason"] = "InsufficientInstanceCapacity"
    assert start() == 2
    assert (
        "endpoint digits: has status Failed: InsufficientInstanceCapacity"
        in capsys.readouterr().err
    )
    account.while_waiting = lambda: account.set_status("InService")
    del account.described["FailureReason"]
    account.calls.clear()
    assert start() == 0
    order = [
        name for name in account.names_of_calls() if name in ("DeleteEndpoint", "CreateEndpoint")
    ]
    assert order == ["DeleteEndpoint", "CreateEndpoint"]
    assert account.state() == before


@pytest.mark.parametrize("command", [stop, start])
def test_deletion_is_waited_for(
    account: NightAccount, command: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """SageMaker needs time to delete.

    The endpoint is not deleted twice, and a timeout leaves the file.
    """
    before = account.state()
    account.failing = {"DeleteEndpoint": "ThrottlingException"}
    assert stop() == 2
    account.set_status("Deleting")
    account.calls.clear()
    assert command("--timeout", "20s") == 2
    assert "endpoint digits: has status Deleting" in capsys.readouterr().err
    account.while_waiting = account.remove
    assert command() == 0
    assert "DeleteEndpoint" not in account.names_of_calls()
    assert start() == 0
    assert account.state() == before


def test_endpoint_that_vanishes_is_reported(
    account: NightAccount, capsys: pytest.CaptureFixture[str]
) -> None:
    """Another program may delete the endpoint while it is created."""
    assert stop() == 0
    account.status_of_new = "Creating"
    account.while_waiting = account.remove
    assert start() == 2
    assert "endpoint digits: was deleted by another program" in capsys.readouterr().err


def test_endpoint_that_another_program_created_stays(
    account: NightAccount, capsys: pytest.CaptureFixture[str]
) -> None:
    """Stop deletes none of them; start restores the scaling of one that serves
    with our configuration.
    """
    before = account.state()
    assert stop() == 0
    account.sagemaker.create_endpoint(
        EndpointName=NAME, EndpointConfigName="config-1", Tags=before["tags"]
    )
    assert stop() == 2
    assert "another program created it after it was stopped" in capsys.readouterr().err
    account.set_status("Failed")
    assert start() == 2
    assert "has status Failed and was created by another program" in capsys.readouterr().err
    assert account.exists()
    account.set_status("InService")
    account.described["EndpointConfigName"] = "config-2"
    assert start() == 2
    assert (
        "has configuration config-2, and digits.stopped.json has config-1"
        in capsys.readouterr().err
    )
    account.described.pop("EndpointConfigName")
    assert start() == 0
    assert account.state() == before


def test_second_stop_and_start_change_nothing(
    account: NightAccount, capsys: pytest.CaptureFixture[str]
) -> None:
    """A repeated command succeeds and says that there is nothing to do."""
    assert stop() == 0
    assert stop("--json") == 0
    assert '"phase": "stopped"' in capsys.readouterr().out
    assert start() == 0
    account.scaling.register_scalable_target(**KEY, MinCapacity=1)
    changed = account.state()
    assert start("--json") == 0
    assert "is already started; nothing was changed" in capsys.readouterr().out
    assert account.state() == changed
