"""``tune`` in AWS: a simulated account has the endpoints, and Triton answers on this machine."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tuned_models import write_model

from constructs_triton.local import LocalEndpoint
from constructs_triton.measuring.tuning.deployed import run_stack
from constructs_triton.measuring.tuning.deployed.place import AwsPlace
from constructs_triton.measuring.tuning.deployed.policies import policy_document
from constructs_triton.measuring.tuning.deployed.search import DeployedTuning
from constructs_triton.measuring.tuning.listener import TuneListener
from constructs_triton.measuring.tuning.preparation import TuneOptions
from constructs_triton.measuring.tuning.racing import Outcome, Trial
from constructs_triton.operations.aws_reader import AwsReader, make_session
from constructs_triton.rehearsal import Behaviour, SimulatedAccount

pytestmark = [pytest.mark.xdist_group("tune")]

ROLE = "arn:aws:iam::123456789012:role/models"
TRUSTED = {"Effect": "Allow", "Principal": {"Service": "sagemaker.amazonaws.com"}, "Action": "sts:AssumeRole"}
TRUST = {"Version": "2012-10-17", "Statement": [TRUSTED]}


class Gateway:
    """Answers for the endpoint of the account that exists now, as SageMaker's runtime does."""

    def __init__(self, aws: SimulatedAccount) -> None:
        self.aws = aws
        self.name = ""
        self.running = ExitStack()

    def find_url(self, name: str) -> str:
        if name != self.name:
            self.running.close()
            endpoint = LocalEndpoint.from_aws(self.aws.endpoint_url, endpoint=name)
            self.url = self.running.enter_context(endpoint).endpoint_url
            self.name = name
        return self.url


@pytest.fixture
def gateway(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gateway]:
    """An account with a bucket, and with the role that ``tune --policy models`` describes."""
    monkeypatch.setattr(run_stack, "PAUSE_SECONDS", 0.05)
    with SimulatedAccount() as aws:
        for name, value in aws.variables().items():
            monkeypatch.setenv(name, value)
        aws.client("s3").create_bucket(Bucket="archives")
        aws.client("iam").create_role(RoleName="models", AssumeRolePolicyDocument=json.dumps(TRUST))
        policy = json.dumps(policy_document("models", ROLE, "archives"))
        aws.client("iam").put_role_policy(RoleName="models", PolicyName="allowed", PolicyDocument=policy)
        gateway = Gateway(aws)
        with gateway.running:
            yield gateway


def prepare(gateway: Gateway, folder: Path, instance_type: str, minutes: float) -> DeployedTuning:
    if not (folder / "models").exists():
        write_model(folder / "models", "device")
    options = TuneOptions(latency_ms=150, budget_minutes=minutes, step_seconds=1, output=folder / "tuned")
    place = AwsPlace(instance_type, ROLE, "archives", "us-east-1", 0.1)
    reader = AwsReader(make_session())
    return DeployedTuning(
        folder / "models", None, options, place=place, reader=reader, find_url=gateway.find_url
    )


def assert_nothing_is_left(aws: SimulatedAccount) -> None:
    assert {each.status for each in aws.stacks.all} == {"DELETE_COMPLETE"}
    assert aws.client("sagemaker").list_endpoints()["Endpoints"] == []
    assert aws.client("scheduler").list_schedules()["Schedules"] == []
    assert aws.client("s3").list_objects_v2(Bucket="archives")["KeyCount"] == 0


class Terminating(TuneListener):
    """Ends the process with SIGTERM when the first rate is known."""

    def on_trial(self, trial: Trial) -> None:  # noqa: ARG002
        signal.raise_signal(signal.SIGTERM)


class Counting(TuneListener):
    """Counts the results of an earlier run."""

    known = 0

    def on_begin(self, known: int) -> None:
        self.known = known


def test_stopped_search_deletes_its_endpoint_and_continues(gateway: Gateway, tmp_path: Path) -> None:
    """After SIGTERM nothing is left; the second run uses its results and compares on two variants."""
    first = prepare(gateway, tmp_path, "ml.c5.large", 2).run(Terminating())
    assert first.is_interrupted
    assert_nothing_is_left(gateway.aws)

    counting = Counting()
    result = prepare(gateway, tmp_path, "ml.c5.large", 2).run(counting)
    assert counting.known > 2
    assert result.rate(result.present) > 0
    assert_nothing_is_left(gateway.aws)
    configs = [request for _, name, request in gateway.aws.api.calls if name == "CreateEndpointConfig"]
    assert [len(each["ProductionVariants"]) for each in configs] == [1, 1, 2]
    assert "ml.c5.large" in (tmp_path / "tuned" / "benchmark.csv").read_text()


class Failing(TuneListener):
    """Makes every endpoint fail after the present configuration was measured."""

    def __init__(self, aws: SimulatedAccount) -> None:
        self.aws = aws
        self.trials: list[Trial] = []

    def on_trial(self, trial: Trial) -> None:
        self.trials.append(trial)
        self.aws.behaviour = Behaviour(failing={"Endpoint": "after"})


def test_endpoint_that_fails_is_a_result_and_is_deleted(gateway: Gateway, tmp_path: Path) -> None:
    """On endpoints in turn, a candidate whose endpoint fails is refused with SageMaker's reason."""
    listener = Failing(gateway.aws)
    tuning = prepare(gateway, tmp_path, "ml.g6.xlarge", 2)
    assert not tuning.place.is_multi_model
    result = tuning.run(listener)
    outcomes = [trial.outcome for trial in listener.trials]
    assert outcomes[0] is Outcome.PRESENT
    assert set(outcomes[1:]) == {Outcome.REFUSED}
    assert "constructs-triton-tune-" in listener.trials[1].reason
    assert result.best == result.present
    assert_nothing_is_left(gateway.aws)
