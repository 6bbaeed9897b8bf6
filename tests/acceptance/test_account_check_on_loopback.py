"""The script that asks an AWS account, against an AWS on loopback."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from account_check.questions import QUESTIONS

from cdk_rehearse import SimulatedAccount

PROJECT = Path(__file__).resolve().parents[2]
CDK = PROJECT / "node_modules" / ".bin" / "cdk"
BUDGET_MINUTES = 4


@pytest.fixture(scope="module")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimulatedAccount]:
    """An account that ``cdk bootstrap`` has prepared."""
    with SimulatedAccount() as account:
        where = f"aws://{account.api.account}/{account.api.region}"
        done = account.run_cdk(CDK, "bootstrap", where, cwd=tmp_path_factory.mktemp("cdk"))
        assert done.returncode == 0, done.stdout
        yield account


def test_every_question_is_answered_and_nothing_is_left(aws: SimulatedAccount) -> None:
    """The script deploys, updates and destroys each stack with the CDK's command line."""
    done = subprocess.run(
        [sys.executable, "-m", "account_check", "--yes", "--wait-minutes", "0"],
        cwd=PROJECT,
        env={**aws.environment(), "PYTHONPATH": f"{PROJECT}:{PROJECT / 'dev'}"},
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    rows = dict(re.findall(r"^\| (.+\?) \| (.+) \|$", done.stdout, re.MULTILINE))
    assert list(rows) == [each.text for each in QUESTIONS]
    for answer in rows.values():
        assert answer.startswith("create CREATE_COMPLETE"), answer
    for changed in (rows[QUESTIONS[0].text], rows[QUESTIONS[2].text], rows[QUESTIONS[3].text]):
        assert "UPDATE_COMPLETE" in changed
    assert "invocation succeeded" in rows[QUESTIONS[4].text]
    assert_nothing_is_left(aws)


def assert_nothing_is_left(aws: SimulatedAccount) -> None:
    """Only the bootstrap stack's bucket exists, and no endpoint, model or log."""
    for each in QUESTIONS:
        assert aws.stacks.find(each.stack) is None
    assert aws.client("sagemaker").list_models()["Models"] == []
    assert aws.client("sagemaker").list_endpoints()["Endpoints"] == []
    assert len(aws.client("s3").list_buckets()["Buckets"]) == 1
    assert aws.client("logs").describe_log_groups()["logGroups"] == []
